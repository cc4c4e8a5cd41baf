// Package profile describes a program's calls: collectives, sizes, plans, how often and for how long.
// Package planner writes a profile when a job ends, see
// planner.Options.Profile, and tierflow tune measures its calls.
package profile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/files"
	"github.com/tierflow/tierflow/levels/printable"
	"github.com/tierflow/tierflow/tasks"
)

// Version is the version of the file format.
const Version = 1

// Profile lists the calls of a job's rank 0.
type Profile struct {
	Version int     `json:"tierflow_profile"`
	Program string  `json:"program"` // its name
	Date    string  `json:"date"`    // when the job ended, RFC 3339
	Machine string  `json:"machine"` // the layout of all ranks, such as 4x2
	Seconds float64 `json:"seconds"` // from the job's begin to its end
	Calls   []Call  `json:"calls"`   // the longest first
}

// Call is a kind of calls: equal requests on equal layouts by the same plan.
type Call struct {
	Collective string  `json:"collective"`
	Type       string  `json:"type,omitempty"`   // of elements; empty: a barrier
	Op         string  `json:"op,omitempty"`     // of a reduction
	Count      int64   `json:"count"`            // elements of a rank's buffer or block, see [tasks.Request]
	Bytes      int64   `json:"bytes"`            // of these
	Differ     bool    `json:"differ,omitempty"` // blocks differ, and Count is of the largest
	Mean       int64   `json:"mean,omitempty"`   // elements of these on average, rounded up, see [tasks.Request.MeanBytes]; 0: unknown
	Uneven     int     `json:"uneven,omitempty"` // how far they differ, see [tasks.Request.Uneven]
	On         string  `json:"on"`               // the layout of the communicator's ranks
	Plan       string  `json:"plan"`
	Calls      int64   `json:"calls"`   // that ended well
	Seconds    float64 `json:"seconds"` // of the rank in them, waiting for late ranks included
}

// Of returns a kind of calls without numbers.
func Of(r tasks.Request, on *levels.Topology, plan tasks.Plan) Call {
	c := Call{Collective: r.Coll.String(), Count: r.Count, Bytes: r.Bytes(), Differ: r.Differ(), On: on.String(), Plan: plan.String()}
	if r.Coll.HasData() {
		c.Type = r.Type.String()
	}
	if r.Differ() {
		size := int64(r.Type.Size())
		c.Mean, c.Uneven = (r.MeanBytes()+size-1)/size, r.Uneven()
	}
	if r.Reduces() {
		c.Op = r.Op.String()
	}
	return c
}

// Request returns the request of a call, with root 0. Blocks of different lengths become others with the same
// mean and unevenness: no table tells them apart. Operations of the program are an error.
func (c *Call) Request() (r tasks.Request, err error) {
	if r.Coll, err = tasks.ParseCollective(c.Collective); err != nil {
		return r, err
	}
	if c.Differ && c.Mean == 0 {
		return r, fmt.Errorf("%v of blocks that differ, and nobody knows by how much", r.Coll)
	}
	if r.Coll.HasData() {
		if r.Type, err = tasks.ParseDatatype(c.Type); err != nil {
			return r, err
		}
		r.Count = cmp.Or(c.Mean, c.Count)
	}
	if r.Reduces() {
		if r.Op, err = tasks.ParseOp(c.Op); err != nil {
			return r, err
		}
	}
	if c.Uneven == 0 {
		return r, nil
	}
	on, err := levels.Parse(c.On)
	if err != nil {
		return r, err
	}
	return tasks.MakeUneven(r, c.Uneven, on.Size())
}

// Encode returns the profile as a file, sorted by time.
func (p *Profile) Encode() ([]byte, error) {
	slices.SortStableFunc(p.Calls, func(a, b Call) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Collective, b.Collective), cmp.Compare(a.Bytes, b.Bytes))
	})
	data, err := json.MarshalIndent(p, "", " ")
	return append(data, '\n'), err
}

// maxBytes bounds a profile's file.
const maxBytes = 16 << 20

// Read reads a file made by [Profile.Encode].
func Read(name string) (*Profile, error) {
	data, err := files.Read(name, maxBytes)
	if err != nil {
		return nil, err
	}
	p := &Profile{}
	if err := json.Unmarshal(data, p); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	printable.All(p)
	if p.Version != Version {
		return nil, fmt.Errorf("%s: tierflow_profile is %d; allowed is %d", name, p.Version, Version)
	}
	for i := range p.Calls {
		c := &p.Calls[i]
		if _, err := c.Request(); err != nil && !c.Differ && c.Op == "" {
			return nil, fmt.Errorf("%s: call %d: %w", name, i, err)
		}
		if c.Calls < 0 || c.Count < 0 || c.Mean < 0 || !(c.Seconds >= 0) {
			return nil, fmt.Errorf("%s: call %d: %d calls of %d elements, %d on average, %v s; allowed are numbers from 0", name, i, c.Calls, c.Count, c.Mean, c.Seconds)
		}
	}
	return p, nil
}
