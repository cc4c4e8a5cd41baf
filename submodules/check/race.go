package check

import (
	"fmt"
	"slices"
)

// races checks two promises. Two steps on the same bytes, one of them writing, are
// ordered. No rank's run ends while others still touch its memory, so the next run
// may reuse it.
func (w *world) races() error {
	for mem, list := range w.access {
		slices.SortStableFunc(list, func(a, b access) int {
			return int(w.order.at[w.start(a.step)]) - int(w.order.at[w.start(b.step)])
		})
		t := touched{w: w}
		for _, a := range list {
			if owner := mem / regions; w.rank(a.step) != owner {
				w.order.want(w.end(a.step), w.finish(owner), func() error {
					return fmt.Errorf("%s touches memory of rank %d, whose run may have ended", w.label(a.step), owner)
				})
			}
			t.add(a)
		}
	}
	return w.order.ask()
}

// touched holds, for disjoint ranges, the last write and the reads since. If each two neighbours
// in this history are ordered, all conflicts are.
type touched struct {
	w      *world
	ranges []history
}

type history struct {
	lo, hi int64
	writer int // step, -1 if none
	reads  []int
}

func (t *touched) add(a access) {
	t.split(a.lo)
	t.split(a.hi)
	at := a.lo
	for i := 0; i < len(t.ranges) && at < a.hi; i++ {
		h := &t.ranges[i]
		switch {
		case h.hi <= at:
		case h.lo > at: // bytes not touched before
			t.ranges = slices.Insert(t.ranges, i, history{lo: at, hi: min(h.lo, a.hi), writer: -1})
			i--
		default:
			t.conflict(h, a)
			at = h.hi
		}
	}
	if at < a.hi {
		t.ranges = append(t.ranges, history{lo: at, hi: a.hi, writer: -1})
		t.conflict(&t.ranges[len(t.ranges)-1], a)
	}
}

// split makes at a border between ranges.
func (t *touched) split(at int64) {
	for i, h := range t.ranges {
		if h.lo < at && at < h.hi {
			right := h
			right.lo, right.reads = at, slices.Clone(h.reads)
			t.ranges[i].hi = at
			t.ranges = slices.Insert(t.ranges, i+1, right)
			return
		}
	}
}

func (t *touched) conflict(h *history, a access) {
	if h.writer >= 0 && (!a.write || len(h.reads) == 0) {
		t.wantOrder(h.writer, a.step)
	}
	if !a.write {
		h.reads = append(h.reads, a.step)
		return
	}
	for _, r := range h.reads {
		t.wantOrder(r, a.step)
	}
	h.writer, h.reads = a.step, nil
}

func (t *touched) wantOrder(a, b int) {
	if a == b {
		return // one step may read and write the same bytes
	}
	t.w.order.want(t.w.end(a), t.w.start(b), func() error {
		return fmt.Errorf("%s and %s touch the same bytes in no order", t.w.label(a), t.w.label(b))
	})
}
