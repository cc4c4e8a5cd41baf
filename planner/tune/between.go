package tune

import (
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/tasks"
)

// guestPlans returns the built-in rule's plans for requests answered by a line from one of some
// requests to another: sizes of message up to those next to it, and the space's machines around.
// A plan without a time at both ends of a line can't be chosen between them.
func (s Space) guestPlans(r tasks.Request, all []tasks.Request, on *levels.Topology) (plans []tasks.Plan) {
	add := func(other tasks.Request, t *levels.Topology) {
		plans = append(plans, table.Canonical(s.Rule(other, t), r.Bytes()))
	}
	below, above := nextTo(r, all)
	for n := 2 * max(below, 1); below > 0 && n < r.Bytes(); n *= 2 {
		add(resizeRequest(r, n), on)
	}
	for n := 2 * max(r.Bytes(), 1); n < above; n *= 2 {
		add(resizeRequest(r, n), on)
	}
	for _, t := range s.Around {
		if int(r.Root) < t.Size() {
			add(r, t)
		}
	}
	return plans
}

// nextTo returns the next smaller and the next larger size of a request's collective among
// all, bytes; 0: there is none.
func nextTo(r tasks.Request, all []tasks.Request) (below, above int64) {
	for _, other := range all {
		n := other.Bytes()
		switch {
		case other.Coll != r.Coll || other.Uneven() != r.Uneven():
		case n < r.Bytes():
			below = max(below, n)
		case n > r.Bytes() && (above == 0 || n < above):
			above = n
		}
	}
	return below, above
}

// resizeRequest returns a request with elements of so many bytes in all, rounded down to whole ones. If blocks
// differ these are the largest block's.
func resizeRequest(r tasks.Request, bytes int64) tasks.Request {
	like := r
	r.Counts, r.Matrix, r.Count = tasks.Counts{}, tasks.Matrix{}, bytes/int64(r.Type.Size())
	if times := like.Uneven(); times > 0 {
		r.Count /= int64(times)
		if uneven, err := tasks.MakeUneven(r, times, max(like.Counts.Len(), like.Matrix.Len())); err == nil {
			return uneven
		}
	}
	return r
}
