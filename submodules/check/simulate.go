package check

import (
	"fmt"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

const regions = int(tasks.Peer) // number of regions of memory, 0 unused

// access is a step's touch of bytes of one rank's region.
type access struct {
	step   int
	write  bool
	lo, hi int64
}

// place is the true place of a span: peers' memory is resolved to the owner's.
type place struct {
	mem    int // index into world.memory
	lo, hi int64
}

func (w *world) index(rank int, r tasks.Region) int { return rank*regions + int(r) }

// locate resolves a span of step n. Memory behind an await belongs to the rank of the exposing
// notify.
func (w *world) locate(n int, s tasks.Span) (place, error) {
	rank := w.rank(n)
	if s.Region == tasks.Peer {
		told, err := w.exposing(n, s)
		if err != nil {
			return place{}, err
		}
		exposed := w.exposedMemory(told)
		rank, s.Region, s.Off = w.rank(told), exposed.Region, s.Off+exposed.Off
	}
	size := w.size(rank, s.Region)
	if s.Off < 0 || s.Len < 0 || s.Len > size-s.Off {
		return place{}, fmt.Errorf("%s: touches bytes %d to %d of rank %d's %v, which has %d",
			w.label(n), s.Off, s.Off+s.Len, rank, s.Region, size)
	}
	return place{w.index(rank, s.Region), s.Off, s.Off + s.Len}, nil
}

// exposing finds the notify behind the memory that step n touches. Before its await has ended a
// rank doesn't know the place.
func (w *world) exposing(n int, s tasks.Span) (int, error) {
	rank := w.rank(n)
	if s.Ref < 0 || int(s.Ref) >= w.progs[rank].Len() || w.progs[rank].Step(dag.ID(s.Ref)).Kind != submodules.AwaitStep {
		return 0, fmt.Errorf("%s: %v is not behind an await", w.label(n), s)
	}
	await := w.first[rank] + int(s.Ref)
	told := w.mate[await]
	if exposed := w.exposedMemory(told); exposed.Region == 0 || exposed.Region == tasks.Peer || s.Off < 0 || s.Len > exposed.Len-s.Off {
		return 0, fmt.Errorf("%s: touches %v, but %s exposes %v", w.label(n), s, w.label(told), exposed)
	}
	w.order.want(w.end(await), w.start(n), func() error {
		return fmt.Errorf("%s may touch %v before %s", w.label(n), s, w.label(await))
	})
	return told, nil
}

// exposedMemory returns the memory that a notify lets others read; between processes that can't read
// each other's, its backup.
func (w *world) exposedMemory(told int) tasks.Span {
	s := w.step(told)
	if w.apart && s.B.Region != 0 {
		return s.B
	}
	return s.A
}

// size is the bytes of a rank's region; none if it is no memory.
func (w *world) size(rank int, r tasks.Region) int64 {
	p := w.progs[rank]
	switch r {
	case tasks.Send:
		send, _ := p.Request.Buffers(p.Rank, p.Size)
		return send
	case tasks.Recv:
		_, recv := p.Request.Buffers(p.Rank, p.Size)
		return recv
	case tasks.Scratch:
		return p.Scratch
	case tasks.Slot:
		return p.Slots
	case tasks.Backup:
		return p.Backup
	}
	return 0
}

// simulate runs all steps in one legal order on symbolic memory.
func (w *world) simulate() error {
	w.memory = make([]*memory, len(w.progs)*regions)
	for i := range w.memory {
		w.memory[i] = &memory{}
	}
	w.pre()
	sent := make([][]piece, w.total)
	for _, id := range w.order.Order() {
		if n := int(id) / 2; n < w.total {
			if err := w.moment(n, id == w.start(n), sent); err != nil {
				return err
			}
		}
	}
	return nil
}

// moment does a step's work at its start or its end: a send reads when it starts, everything
// else happens at the end.
func (w *world) moment(n int, start bool, sent [][]piece) (err error) {
	s := w.step(n)
	switch {
	case s.Kind == submodules.SendStep && start:
		sent[n], err = w.load(n, s.A)
	case s.Kind == submodules.RecvStep && !start:
		err = w.store(n, s.Dst, sent[w.mate[n]])
	case s.Kind == submodules.CopyStep && !start:
		w.report.Copied += s.Len()
		err = w.compute(n, s)
	case s.Kind == submodules.ShareStep && !start && w.apart:
		w.report.Shared += s.Len()
		err = w.compute(n, s)
	case s.Kind == submodules.ReduceStep && !start:
		w.report.Reduced += s.Len()
		err = w.compute(n, s)
	}
	return err
}

func (w *world) compute(n int, s *submodules.Step) error {
	if s.Dst.Len != s.A.Len || s.Kind == submodules.ReduceStep && s.B.Len != s.A.Len {
		return fmt.Errorf("%s: operands %v, %v, %v differ in length", w.label(n), s.Dst, s.A, s.B)
	}
	content, err := w.load(n, s.A)
	if err != nil {
		return err
	}
	if s.Kind == submodules.ReduceStep {
		other, err := w.load(n, s.B)
		if err != nil {
			return err
		}
		if content, err = combine(content, other); err != nil {
			return fmt.Errorf("%s: %w", w.label(n), err)
		}
	}
	return w.store(n, s.Dst, content)
}

func (w *world) load(n int, s tasks.Span) ([]piece, error) {
	at, err := w.touch(n, s, false)
	if err != nil {
		return nil, err
	}
	content, err := w.memory[at.mem].read(at.lo, at.hi)
	if err != nil {
		return nil, fmt.Errorf("%s: %w of %v", w.label(n), err, s)
	}
	return relative(content, at.lo), nil
}

func (w *world) store(n int, s tasks.Span, content []piece) error {
	at, err := w.touch(n, s, true)
	if err != nil {
		return err
	}
	if s.Region == tasks.Send || s.Region == tasks.Peer {
		return fmt.Errorf("%s: writes %v", w.label(n), s)
	}
	for i := range content {
		content[i].by = n
	}
	w.memory[at.mem].write(at.lo, content)
	return nil
}

// touch records an access for the race check.
func (w *world) touch(n int, s tasks.Span, write bool) (place, error) {
	at, err := w.locate(n, s)
	if err == nil && at.hi > at.lo {
		w.access[at.mem] = append(w.access[at.mem], access{n, write, at.lo, at.hi})
	}
	return at, err
}

// pre fills the callers' buffers as the collective finds them.
func (w *world) pre() {
	for rank, p := range w.progs {
		r := p.Request
		for _, in := range r.Given(levels.Rank(rank), p.Size) {
			own := value{ranks: []levels.Rank{in.From}, off: in.Off, by: caller}
			w.memory[w.index(rank, r.Input(p.Rank))].write(in.At, []piece{{0, in.Len, own}})
		}
	}
}
