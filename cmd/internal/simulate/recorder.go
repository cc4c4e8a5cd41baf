package simulate

import (
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/viz"
)

// recorder keeps the steps of a simulation as a trace of a run has them.
type recorder struct {
	job    *sim.Job
	on     *levels.Topology
	events []trace.Event
	ends   viz.Ends
}

// mostDescribed bounds the steps looked at without a trace to write. They take some 0.3 s.
const mostDescribed = 500_000

// add keeps an ended step.
func (r *recorder) add(e sim.Event) {
	r.events = append(r.events, r.event(e))
	r.addEnds(e)
}

// addEnds counts an ended step, and keeps nothing else of it.
func (r *recorder) addEnds(e sim.Event) { r.ends.Add(r.event(e), r.on) }

func (r *recorder) event(e sim.Event) trace.Event {
	return trace.Event{
		Source: r.job.Source(e.Rank, e.Pass), Rank: e.Rank, Pass: uint32(e.Pass), Step: e.Step,
		Begin: int64(e.Begin.Duration()), End: int64(e.End.Duration()),
	}
}

// busiest returns the domain with the busiest wire of each level in each direction; the first of
// equals.
func busiest(links []sim.Link) (all []use) {
	for _, l := range links {
		for _, u := range []use{{l.Level, l.Domain, "out", l.Out}, {l.Level, l.Domain, "in", l.In}} {
			i := slices.IndexFunc(all, func(o use) bool { return o.level == u.level && o.way == u.way })
			if i < 0 {
				all = append(all, u)
			} else if u.Busy > all[i].Busy {
				all[i] = u
			}
		}
	}
	return all
}

// use is how one direction of a domain's wire was used.
type use struct {
	level  byte
	domain int
	way    string
	sim.Use
}

// name returns the domain's name, or the rank with the wire to itself.
func (u *use) name(t *levels.Topology) string {
	for k := range t.Depth() {
		if t.Level(k).Symbol != u.level {
			continue
		}
		if k == 0 {
			return fmt.Sprintf("rank %d", u.domain)
		}
		for r := range levels.Rank(t.Size()) {
			if int(t.Domain(r, k-1)) == u.domain {
				return t.DomainName(r, k-1)
			}
		}
	}
	return "?"
}
