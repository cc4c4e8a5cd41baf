// Package check proves programs right before they run. It takes the programs of all
// ranks of one request, moves no bytes, and lets a buffer hold the names of the ranks
// whose data it would hold. Every send must meet a recv. Nothing may wait in a
// circle, even if no message is buffered. Two steps on the same bytes must be
// ordered. In the end everything must be where the collective says.
//
// It is a tool for tests and for tierflow verify; no run needs it.
//
//	report, err := check.Request(req, topo, plan, all.Submodules())
package check

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// ErrTooLarge is returned for a case of more steps than asked for.
var ErrTooLarge = errors.New("too many steps to check")

// Report is what a checked case would do, summed over all ranks.
type Report struct {
	Steps    int
	Messages int   // sends
	Sent     int64 // bytes through links
	Copied   int64 // bytes by copy steps
	Reduced  int64 // bytes by reduce steps
	Shared   int64 // bytes copied only where processes can't read each other's memory
}

// Request compiles a request for all ranks and checks it, all passes' graphs
// included. A case of more than limit steps is not checked: ErrTooLarge; limit 0
// is none.
func Request(r tasks.Request, t *levels.Topology, p tasks.Plan, reg submodules.Registry, limit int) (Report, error) {
	cut, err := tasks.CutRequest(r, t, p)
	if err != nil {
		return Report{}, err
	}
	var total Report
	for _, part := range cut.Parts() {
		report, err := onePass(part, cut.On, p, reg, limit)
		total.add(report)
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

func (r *Report) add(o Report) {
	r.Steps += o.Steps
	r.Messages += o.Messages
	r.Sent += o.Sent
	r.Copied += o.Copied
	r.Reduced += o.Reduced
	r.Shared += o.Shared
}

func onePass(r tasks.Request, h *levels.Hierarchy, p tasks.Plan, reg submodules.Registry, limit int) (Report, error) {
	progs := make([]*submodules.Program, h.Topology().Size())
	steps := 0
	for rank := range progs {
		var err error
		if progs[rank], err = submodules.CompileFor(r, h, p, levels.Rank(rank), reg); err != nil {
			return Report{}, err
		}
		if steps += progs[rank].Len(); limit > 0 && steps > limit {
			return Report{Steps: steps}, fmt.Errorf("%w: over %d", ErrTooLarge, limit)
		}
	}
	return Programs(progs)
}

// Programs checks the programs of all ranks, index = rank, of one request. It does so
// for ranks that read each other's memory and, if it makes a difference, for
// processes without that right.
func Programs(progs []*submodules.Program) (Report, error) {
	report, err := programs(progs, false)
	if err == nil && slices.ContainsFunc(progs, func(p *submodules.Program) bool { return p.Backup > 0 }) {
		var apart Report
		apart, err = programs(progs, true)
		report.Shared = apart.Shared
	}
	return report, err
}

func programs(progs []*submodules.Program, apart bool) (Report, error) {
	w := newWorld(progs)
	w.apart = apart
	for _, pass := range []func() error{w.match, w.connect, w.simulate, w.races, w.post} {
		if err := pass(); err != nil {
			return w.report, fmt.Errorf("%v on %d ranks with plan %q: %w", progs[0].Request, len(progs), progs[0].Plan, err)
		}
	}
	return w.report, nil
}

// world is all steps of all ranks under one numbering.
type world struct {
	progs  []*submodules.Program
	first  []int      // by rank, number of its first step
	total  int        // steps
	mate   []int      // by step, the step at the other end of its message, -1 if none
	memory []*memory  // by rank and region
	access [][]access // by rank and region
	order  order      // filled by connect
	apart  bool       // processes can't read each other's memory
	report Report
}

func newWorld(progs []*submodules.Program) *world {
	w := &world{progs: progs}
	for _, p := range progs {
		w.first = append(w.first, w.total)
		w.total += p.Len()
	}
	w.report.Steps = w.total
	w.mate = make([]int, w.total)
	w.access = make([][]access, len(progs)*regions)
	return w
}

// rank is whose step number n is.
func (w *world) rank(n int) int {
	lo, hi := 0, len(w.first)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; w.first[mid] <= n {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

func (w *world) step(n int) *submodules.Step {
	r := w.rank(n)
	return &w.progs[r].Steps()[n-w.first[r]]
}

func (w *world) label(n int) string { return w.progs[w.rank(n)].Label(w.step(n)) }
