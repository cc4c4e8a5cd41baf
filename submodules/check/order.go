package check

import (
	"errors"
	"fmt"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/submodules"
)

// order is the order of events over all ranks, each step a start and an end, and two more
// moments per rank: its run's begin and its end.
type order struct {
	*dag.Frozen
	at         []int32 // position of each moment in the topological order
	queries    [][2]dag.ID
	complaints []func() error // the complaint if the query's answer is no
}

func (w *world) start(n int) dag.ID  { return dag.ID(2 * n) }
func (w *world) end(n int) dag.ID    { return dag.ID(2*n + 1) }
func (w *world) begin(r int) dag.ID  { return dag.ID(2*w.total + 2*r) }
func (w *world) finish(r int) dag.ID { return dag.ID(2*w.total + 2*r + 1) }

// The kinds of edges: unbuffered ones hold only if no message is buffered.
const (
	always dag.EdgeKind = iota
	unbuffered
)

// connect builds the order. It must be free of circles even with the edges of synchronous sends:
// such a send ends only when its recv has begun. So everything completes under any credit and
// any buffering. Conflicts are judged without those edges.
func (w *world) connect() error {
	var g dag.Graph[struct{}]
	g.Grow(2*w.total+2*len(w.progs), 8*w.total)
	for range 2 * (w.total + len(w.progs)) {
		g.Add(struct{}{})
	}
	for r, p := range w.progs {
		for id := range p.Len() {
			n := w.first[r] + id
			w.connectStep(&g, n, r)
			for _, next := range p.Succ(dag.ID(id)) {
				g.Connect(w.end(n), w.start(w.first[r]+int(next)), always)
			}
		}
	}
	if _, err := g.Freeze(nil); err != nil {
		return w.circle(err)
	}
	var err error
	w.order.Frozen, err = g.Freeze(func(e dag.Edge) bool { return e.Kind == always })
	if err != nil {
		return w.circle(err)
	}
	w.order.at = make([]int32, g.Len())
	for i, id := range w.order.Order() {
		w.order.at[id] = int32(i)
	}
	return nil
}

func (w *world) connectStep(g *dag.Graph[struct{}], n, rank int) {
	g.Connect(w.begin(rank), w.start(n), always)
	g.Connect(w.start(n), w.end(n), always)
	g.Connect(w.end(n), w.finish(rank), always)
	if s := w.step(n); s.Kind.Outgoing() {
		g.Connect(w.start(n), w.end(w.mate[n]), always)
		if s.Kind == submodules.SendStep {
			g.Connect(w.start(w.mate[n]), w.end(n), unbuffered)
		}
	}
}

// circle names the steps of a deadlock.
func (w *world) circle(err error) error {
	var c *dag.CycleError
	if !errors.As(err, &c) {
		return err
	}
	text := ""
	named := map[int]bool{}
	for _, id := range c.Cycle {
		if n := int(id) / 2; n < w.total && !named[n] { // by its start, its end or both
			named[n] = true
			text += "; " + w.label(n)
		}
	}
	return fmt.Errorf("deadlock: these wait for each other%s", text)
}

// want asks whether a comes before b. If it doesn't, ask returns complain's error.
func (o *order) want(a, b dag.ID, complain func() error) {
	o.queries = append(o.queries, [2]dag.ID{a, b})
	o.complaints = append(o.complaints, complain)
}

func (o *order) ask() error {
	for i, ok := range o.Reaches(o.queries) {
		if !ok {
			return o.complaints[i]()
		}
	}
	o.queries, o.complaints = nil, nil
	return nil
}
