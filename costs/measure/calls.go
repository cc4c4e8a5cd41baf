package measure

import (
	"context"
	"errors"
	"time"

	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// calls are those of one collective on one rank, with buffers of its own.
type calls struct {
	bench      *Bench
	request    tasks.Request
	plan       tasks.Plan
	send, recv []byte
	turns      []call // the collective from one root after the other; without a root one
	turn       int    // the next of turns
	each       int    // calls of a sample; 1 <= each
}

// call is a collective from a root.
type call struct {
	root levels.Rank // 0 without one
	run  *executor.Run
}

const (
	// followTime is the time of a sample of calls back to back. Longer calls are single.
	followTime = 5 * time.Millisecond
	mostCalls  = 2000 // of a sample
	leastTries = 5    // of single calls; the fastest says how long one takes
	// mostRoots bounds the programs for calls from different roots.
	mostRoots = 16
)

// newCalls compiles a collective and gives it buffers. A sample is one call.
func (b *Bench) newCalls(r tasks.Request, p tasks.Plan) (*calls, error) {
	send, recv := r.Buffers(b.Rank(), b.comm.Size())
	c := &calls{bench: b, request: r, plan: p, send: touchedMemory(send), recv: touchedMemory(recv), each: 1}
	return c, c.addCall(r)
}

// addCall compiles one more turn.
func (c *calls) addCall(r tasks.Request) error {
	x, err := c.bench.compileRequest(r, c.plan)
	if err != nil {
		return err
	}
	send, recv := r.Buffers(c.bench.Rank(), c.bench.comm.Size())
	c.send, c.recv = grown(c.send, send), grown(c.recv, recv)
	x.Send, x.Recv = c.send, c.recv
	run, err := c.bench.comm.Bind(x)
	if err == nil {
		c.turns = append(c.turns, call{r.Root, run})
	}
	return err
}

// grown returns at least n bytes of memory: b if it has them.
func grown(b []byte, n int64) []byte {
	if int64(len(b)) < n {
		return touchedMemory(n)
	}
	return b
}

// followCalls makes a sample of as many calls as take [followTime]. The root goes round: else ranks
// that only send would be calls ahead. Roots beyond the plan's reach are left out.
func (c *calls) followCalls(ctx context.Context) error {
	if c.request.Rooted() {
		for _, root := range c.bench.topology.Dealt(mostRoots) {
			r := c.request
			r.Root = root
			if r.Root == c.request.Root {
				continue
			}
			if err := c.addCall(r); err != nil && !errors.Is(err, submodules.ErrUnsupported) {
				return err
			}
		}
	}
	n := max(leastTries, len(c.turns))
	few, err := c.bench.repeatInTurns(ctx, stats.Stop{Least: n, Most: n}, c.sample)
	if err != nil {
		return err
	}
	each := int64(1)
	if c.bench.Rank() == 0 {
		each = callsOfSample(stats.Summarize(few[0].totals()).Min)
	}
	each, err = c.bench.tellNumber(ctx, each)
	c.each = int(each)
	return err
}

// callsOfSample returns how many calls of so many nanoseconds make a sample.
func callsOfSample(ns float64) int64 {
	return max(1, min(mostCalls, int64(float64(followTime)/max(1, ns))))
}

// sample is the subject of this rank's time of a call. After it the rank writes its buffers, as a
// program does between calls.
func (c *calls) sample(ctx context.Context) ([]float64, error) {
	begin := c.bench.now()
	for range c.each {
		if err := c.turns[c.turn].run.Do(ctx); err != nil {
			return nil, err
		}
		c.turn = (c.turn + 1) % len(c.turns)
	}
	took := c.bench.now().Sub(begin)
	rewriteBuffer(c.send)
	rewriteBuffer(c.recv)
	return []float64{float64(took) / float64(c.each)}, nil
}

// rewriteBuffer writes a buffer's contents to it, so that this processor owns its cache lines.
func rewriteBuffer(buf []byte) {
	var spare [page]byte
	for len(buf) > 0 {
		n := copy(spare[:], buf)
		copy(buf, spare[:n])
		buf = buf[n:]
	}
}
