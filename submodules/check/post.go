package check

import (
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// post checks the collective's promises about the end.
func (w *world) post() error {
	r := w.progs[0].Request
	if !r.Coll.HasData() {
		return w.checkBarrier()
	}
	for rank, p := range w.progs {
		if err := w.checkUntouched(rank, r); err != nil {
			return err
		}
		for _, want := range r.Promised(levels.Rank(rank), p.Size) {
			if err := w.holds(rank, r, want); err != nil {
				return fmt.Errorf("in the end rank %d's receive buffer: %w", rank, err)
			}
		}
	}
	return nil
}

// checkUntouched checks the receive buffer of rank 0, to which an exscan gives nothing: no step may
// write to it.
func (w *world) checkUntouched(rank int, r tasks.Request) error {
	if rank != 0 || r.Coll != tasks.Exscan {
		return nil
	}
	for _, p := range w.memory[w.index(rank, tasks.Recv)].pieces {
		if p.by != caller {
			return fmt.Errorf("%s: writes bytes %d to %d of the receive buffer of rank 0, which is the caller's", w.label(p.by), p.lo, p.hi)
		}
	}
	return nil
}

// holds checks the content of a piece of a rank's receive buffer, combined in the order of ranks
// if the operation asks for it.
func (w *world) holds(rank int, r tasks.Request, want tasks.Piece) error {
	content, err := w.memory[w.index(rank, tasks.Recv)].read(want.At, want.At+want.Len)
	if err != nil {
		return err
	}
	first, last := want.From, want.From+want.More
	if want.From == tasks.Everyone {
		first, last = 0, levels.Rank(len(w.progs)-1)
	}
	var from []levels.Rank
	for other := first; other <= last; other++ {
		from = append(from, other)
	}
	for _, p := range content {
		got := p.ranks
		if r.Reduces() && r.Op.Commutative() {
			got = slices.Sorted(slices.Values(got))
		}
		if p.off != p.lo-want.At+want.Off || !slices.Equal(got, from) {
			by := "the caller"
			if p.by != caller {
				by = w.label(p.by)
			}
			return fmt.Errorf("bytes %d to %d hold %v from offset %d by %s, want %v", p.lo, p.hi, p.ranks, p.off, by, from)
		}
	}
	return nil
}

// checkBarrier checks a barrier: no rank's run ends before all have begun.
func (w *world) checkBarrier() error {
	for a := range w.progs {
		for b := range w.progs {
			if a == b {
				continue
			}
			w.order.want(w.begin(a), w.finish(b), func() error {
				return fmt.Errorf("rank %d may leave the barrier before rank %d has come", b, a)
			})
		}
	}
	return w.order.ask()
}
