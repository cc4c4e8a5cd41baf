package planner

import (
	"fmt"

	"github.com/tierflow/tierflow/tasks"
)

// canonical checks a request and clears fields without use for its collective on this rank.
func (b *base) canonical(r tasks.Request) (tasks.Request, error) {
	if err := r.Validate(b.topology.Size()); err != nil {
		return r, fmt.Errorf("%v: %w", r.Coll, err)
	}
	if !r.Coll.HasData() {
		return tasks.Request{Coll: r.Coll}, nil
	}
	if !r.Reduces() {
		r.Op = tasks.Op{}
	}
	if !r.Rooted() {
		r.Root = 0
	}
	if r.Count == 0 {
		r.Counts, r.Matrix = tasks.Counts{}, tasks.Matrix{}
	}
	r.InPlace = r.InPlace && b.hasBoth(r)
	return r, nil
}

// hasBoth reports whether this rank puts something in and gets something, apart.
func (b *base) hasBoth(r tasks.Request) bool {
	r.InPlace = false
	me := b.comm.Rank()
	return r.Coll.Row().Placement != tasks.OnlyRecv && r.Gives(me) && r.Receives(me)
}

// checkBuffers checks the lengths of a rank's buffers, and that they lie apart.
func (b *base) checkBuffers(r tasks.Request, send, recv []byte) error {
	me := b.comm.Rank()
	wantSend, wantRecv := r.Buffers(me, b.topology.Size())
	if int64(len(send)) != wantSend || int64(len(recv)) != wantRecv {
		return fmt.Errorf("%v: buffers of %d bytes to send and %d to receive; rank %d must give %d and %d", r, len(send), len(recv), me, wantSend, wantRecv)
	}
	if overlap(send, recv) {
		return fmt.Errorf("%v: %w", r, errOverlap)
	}
	return nil
}
