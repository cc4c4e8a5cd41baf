package trace

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock"
	"github.com/tierflow/tierflow/levels/printable"
)

// Linked is a source that also tells the links between its steps. A compiled program is
// one, and so is a [Program] from a file.
type Linked interface {
	Source
	// Link returns the partner of a step, a rank of the communicator, -1 for none. Both ends of a
	// message have the same edge; outgoing is true at the sender's.
	Link(step int32) (peer levels.Rank, edge int32, outgoing bool)
	// Next lists the steps waiting for this one's end.
	Next(step int32) []int32
	// Len is the number of steps.
	Len() int
}

// format is the version of files.
const format = 1

// MaxBytes bounds a file.
const MaxBytes = 256 << 20

// File is the sampled calls of one rank of a job. Times are nanoseconds on
// the machine's monotonic clock.
type File struct {
	Format int      `json:"format"`
	Job    string   `json:"job"` // the same name on all ranks, from rank 0
	Rank   int      `json:"rank"`
	Nodes  []string `json:"nodes"` // of all ranks
	// Program is the rank's executable, without its folder, and Date when the trace began: UTC, RFC 3339. Empty: unknown.
	Program string `json:"program,omitempty"`
	Date    string `json:"date,omitempty"`
	Every   int    `json:"every"` // one call of so many is in the sample
	Lost    int64  `json:"lost"`  // sampled calls without room, or without a good end

	// Clock names the machine's clock: files with the same one have one clock. Ahead tells how
	// far rank 0's is ahead of it. Other ranks of the node may know it when this one doesn't.
	Clock string    `json:"clock"`
	Ahead clock.Map `json:"ahead"`

	Programs []Program `json:"programs"`
	Kinds    []Kind    `json:"kinds"`
	Calls    []Call    `json:"calls"`
}

// Kind is the common part of several calls, see [Bound].
type Kind struct {
	Comm      uint64        `json:"comm"`
	Rank      levels.Rank   `json:"rank"`
	Members   []levels.Rank `json:"members"`
	Request   string        `json:"request"`
	Operation string        `json:"operation,omitempty"`
	Plan      string        `json:"plan"`
	Reasons   []string      `json:"reasons,omitempty"` // for the plan; none: unknown
	Bytes     int64         `json:"bytes"`
	Passes    int64         `json:"passes"`
	Whole     int           `json:"whole"` // index into Programs; -1: none
	Rest      int           `json:"rest"`
}

// Program returns the index of the program of a pass, -1 for none.
func (k *Kind) Program(pass int64) int {
	if pass < k.Passes {
		return k.Whole
	}
	return k.Rest
}

// Call is one call of the rank.
type Call struct {
	Kind  int    `json:"kind"` // index into Kinds
	Seq   uint32 `json:"seq"`  // among those on the communicator
	Begin int64  `json:"begin"`
	End   int64  `json:"end"`
	Steps []Step `json:"steps"`
}

// Step is pass, step, begin and end of a step, in this order.
type Step [4]int64

// Program is the steps of a program, as far as pictures need them.
type Program []StepInfo

// StepInfo is one of them.
type StepInfo struct {
	Task     string      `json:"task"`
	Label    string      `json:"label"`
	Kind     string      `json:"kind"`
	Level    string      `json:"level"`
	Bytes    int64       `json:"bytes"`
	Peer     levels.Rank `json:"peer"` // -1: none
	Edge     int32       `json:"edge"`
	Outgoing bool        `json:"outgoing,omitempty"`
	After    []int32     `json:"next,omitempty"`
}

var _ Linked = Program(nil)

// describe copies the steps of a source.
func describe(s Linked) Program {
	p := make(Program, s.Len())
	for i := range p {
		d := &p[i]
		var level byte
		d.Task, d.Label, d.Kind, level, d.Bytes = s.Describe(int32(i))
		d.Level = string(rune(level))
		d.Peer, d.Edge, d.Outgoing = s.Link(int32(i))
		d.After = s.Next(int32(i))
	}
	return p
}

// Describe implements [Source].
func (p Program) Describe(step int32) (task, label, kind string, level byte, bytes int64) {
	d := &p[step]
	return d.Task, d.Label, d.Kind, d.Level[0], d.Bytes
}

// Link implements [Linked].
func (p Program) Link(step int32) (peer levels.Rank, edge int32, outgoing bool) {
	d := &p[step]
	return d.Peer, d.Edge, d.Outgoing
}

// Next implements [Linked].
func (p Program) Next(step int32) []int32 { return p[step].After }

// Len implements [Linked].
func (p Program) Len() int { return len(p) }

// Write writes the file, for [ReadFile].
func (f *File) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(f)
}

// ReadFile reads a file of [File.Write]. It believes nothing in it: every index of a
// returned one is within its list, and every text can be printed. name begins each error.
func ReadFile(name string, data []byte) (*File, error) {
	f := &File{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(f)
	printable.All(f)
	if err == nil && f.Format != format {
		err = fmt.Errorf("format %d; this program reads %d", f.Format, format)
	}
	if err == nil {
		err = f.check()
	}
	if err != nil {
		return nil, fmt.Errorf("%s is no trace of a rank: %w", name, err)
	}
	return f, nil
}

// check returns the first fault of a file.
func (f *File) check() error {
	if f.Rank < 0 || f.Rank >= len(f.Nodes) {
		return fmt.Errorf("rank %d of %d", f.Rank, len(f.Nodes))
	}
	for i, p := range f.Programs {
		for s := range p {
			d := &p[s]
			if len(d.Level) != 1 || d.Peer < -1 || slices.ContainsFunc(d.After, func(n int32) bool { return n < 0 || int(n) >= len(p) }) {
				return fmt.Errorf("program %d, step %d: level %q, peer %d, next %v of %d steps", i, s, d.Level, d.Peer, d.After, len(p))
			}
		}
	}
	for i := range f.Kinds {
		if err := f.Kinds[i].check(f); err != nil {
			return fmt.Errorf("kind %d: %w", i, err)
		}
	}
	for i := range f.Calls {
		if err := f.Calls[i].check(f); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
	}
	fixes := f.Ahead.Fixes
	if !slices.IsSortedFunc(fixes, func(a, b clock.Fix) int { return cmp.Compare(a.At, b.At) }) {
		return fmt.Errorf("fixes of the clock that are not in order: %v", fixes)
	}
	return nil
}

func (k *Kind) check(f *File) error {
	if k.Rank < 0 || int(k.Rank) >= len(k.Members) || int(k.Members[k.Rank]) != f.Rank {
		return fmt.Errorf("rank %d among %v, in the file of rank %d", k.Rank, k.Members, f.Rank)
	}
	for _, r := range k.Members {
		if r < 0 || int(r) >= len(f.Nodes) {
			return fmt.Errorf("member %d of a world of %d", r, len(f.Nodes))
		}
	}
	for _, p := range []int{k.Whole, k.Rest} {
		if p < -1 || p >= len(f.Programs) {
			return fmt.Errorf("program %d of %d", p, len(f.Programs))
		}
		if p < 0 {
			continue
		}
		for s := range f.Programs[p] {
			if peer := f.Programs[p][s].Peer; int(peer) >= len(k.Members) {
				return fmt.Errorf("program %d, step %d: peer %d of %d", p, s, peer, len(k.Members))
			}
		}
	}
	return nil
}

func (c *Call) check(f *File) error {
	if c.Kind < 0 || c.Kind >= len(f.Kinds) || c.End < c.Begin {
		return fmt.Errorf("kind %d of %d, from %d to %d ns", c.Kind, len(f.Kinds), c.Begin, c.End)
	}
	k := &f.Kinds[c.Kind]
	for _, s := range c.Steps {
		p := -1
		if s[0] >= 0 && s[0] <= 1<<32-1 {
			p = k.Program(s[0])
		}
		if p < 0 || s[1] < 0 || s[1] >= int64(len(f.Programs[p])) || s[3] < s[2] {
			return fmt.Errorf("step %v: pass, step, begin and end", s)
		}
	}
	return nil
}
