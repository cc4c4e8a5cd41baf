package tune

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner/profile"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/tasks"
)

// readProfile takes the requests from the profile: its calls on all ranks. Calls of the same
// point of a table are one request.
func (u *Tuning) readProfile() error {
	for _, other := range []string{"ops", "bytes", "min", "max", "dtype", "reduce-op", "machines", "nodes", "ppn", "uneven"} {
		if err := u.CheckExclusive("profile", other); err != nil {
			return err
		}
	}
	if os.Getenv(env.Profile) != "" {
		return kit.Usagef("--profile: unset %s, by which this job would write one", env.Profile)
	}
	p, err := profile.Read(u.profile)
	if err != nil {
		return kit.Usagef("--profile: %w", err)
	}
	t := u.Job.Topology()
	u.calls = &callProfile{Profile: p, requests: map[int]tasks.Request{}}
	seen := map[string]bool{}
	for i := range p.Calls {
		c := &p.Calls[i]
		r, why := u.requestOf(c, t)
		if why != "" {
			u.calls.left = append(u.calls.left, fmt.Sprintf("%s of %s: %s", c.Collective, tasks.FormatBytes(c.Bytes), why))
			continue
		}
		u.calls.requests[i] = r
		if key := pointOf(r, t, ""); !seen[key] {
			seen[key] = true
			u.Requests = append(u.Requests, r)
		}
	}
	if len(u.Requests) == 0 {
		return kit.Usagef("--profile %s: nothing to tune on %v: %s", u.profile, t, strings.Join(u.calls.left, "; "))
	}
	return nil
}

// requestOf returns the request of a kind of calls, or why there is none.
func (u *Tuning) requestOf(c *profile.Call, t *levels.Topology) (r tasks.Request, why string) {
	r, err := c.Request()
	if err == nil {
		err = r.Validate(t.Size())
	}
	switch {
	case err != nil:
		return r, err.Error()
	case c.On != t.String():
		return r, "on " + c.On
	case r.Differ() && u.method == tune.Learn.String():
		return r, "blocks that differ, which method learn doesn't know"
	case !u.fits(r, t.Size()):
		return r, "too large to measure"
	}
	return r, ""
}

// pointOf names the point of a table for a request.
func pointOf(r tasks.Request, t *levels.Topology, links string) string {
	e := table.PointOf(r, t, links)
	return e.Key()
}

// callProfile is a profile to tune for.
type callProfile struct {
	*profile.Profile
	requests map[int]tasks.Request // by call
	left     []string              // calls left out, and why
}

// BreakEven says when tuning pays: a program like the profile's calls faster, and tuning took a
// while. Times of calls are those of the table: the profile's include waiting for late ranks.
type BreakEven struct {
	Calls   int64   `json:"calls"`          // of the profile, with known times
	Unknown int64   `json:"unknown"`        // calls of plans not measured, or left out
	Before  float64 `json:"before_seconds"` // for these calls by the profile's plans
	After   float64 `json:"after_seconds"`  // by the table's
	Job     float64 `json:"job_seconds"`    // of the profile's whole job
	Tuning  float64 `json:"tuning_seconds"`
	Pays    float64 `json:"pays_after_calls"`   // so many calls of the profile's mix; 0: never
	Running float64 `json:"pays_after_seconds"` // so long the program runs untuned: s/(s−1) of Tuning if it becomes s times as fast (ACCLAiM, figure 15)
}

// breakEven compares the profile's plans with the table's, if both were measured.
func (p *callProfile) breakEven(made *table.Table, t *levels.Topology, links string) BreakEven {
	b := BreakEven{Job: p.Seconds, Tuning: made.Provenance.Seconds}
	best, times := map[string]float64{}, map[string]float64{}
	for i := range made.Entries {
		if e := &made.Entries[i]; len(e.Candidates) > 0 {
			best[e.Key()] = e.Candidates[0].NS
			for _, c := range e.Candidates {
				times[e.Key()+c.Plan] = c.NS
			}
		}
	}
	for _, m := range made.Measured {
		e := table.Entry{Collective: m.Collective, Levels: m.Levels, Place: m.Place, Bytes: m.Bytes}
		times[e.Key()+m.Plan] = m.NS
	}
	for i, c := range p.Calls {
		r, is := p.requests[i]
		plan, err := tasks.ParsePlan(c.Plan)
		point := ""
		if is && err == nil {
			point = pointOf(r, t, links)
		}
		before := times[point+table.Canonical(plan, r.Bytes()).String()]
		if before == 0 || best[point] == 0 {
			b.Unknown += c.Calls
			continue
		}
		b.Calls += c.Calls
		b.Before += before * float64(c.Calls) / 1e9
		b.After += min(before, best[point]) * float64(c.Calls) / 1e9
	}
	if saved := b.Before - b.After; saved > 0 {
		b.Pays, b.Running = b.Tuning/saved*float64(b.Calls), b.Tuning/saved*b.Job
	}
	return b
}

// print prints one line.
func (b *BreakEven) print(out io.Writer, file string) {
	saved := b.Before - b.After
	fmt.Fprintf(out, "break even: tuning took %.3g s; %d calls of %s take %.3g s, and took %.3g s by its plans", b.Tuning, b.Calls, file, b.After, b.Before)
	if saved > 0 {
		fmt.Fprintf(out, ": it pays after %.3g calls, which such a program makes in %v; it becomes %.3g times as fast",
			b.Pays, time.Duration(b.Running*1e9).Round(time.Second), b.Job/max(b.Job-saved, 1e-9))
	} else {
		fmt.Fprint(out, ": it doesn't pay")
	}
	if b.Unknown > 0 {
		fmt.Fprintf(out, "; of %d more calls nobody knows both times", b.Unknown)
	}
	fmt.Fprintln(out)
}

// printLeft lists the calls of the profile left out.
func (p *callProfile) printLeft(out io.Writer, file string) {
	slices.Sort(p.left)
	for _, text := range slices.Compact(p.left) {
		fmt.Fprintf(out, "%s: left out %s\n", file, text)
	}
}
