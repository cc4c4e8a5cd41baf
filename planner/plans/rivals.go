package plans

import (
	"slices"

	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Rivals lists the plans for a request that compete with ruled, the rule's plan: the shapes and algorithms
// between nodes in the table of competitors, with segments and windows. Inside nodes they have the choices
// of ruled, and those of sm and solo. There are none on one node, for operations in the order of ranks, and for collectives
// without prices.
func Rivals(asked *builtin.Asked, ruled tasks.Plan) []tasks.Plan {
	r, t := asked.Request(), asked.On
	q := &question{asked: asked, request: r, on: t, nodes: t.Nodes(), bytes: r.AllBytes(t.Size()), blocks: 1}
	if q.nodes < 2 || r.Differ() || r.Reduces() && !r.Op.Commutative() {
		return nil
	}
	if r.Blocks() {
		q.blocks = int64(t.Size())
	}
	q.top = string(t.Level(t.Depth() - 1).Symbol)
	q.inside(ruled)
	for _, s := range competitors[r.Coll] {
		for _, n := range s.segments {
			if n != tasks.Whole && (n >= q.bytes || q.bytes <= builtin.CutFrom) {
				continue
			}
			for i := range s.rows {
				q.add(&s.rows[i], n)
			}
		}
	}
	return q.all
}

// inside lists the choices for the inside of nodes: first those of the rule's plan.
func (q *question) inside(ruled tasks.Plan) {
	if q.on.Size() == q.nodes {
		q.insides = []tasks.Plan{{}}
		return
	}
	if s := ruled.Shape; s.IsFlat() || s == tasks.Lanes {
		ruled, _ = q.asked.Choose(tasks.Plan{Shape: tasks.Han})
	}
	var first tasks.Plan
	for _, key := range ruled.Keys() {
		if key[:1] != q.top {
			c, _ := ruled.Choice(key)
			first = first.Set(key, c)
		}
	}
	q.insides = []tasks.Plan{first}
	all := []tasks.Choice{{Submodule: submodules.SM, Algorithm: submodules.Rings}, {Submodule: submodules.SM}}
	if q.request.Bytes() >= builtin.SoloFrom {
		all = append(all, tasks.Choice{Submodule: submodules.Solo})
	}
	for _, c := range all {
		if p := q.everywhereInside(c); !p.Equal(first) {
			q.insides = append(q.insides, p)
		}
	}
}

// everywhereInside is a choice at all levels inside nodes.
func (q *question) everywhereInside(c tasks.Choice) (p tasks.Plan) {
	for k := range q.on.Depth() - 1 {
		p = p.Set(string(q.on.Level(k).Symbol), c)
	}
	return p
}

// add adds a row's plans for a segment, if all of its conditions hold. With one rank a node, plans of all
// ranks and of lanes are those of the nodes.
func (q *question) add(r *row, segment int64) {
	c := &entry{q, r.shape, q.nodes, segment}
	if r.shape.IsFlat() {
		c.ranks = q.on.Size()
	}
	if (r.shape.IsFlat() || r.shape == tasks.Lanes) && !sharing(c) || slices.ContainsFunc(r.when, func(holds condition) bool { return !holds(c) }) {
		return
	}
	bare := tasks.Plan{Shape: r.shape, Segment: segment, Window: r.window}
	if r.ring != nil {
		bare.Segment = max(min(r.ring(c), q.bytes)/q.blocks, 1)
	}
	choices := r.choices
	if choices == nil {
		choices = c.schedules()
	}
	for _, between := range choices {
		p := bare
		for _, key := range between.Keys() {
			one, _ := between.Choice(key)
			p = p.Set(q.top+key[1:], one)
		}
		q.complete(p)
	}
}

// complete adds a plan with each choice for the inside of nodes.
func (q *question) complete(p tasks.Plan) {
	if p.Shape.IsFlat() {
		q.all = append(q.all, p)
		return
	}
	insides := q.insides
	if p.Shape == tasks.Lanes && q.request.Coll == tasks.Alltoall { // inside, too, all give all others something
		pairwise := q.everywhereInside(tasks.Choice{Submodule: submodules.Adapt, Algorithm: submodules.Pairwise})
		insides = append(insides[:len(insides):len(insides)], pairwise)
	}
	for _, inside := range insides {
		if c, _ := inside.Choice("s"); c.Submodule == submodules.Solo && min(p.Segment, q.request.Bytes()) < builtin.SoloFrom {
			continue
		}
		q.all = append(q.all, p.Over(inside))
	}
}
