package executor

import (
	"slices"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
)

// inquiry asks a rank that is waited for, and has not come, whether it is through
// with that call already, and it was another one. A probe over the link doesn't
// reach a rank that is in no call: nobody there polls. So this takes the control
// plane, or the engine's lock in the same process.
type inquiry struct {
	from, to    levels.Rank // of the world
	comm        CommID
	seq, digest uint32
	call        *description
}

// inquire asks the ranks that the run waits for and that have not come.
func (r *Run) inquire() {
	e, c := r.comm.e, r.comm
	asked := newRankSet(c.Size())
	r.stuck(func(_ *submodules.Step, peer levels.Rank) {
		n := c.local[peer]
		if r.came.has(n) || asked.has(n) {
			return
		}
		asked.set(n)
		e.asking = append(e.asking, inquiry{e.rank, peer, c.id, r.seq, r.digest, r.call})
	})
}

// answer compares a question with what this rank has called; one about a call that
// it hasn't come to yet is kept for then, once. The lock must not be held.
func (e *Endpoint) answer(q inquiry) {
	e.mu.Lock()
	c := e.comms[q.comm]
	if c == nil || c.local == nil { // it is asked again
		e.mu.Unlock()
		return
	}
	m := wire.Message{Kind: wire.Probe, Comm: q.comm, Seq: q.seq, Digest: q.digest}
	var err error
	switch p := c.remembered(q.seq); {
	case c.broken != nil && c.broken != ErrClosed:
	case c.over(q.seq) && c.number(q.from) >= 0:
		if p.seq == q.seq && p.digest != q.digest {
			err = newMismatch(c.me, c.number(q.from), q.seq, p.call, q.call)
		}
	case c.broken == nil && !slices.Contains(c.early, earlyMessage{m, q.from, -1}):
		c.early = append(c.early, earlyMessage{m, q.from, -1})
	}
	e.mu.Unlock()
	if err != nil {
		e.world.fail(c, e.rank, err)
	}
}
