// Package rule chooses plans without measurements: by the collective, its size and the
// layout of the ranks. It also outlines the tasks for which a plan has to choose.
//
// The rule is three tables of rows: for the shape, for the cut into segments, and for the
// algorithm of each operation. The first row whose conditions hold is taken. rows.md shows
// them all.
//
// It never measures and reads no decision table. Equal arguments give equal plans, on all
// ranks.
//
//	plan, why := rule.Choose(request, topology, tasks.Plan{})
package rule

import (
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Choose returns the plan while there are no measurements, and why. It follows HAN's
// reasoning (section III): shared memory inside nodes, event-driven trees between
// them, a chain or a ring once there are enough segments to fill it, and no
// hierarchy where it would break the order of a non-commutative operation. It fits
// the shape and the order that forced asks for, and chooses for the tasks that the
// shape has. Inside a node large messages go through shared memory. Goroutine ranks,
// which [levels.Topology.IsOneProcess] reports, read them where they lie.
func Choose(r tasks.Request, t *levels.Topology, forced tasks.Plan) (tasks.Plan, []string) {
	q := newQuestion(r, t, forced)
	p := tasks.Plan{Shape: forced.Shape, Order: forced.Order}
	var why []string
	if p.Shape == 0 {
		row := first(shapes, q)
		p.Shape = row.choose
		why = append(why, "shape="+p.Shape.String()+": "+q.fill(row.because))
	}
	q.shape = p.Shape
	row := first(cuts, q)
	p.Segment, p.Window = row.choose.segment(q), row.choose.window
	why = append(why, "fs="+tasks.FormatBytes(p.Segment)+row.choose.unit+": "+q.fill(row.because))
	g, err := Outline(r, t, p)
	if err != nil {
		return p, why // a forced shape that doesn't fit; compiling says so
	}
	for k := range g.On.Depth() {
		q.inside = g.On.WithinNodes(k)
		p = q.level(p, KindsAt(g, k))
	}
	return p, why
}

// question is what the conditions of rows ask about.
type question struct {
	request tasks.Request
	on      *levels.Topology
	bytes   int64 // of all blocks
	blocks  int64 // how many of the largest size make up bytes; 1 <= blocks; without blocks 1
	order   tasks.Order
	ordered bool             // the operation doesn't commute
	free    bool             // no algorithm is forced, nor an order
	shape   tasks.Shape      // from the cut on; 0: it is asked for
	op      tasks.Collective // of the tasks that an algorithm is chosen for
	inside  bool             // op is inside nodes
}

func newQuestion(r tasks.Request, t *levels.Topology, forced tasks.Plan) *question {
	q := &question{
		request: r, on: t, order: forced.Order, bytes: r.AllBytes(t.Size()), blocks: 1,
		ordered: r.Reduces() && !r.Op.Commutative(),
		free:    len(forced.Keys()) == 0 && forced.Order == tasks.AnyOrder,
	}
	if r.Blocks() {
		q.blocks = int64(t.Size())
	}
	if r.Differ() && r.Count > 0 {
		q.blocks = (q.bytes + r.Bytes() - 1) / r.Bytes()
	}
	return q
}

// fill puts what q is about in place of the words {nodes}, {op} and {piece}.
func (q *question) fill(because string) string {
	if !strings.Contains(because, "{") {
		return because
	}
	return strings.NewReplacer(
		"{nodes}", strconv.Itoa(q.on.Nodes()),
		"{op}", q.request.Op.String(),
		"{piece}", tasks.FormatBytes(q.ringPiece()),
	).Replace(because)
}

// level chooses for the tasks of a level: in one word where they are done alike.
func (q *question) level(p tasks.Plan, kinds []tasks.Kind) tasks.Plan {
	var usual tasks.Choice
	for i, kind := range kinds {
		q.op = kind.Op
		c := first(algorithms, q).choose
		if i == 0 {
			usual = c
			p = p.Set(string(kind.Symbol), c)
		} else if c != usual {
			p = p.Set(kind.String(), c)
		}
	}
	return p
}
