package sim

import (
	"fmt"
	"slices"
)

// Result is the outcome of a simulation.
type Result struct {
	Time  Time    // when the last rank has finished
	End   []Time  // by rank: when it has finished
	Busy  []Time  // by rank: how long its processor was busy
	Links []Link  // in the order of the topology's levels, then by domain
	Path  []Piece // the critical path, from the start to Time; nil unless [Options] ask for it
	Counts
}

// Counts are how much a simulation had to do.
type Counts struct {
	Steps    int64 // executed by all ranks
	Messages int64 // with payload and without
	Bytes    int64 // of payload
	Events   int64 // of the simulation
}

// Link is how much the wires of a domain were used, in both directions.
type Link struct {
	Level   byte // symbol of the link's level
	Domain  int  // of the level inside; at the innermost level the rank
	Out, In Use
}

// Use is how much one direction of a link was used. Messages inside a domain are not counted, and
// none if the machine has no time per byte and no gap.
type Use struct {
	Messages int64
	Bytes    int64 // of payload
	Busy     Time  // the wire carried something
	Waited   Time  // messages waited for it, all together
}

// makeResult returns the outcome. starts are those of [Options].
func (e *engine) makeResult(starts []Time) *Result {
	times := e.job.symmetry.times()
	r := &Result{Counts: e.counts}
	r.Steps, r.Messages, r.Bytes = r.Steps*int64(times), r.Messages*int64(times), r.Bytes*int64(times)
	for range times {
		for i := range e.ranks {
			r.End = append(r.End, e.ranks[i].end)
			r.Busy = append(r.Busy, e.ranks[i].busy)
		}
	}
	r.Time = slices.Max(r.End)
	for k, wires := range e.wires {
		if l := &e.prices.links[k]; l.isWired {
			for d, w := range wires[:len(wires)/times] {
				r.Links = append(r.Links, Link{l.symbol, d, w.out.Use, w.in.Use})
			}
		}
	}
	if e.log != nil {
		r.Path = e.log.tracePath(r.Time, starts)
	}
	return r
}

// explainStuck names the step of the first unfinished rank: programs don't fit together, or wait for each
// other.
func (e *engine) explainStuck() error {
	for i := range e.ranks {
		r := &e.ranks[i]
		if r.end >= 0 {
			continue
		}
		for id := range r.form.len() {
			if r.flags[id]&(reached|ended) == reached {
				return fmt.Errorf("simulate: %d ranks never finish; rank %d waits in %s", e.left, i, e.job.label(r.seat, r.id, int32(id)))
			}
		}
		return fmt.Errorf("simulate: %d ranks never finish; rank %d has %d steps that wait for each other", e.left, i, r.left)
	}
	return nil
}
