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

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock"
	"github.com/tierflow/tierflow/levels/files"
	"github.com/tierflow/tierflow/submodules"
)

// traceBound describes the calls of a binding, of so many bytes, on a communicator of some ranks of the world.
func (b *Binding) traceBound(comm CommID, me levels.Rank, ranks []levels.Rank, bytes int64) *trace.Bound {
	t := &trace.Bound{
		Comm: uint64(comm), Rank: me, Members: ranks, Request: b.Request, Operation: b.Operation, Plan: b.Plan,
		Bytes: bytes, Passes: b.Passes,
	}
	if b.Reasons != nil {
		t.Reasons = b.Reasons()
	}
	// A nil program is no nil interface.
	for at, p := range map[*trace.Linked]*submodules.Program{&t.Whole: b.Whole, &t.Rest: b.Rest} {
		if p != nil {
			*at = p
		}
	}
	return t
}

// begin begins to keep the steps of call seq.
func (s *sample) begin(ring *trace.Ring, seq uint32, config *Config) {
	if s.about == nil {
		return
	}
	s.last = config.traceTime()
	s.sampled, s.number = true, ring.Begin(s.about, seq, s.last)
}

// addStraight keeps a step of a straight call. It began at the end of the one before.
func (s *sample) addStraight(ring *trace.Ring, id dag.ID, config *Config) {
	now := config.traceTime()
	ring.Step(s.number, 0, int32(id), s.last, now)
	s.last = now
}

// end ends the call.
func (s *sample) end(ring *trace.Ring, config *Config, err error) {
	if s.sampled && err == nil {
		ring.End(s.number, config.traceTime())
	}
	s.sampled = false
}

// Trace lets the ranks of this process keep the steps of some calls, among the runs bound from now
// on. [World.Close] writes the files. All ranks must be told the same Every: then all keep the same
// calls. The first rank of each node compares the node's clock with rank 0's, now, each second, and
// when it closes; a node with rank 0's clock need not.
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
		t.base = max(t.base, monotonic()-int64(time.Since(epoch)))
	}
	t.began = time.Now().UTC().Format(time.RFC3339)
	w.tracing = t
	w.eachLocked(func(e *Endpoint) {
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
	return !slices.Contains(t.Nodes[:r], t.Nodes[r])
}

// traceSuffix ends the names of traces.
const traceSuffix = ".trace"

// endTrace ends the comparison of clocks and writes the traces.
func (w *World) endTrace() error {
	t := w.tracing
	if t == nil {
		return nil
	}
	t.stop()
	t.asked.Wait()
	return w.writeTraces()
}

// KeepTraces writes the traces up to now, as Close does at the end: the job may be ended without a
// Close. On a world without a trace, or one being closed, it does nothing.
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

// writeTraces writes a file for each rank of this process.
func (w *World) writeTraces() error {
	t := w.tracing
	var errs []error
	w.eachLocal(func(e *Endpoint) {
		e.mu.Lock()
		f := e.samples.File(t.base)
		e.mu.Unlock()
		t.mu.Lock()
		f.Job, f.Rank, f.Nodes, f.Clock, f.Ahead = t.Job, int(e.rank), t.Nodes, t.clock, clock.Map{PPM: t.ahead.PPM, Fixes: slices.Clone(t.ahead.Fixes)}
		t.mu.Unlock()
		f.Program, f.Date = filepath.Base(os.Args[0]), t.began
		errs = append(errs, keepTrace(filepath.Join(t.Dir, fmt.Sprintf("r%d%s", e.rank, traceSuffix)), f))
	})
	return errors.Join(errs...)
}

// keepTrace writes a file. It appears whole or not at all.
func keepTrace(name string, f *trace.File) error {
	if err := files.WriteBy(name, 0o600, f.Write); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	return nil
}

// ClockPurpose is the purpose of a connection for comparing a node's clock with rank 0's.
const ClockPurpose uint8 = 4

// Pings of the first comparison, and of later ones.
const (
	firstPings = 100
	laterPings = 20
	pingsEvery = time.Second
	clockTime  = 5 * time.Second // bounds one comparison
)

// compareClocks compares until the trace ends. After failures times have wider bounds, or none.
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
			_, _ = t.compareOnce(c, laterPings) // a departed rank 0 answers no more
			return
		case <-tick.C:
		}
	}
}

// compareOnce adds a fix. It reports whether both clocks are the same.
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

// TakeClock takes over a connection dialled by a rank with [ClockPurpose].
func (w *World) TakeClock(conn net.Conn) {
	answers := w.control.runApart(func() {
		defer conn.Close()
		if conn.SetDeadline(time.Now().Add(clockTime)) == nil {
			_ = clock.Answer(conn, monotonic, clockNumber(clockName())) // the asking rank hears no answer
		}
	})
	if !answers {
		conn.Close()
	}
}

// clockNumber returns a clock's name as a number, for the wire.
func clockNumber(name string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, name)
	return h.Sum64()
}

// clockName names the machine's clock: equal names mean the same clock.
func clockName() string {
	h := fnv.New64a()
	_, _ = io.WriteString(h, clockOrigin())
	return hex.EncodeToString(h.Sum(nil))
}
