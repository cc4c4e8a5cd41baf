// Package check proves programs right before they run. It takes the programs of all ranks of one
// request, moves no bytes, and lets a buffer hold the names of ranks in place of their data.
// Every send must meet a recv. Nothing may wait in a circle, even if no message is buffered. Two
// steps on the same bytes must be ordered. In the end every buffer must hold the collective's
// result. Before that the task graphs are audited: another graph library has to find the same
// edges, and the order right.
//
// It is a tool for tests and for tierflow verify; no run needs it.
//
//	report, err := check.Request(req, topo, plan, all.Submodules())
package check

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// ErrTooLarge is returned for a case of more steps than asked for.
var ErrTooLarge = errors.New("too many steps to check")

// Report is the work of a checked case, summed over all ranks.
type Report struct {
	Steps    int
	Messages int   // sends
	Sent     int64 // bytes through links
	Copied   int64 // bytes by copy steps
	Reduced  int64 // bytes by reduce steps
	Shared   int64 // bytes copied only by processes that can't read each other's memory
}

// Request compiles a request for all ranks and checks it, all passes' graphs
// included. A case of more than limit steps is not checked: ErrTooLarge; limit 0
// is none. Task graphs are audited, see [tasks.Graph.Audit].
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
	var audited graphs
	for rank := range progs {
		var err error
		if progs[rank], err = submodules.CompileFor(r, h, p, levels.Rank(rank), reg); err != nil {
			return Report{}, err
		}
		if steps += progs[rank].Len(); limit > 0 && steps > limit {
			return Report{Steps: steps}, fmt.Errorf("%w: over %d", ErrTooLarge, limit)
		}
		if err := audited.add(progs[rank].Tasks); err != nil {
			return Report{Steps: steps}, err
		}
	}
	return Programs(progs)
}

// Programs checks the programs of all ranks, index = rank, of one request. It does so for ranks
// with access to each other's memory and, if it makes a difference, for processes without it.
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

// rank is the rank of step number n.
func (w *world) rank(n int) int {
	return sort.SearchInts(w.first, n+1) - 1
}

func (w *world) step(n int) *submodules.Step {
	r := w.rank(n)
	return &w.progs[r].Steps()[n-w.first[r]]
}

func (w *world) label(n int) string { return w.progs[w.rank(n)].Label(w.step(n)) }
