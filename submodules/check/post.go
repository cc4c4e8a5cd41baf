package check

import (
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// post checks what the collective promises about the end.
func (w *world) post() error {
	r := w.progs[0].Request
	if r.Coll == tasks.Barrier {
		return w.together()
	}
	want := []levels.Rank{r.Root}
	if r.Reduces() {
		want = want[:0]
		for rank := range w.progs {
			want = append(want, levels.Rank(rank))
		}
	}
	for rank := range w.progs {
		if !r.Receives(levels.Rank(rank)) {
			continue
		}
		if err := w.holds(rank, r, want); err != nil {
			return fmt.Errorf("in the end rank %d's receive buffer: %w", rank, err)
		}
	}
	return nil
}

// holds checks that a rank's receive buffer has all data of the wanted ranks,
// combined in their order if the operation asks for it.
func (w *world) holds(rank int, r tasks.Request, want []levels.Rank) error {
	content, err := w.memory[w.index(rank, tasks.Recv)].read(0, r.Bytes())
	if err != nil {
		return err
	}
	for _, p := range content {
		got := p.ranks
		if r.Reduces() && r.Op.Commutative() {
			got = slices.Sorted(slices.Values(got))
		}
		if p.off != p.lo || !slices.Equal(got, want) {
			from := "the caller"
			if p.by != caller {
				from = w.label(p.by)
			}
			return fmt.Errorf("bytes %d to %d hold %v from offset %d by %s, want %v", p.lo, p.hi, p.ranks, p.off, from, want)
		}
	}
	return nil
}

// together checks a barrier: no rank's run ends before all have begun.
func (w *world) together() error {
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
