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
	for rank, p := range w.progs {
		if !r.Receives(levels.Rank(rank)) || r.Bytes() == 0 {
			continue
		}
		for _, b := range promised(r, p.Size) {
			if err := w.holds(rank, r, b); err != nil {
				return fmt.Errorf("in the end rank %d's receive buffer: %w", rank, err)
			}
		}
	}
	return nil
}

// block is a part of a receive buffer, from an offset on, and whose data it must
// hold.
type block struct {
	at   int64
	from []levels.Rank
}

// promised is what a receive buffer holds in the end: the root's data, that of all
// ranks combined in order, or a block of each.
func promised(r tasks.Request, size int) []block {
	if r.Coll == tasks.Bcast {
		return []block{{0, []levels.Rank{r.Root}}}
	}
	var all []levels.Rank
	var blocks []block
	for rank := range levels.Rank(size) {
		all = append(all, rank)
		blocks = append(blocks, block{int64(rank) * r.Stride(), []levels.Rank{rank}})
	}
	if r.Blocks() {
		return blocks
	}
	return []block{{0, all}}
}

// holds checks that a block of a rank's receive buffer has all data of the wanted
// ranks, combined in their order if the operation asks for it.
func (w *world) holds(rank int, r tasks.Request, want block) error {
	content, err := w.memory[w.index(rank, tasks.Recv)].read(want.at, want.at+r.Bytes())
	if err != nil {
		return err
	}
	for _, p := range content {
		got := p.ranks
		if r.Reduces() && r.Op.Commutative() {
			got = slices.Sorted(slices.Values(got))
		}
		if p.off != p.lo-want.at || !slices.Equal(got, want.from) {
			from := "the caller"
			if p.by != caller {
				from = w.label(p.by)
			}
			return fmt.Errorf("bytes %d to %d hold %v from offset %d by %s, want %v", p.lo, p.hi, p.ranks, p.off, from, want.from)
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
