package executor

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/flight/verdict"
	"github.com/tierflow/tierflow/executor/flow"
	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
)

// Config is the configuration of a world. The zero value is ready to use.
type Config struct {
	// EagerMax is the largest payload, in bytes, sent without credit; negative: none. 0: 4 KiB, and
	// between processes on different nodes, where a credit takes a round trip, also the first
	// messages of a call to a rank, up to 64 KiB of whole messages.
	EagerMax int64
	// EagerBudget is how many bytes a rank may have sent to another without credit and without
	// their having been consumed. 0: 64 KiB, and 256 KiB to another node; at most 1 GiB.
	EagerBudget int64
	// StallAfter is how long a run waits before it is reported to Log, with its awaited steps;
	// doubled after each report. 0: 10 s; negative: never.
	StallAfter time.Duration
	// CloseTimeout bounds how long Close waits for living ranks of other processes to close, see
	// [World.Close]. 0: 30 s.
	CloseTimeout time.Duration
	// Log gets stall reports and failures. nil: none.
	Log *slog.Logger
	// Hooks are called by the engines. Zero: none.
	Hooks trace.Hooks
	// RecorderEvents is how many of the last events each rank keeps, see package
	// flight. 0: 1024, and 256 for goroutine ranks, whose rings share a cache; negative:
	// none, and no recording.
	RecorderEvents int
	// Blame, if not nil, is told of the first failure that breaks a communicator on this process,
	// or ends its calls, and its rank of the world; -1: ranks disagree, and no one more than the
	// others is to blame. It is told of the first [World.Abort], too. It runs with an engine's lock held: it must not call back.
	Blame func(rank levels.Rank, err error)
	// CallTimeout bounds each call, like a timeout of its context. Calls that needn't wait are
	// exempt. 0: none.
	CallTimeout time.Duration
	// Progress, if not nil, is called again and again by a goroutine waiting for a call, on its own
	// thread and without a lock. It lets another library, such as MPI, go on with calls this rank's
	// peers may be waiting for. Such a goroutine never sleeps. Starts without a waiter don't call
	// it. It must not call back.
	Progress func()
	// Elsewhere, if not nil, tells of the calls of another library that the program of this process's ranks is in. Any
	// goroutine may call it at any time: it must neither wait nor call back.
	Elsewhere func() Elsewhere
	// Stalls gets stall reports in place of Log. nil: Log.
	Stalls *slog.Logger
	// Neighbor returns the visible state of a rank of another process that can't answer for itself,
	// being stopped or dead; ok is false for others. nil: nothing can be seen.
	Neighbor func(rank levels.Rank) (s flight.State, ok bool)
	// Dump, if not nil, keeps states for afterwards: those of all ranks with a finding about them,
	// or that of a rank of this process just after its first failure, with nil. In the second case
	// it runs with an engine's lock held: it must not call back.
	Dump func(states []flight.State, f *verdict.Finding)
	// Nodes are the names of the ranks' nodes, by rank, for verdicts. nil: they have none.
	Nodes []string
}

func (c Config) withDefaults() Config {
	if c.Hooks.Epoch.IsZero() {
		c.Hooks.Epoch = time.Now()
	}
	c.Stalls = cmp.Or(c.Stalls, c.Log)
	c.StallAfter = cmp.Or(c.StallAfter, 10*time.Second)
	if c.CloseTimeout <= 0 {
		c.CloseTimeout = 30 * time.Second
	}
	return c
}

// traceTime returns nanoseconds on the clock of traces.
func (c *Config) traceTime() int64 { return int64(time.Since(c.Hooks.Epoch)) }

// stallTime returns the time for Transfer.since: nanoseconds, never 0.
func (c *Config) stallTime(now time.Time) int64 { return max(1, int64(now.Sub(c.Hooks.Epoch))) }

// World is all ranks of a job: those of this process, goroutine ranks or a single one, and the
// means to reach the others.
type World struct {
	config     Config
	limits     flow.Limits               // derived from config
	endpoints  []*Endpoint               // by rank; nil for a rank of another process
	spin       int                       // yields before a driver sleeps
	stop       func(ctx context.Context) // see Setup; may be nil
	control    *control                  // nil if all ranks live here
	askTurn    chan struct{}             // full while a rank of this process asks others for their states
	stacks     stackReader
	lastSearch map[CommID]time.Time // by communicator, of this world's search for a deadlock; for the holder of askTurn

	blamed, blamedAbort sync.Once   // Config.Blame was told of a failure, and of one by Abort
	failed              atomic.Bool // a rank of this process has failed
	hurried             atomic.Bool // see HurryClose

	keeping  sync.Mutex
	retained map[CommID]int // failures of a communicator on their way here; at least 1

	mu        sync.Mutex
	closed    bool
	recordsTo recorderPath
	tracing   *tracing // nil: nothing is traced

	reporting     sync.Mutex      // Close reports too, and holds mu
	lastFinding   verdict.Finding // reported
	lastFindingAt time.Time
}

// Size returns the number of ranks.
func (w *World) Size() int { return len(w.endpoints) }

// CallTimeout is the limit of the world's calls, see [Config.CallTimeout]; 0: none.
func (w *World) CallTimeout() time.Duration { return w.config.CallTimeout }

// Endpoint returns the engine of a rank.
func (w *World) Endpoint(r levels.Rank) *Endpoint { return w.endpoints[r] }

// everyRank lists the ranks of the world.
func (w *World) everyRank() (all []levels.Rank) {
	for r := range levels.Rank(w.Size()) {
		all = append(all, r)
	}
	return all
}

// eachLocal calls f for each rank of this process.
func (w *World) eachLocal(f func(e *Endpoint)) {
	for _, e := range w.endpoints {
		if e != nil {
			f(e)
		}
	}
}

// eachLocked is eachLocal with the lock of the rank's engine held.
func (w *World) eachLocked(f func(e *Endpoint)) {
	w.eachLocal(func(e *Endpoint) {
		e.mu.Lock()
		defer e.mu.Unlock()
		f(e)
	})
}

// retain keeps the ranks of this process from forgetting a communicator until as many calls of unretain.
// The caller may hold the lock of a rank that has not left the communicator.
func (w *World) retain(id CommID) {
	w.keeping.Lock()
	defer w.keeping.Unlock()
	w.retained[id]++
}

// isRetained reports whether a communicator must not be forgotten.
func (w *World) isRetained(id CommID) bool {
	w.keeping.Lock()
	defer w.keeping.Unlock()
	return w.retained[id] > 0
}

// blame tells [Config.Blame] of the first failure, and of the first end of the job by a rank: there may have been others
// before that it went on after.
func (w *World) blame(by levels.Rank, err error) {
	once := &w.blamed
	if errors.Is(err, ErrAborted) {
		once = &w.blamedAbort
	}
	if tell := w.config.Blame; tell != nil {
		once.Do(func() { tell(by, err) })
	}
}
