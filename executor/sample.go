package executor

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock"
	"github.com/tierflow/tierflow/submodules"
)

// about says what the calls of a binding are.
func (c *Comm) about(b *Binding) *trace.Bound {
	t := &trace.Bound{
		Comm: uint64(c.id), Rank: c.me, Members: c.ranks, Request: b.Request, Operation: b.Operation, Plan: b.Plan,
		Bytes: int64(max(len(b.Send), len(b.Recv))), Passes: b.Passes,
	}
	// A nil program is no nil interface.
	for at, p := range map[*trace.Linked]*submodules.Program{&t.Whole: b.Whole, &t.Rest: b.Rest} {
		if p != nil {
			*at = p
		}
	}
	return t
}

// beginSample lets the call that begins be kept.
func (r *Run) beginSample() {
	if r.about == nil {
		return
	}
	e := r.comm.e
	r.last = e.traceTime()
	r.sampled, r.number = true, e.samples.Begin(r.about, r.seq, r.last)
}

// endSample ends it.
func (r *Run) endSample(err error) {
	if !r.sampled {
		return
	}
	r.sampled = false
	if r.comm.e.world.config.Hooks.Step == nil {
		r.begun = nil
	}
	if err == nil {
		r.comm.e.samples.End(r.number, r.comm.e.traceTime())
	}
}

// Trace lets the ranks of this process keep the steps of some calls, of those that are
// bound from now on. [World.Close] writes the files. All ranks must be told the same Every:
// then all keep the same calls. The first rank of each node compares the node's clock with rank 0's,
// now, each second, and when it closes; a node whose clock is rank 0's need not.
func (w *World) Trace(o TraceOptions) error {
	if o.Every < 1 || len(o.Nodes) != w.Size() || o.Dir == "" {
		return fmt.Errorf("trace every %d calls of %d ranks on %d nodes to %q: allowed are 1 and more, and a node for each rank", o.Every, w.Size(), len(o.Nodes), o.Dir)
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return ErrClosed
	}
	t := &tracing{TraceOptions: o, clock: clockName(), stop: func() {}}
	epoch := w.config.Hooks.Epoch
	t.base = monotonic() - int64(time.Since(epoch))
	for range 16 { // the machine's clock is read first: the largest is nearest
		if b := monotonic() - int64(time.Since(epoch)); b > t.base {
			t.base = b
		}
	}
	w.tracing = t
	w.eachLocal(func(e *Endpoint) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.samples = trace.NewRing(o.Every, 0, 0)
	})
	if c := w.control; c != nil && t.isFirst(c.me) && o.Nodes[c.me] != o.Nodes[0] {
		ctx, cancel := context.WithCancel(context.Background())
		t.stop = cancel
		t.asked.Go(func() { t.compareClocks(ctx, c) }) // endTrace waits for it
	}
	return nil
}

// isFirst reports whether a rank is the first of its node.
func (t *tracing) isFirst(r levels.Rank) bool {
	for _, node := range t.Nodes[:r] {
		if node == t.Nodes[r] {
			return false
		}
	}
	return true
}

// traceSuffix ends the names of traces.
const traceSuffix = ".trace"

// endTrace writes what was kept.
func (w *World) endTrace() error {
	t := w.tracing
	if t == nil {
		return nil
	}
	t.stop()
	t.asked.Wait()
	return w.writeTraces()
}

// KeepTraces writes what the ranks of this process have kept until now, as Close does at the end: whoever
// ends the job may not let it come to that. A world without a trace, or one that is being closed, does nothing.
func (w *World) KeepTraces() error {
	if !w.mu.TryLock() {
		return nil
	}
	defer w.mu.Unlock()
	if w.tracing == nil || w.closed {
		return nil
	}
	return w.writeTraces()
}

// writeTraces writes a file for each rank of this process; none for one that is in a caller's operation all the time.
func (w *World) writeTraces() error {
	t := w.tracing
	var errs []error
	w.eachLocal(func(e *Endpoint) {
		if !e.lockWithin(lockTime) {
			return
		}
		f := e.samples.File(t.base)
		e.mu.Unlock()
		t.mu.Lock()
		f.Job, f.Rank, f.Nodes, f.Clock, f.Ahead = t.Job, int(e.rank), t.Nodes, t.clock, clock.Map{PPM: t.ahead.PPM, Fixes: slices.Clone(t.ahead.Fixes)}
		t.mu.Unlock()
		errs = append(errs, keepTrace(filepath.Join(t.Dir, fmt.Sprintf("r%d%s", e.rank, traceSuffix)), f))
	})
	return errors.Join(errs...)
}

// keepTrace writes a file, which appears whole or not at all.
func keepTrace(name string, f *trace.File) error {
	out, err := os.CreateTemp(filepath.Dir(name), ".new")
	if err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	err = errors.Join(f.Write(out), out.Close())
	if err == nil {
		err = os.Rename(out.Name(), name)
	}
	if err != nil {
		os.Remove(out.Name())
		return fmt.Errorf("trace: %w", err)
	}
	return nil
}

// ClockPurpose is that of a connection over which a node compares its clock with rank 0's.
const ClockPurpose uint8 = 4

// Pings of the first comparison, and of later ones.
const (
	firstPings = 100
	laterPings = 20
	pingsEvery = time.Second
	clockTime  = 5 * time.Second // bounds one comparison
)

// compareClocks compares until the trace ends. Where that fails times have wider bounds, or
// none.
func (t *tracing) compareClocks(ctx context.Context, c *control) {
	tick := time.NewTicker(pingsEvery)
	defer tick.Stop()
	for pings := firstPings; ; pings = laterPings {
		same, err := t.compareOnce(c, pings)
		if same || err != nil && ctx.Err() != nil {
			return
		}
		select {
		case <-ctx.Done():
			if pings > laterPings {
				return // it has just been done
			}
			_, _ = t.compareOnce(c, laterPings) // a rank 0 that has left answers no more
			return
		case <-tick.C:
		}
	}
}

// compareOnce adds a fix.
func (t *tracing) compareOnce(c *control, pings int) (same bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), clockTime)
	defer cancel()
	conn, err := c.job.Dial(ctx, 0, ClockPurpose)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(clockTime)); err != nil {
		return false, err
	}
	f, same, err := clock.Ask(conn, monotonic, clockNumber(t.clock), pings)
	if err != nil || same {
		return same, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ahead.PPM = clock.Quartz
	t.ahead.Add(f)
	return false, nil
}

// TakeClock takes over a connection that a rank has dialled with [ClockPurpose].
func (w *World) TakeClock(conn net.Conn) {
	c := w.control
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended.Load() {
		conn.Close()
		return
	}
	c.takers.Go(func() { // endNotes waits for it
		defer conn.Close()
		if conn.SetDeadline(time.Now().Add(clockTime)) == nil {
			_ = clock.Answer(conn, monotonic, clockNumber(clockName())) // who asked hears no answer
		}
	})
}

// clockNumber is a clock's name as it travels.
func clockNumber(name string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, name)
	return h.Sum64()
}

// clockName names the machine's clock: two that are one have the same name.
func clockName() string {
	h := fnv.New64a()
	_, _ = io.WriteString(h, clockOrigin())
	return hex.EncodeToString(h.Sum(nil))
}
