package executor

import (
	"context"
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

// Config is what a world may be told. The zero value is ready to use.
type Config struct {
	// EagerMax is the largest payload, in bytes, sent without credit; negative: none.
	// 0: 4 KiB, and between processes on different nodes, where a credit takes a round
	// trip, also what a call sends first to a rank, up to 64 KiB of whole messages.
	EagerMax int64
	// EagerBudget is how many bytes a rank may have sent to another without credit and
	// without their having been consumed. 0: 64 KiB, and 256 KiB to another node; at
	// most 1 GiB.
	EagerBudget int64
	// StallAfter is how long a run waits before it is reported to Log, with what
	// it waits for; doubled after each report. 0: 10 s; negative: never.
	StallAfter time.Duration
	// CloseTimeout bounds how long Close waits for ranks of other processes that live
	// and have not closed yet, see [World.Close]. 0: 30 s.
	CloseTimeout time.Duration
	// Log gets stall reports and failures. nil: none.
	Log *slog.Logger
	// Hooks are called by the engines. Zero: none.
	Hooks trace.Hooks
	// RecorderEvents is how many of the last events each rank keeps, see package
	// flight. 0: 1024, and 256 for goroutine ranks, whose rings share a cache; negative:
	// none, and no recording.
	RecorderEvents int
	// Blame, if not nil, is told of the first failure that breaks a communicator on this
	// process, or ends its calls, and on which rank of the world it was. It runs with an
	// engine's lock held: it must not call back.
	Blame func(rank levels.Rank, err error)
	// CallTimeout bounds each call, like a timeout of its context. Calls that needn't wait
	// are not looked at. 0: none.
	CallTimeout time.Duration
	// Progress, if not nil, is called again and again by a goroutine that waits for a call,
	// on its own thread and without a lock: it lets another library go on whose calls this
	// rank's peers may be waiting for, such as MPI. Such a goroutine never sleeps. Starts
	// that nobody waits for don't call it. It must not call back.
	Progress func()
	// Stalls gets stall reports in place of Log. nil: Log.
	Stalls *slog.Logger
	// Neighbor returns what can be seen from outside of a rank of another process that can't
	// answer for itself, being stopped or dead; ok is false for others. nil: nothing can be seen.
	Neighbor func(rank levels.Rank) (s flight.State, ok bool)
	// Dump, if not nil, keeps states for afterwards: those of all ranks with a finding about
	// them, or that of a rank of this process whose first communicator has just failed, with
	// nil. It runs with an engine's lock held in that case: it must not call back.
	Dump func(states []flight.State, f *verdict.Finding)
	// Nodes are the names of the ranks' nodes, by rank, for verdicts. nil: they have none.
	Nodes []string
}

func (c Config) withDefaults() Config {
	if c.Hooks.Epoch.IsZero() {
		c.Hooks.Epoch = time.Now()
	}
	if c.Stalls == nil {
		c.Stalls = c.Log
	}
	if c.CloseTimeout <= 0 {
		c.CloseTimeout = 30 * time.Second
	}
	if c.StallAfter == 0 {
		c.StallAfter = 10 * time.Second
	}
	return c
}

// World is all ranks of a job: those of this process, goroutine ranks or a single
// one, and what is needed to reach the others.
type World struct {
	config    Config
	limits    flow.Limits               // derived from config
	endpoints []*Endpoint               // by rank; nil for a rank of another process
	spin      int                       // yields before a driver sleeps
	stop      func(ctx context.Context) // see Setup; may be nil
	control   *control                  // nil if all ranks live here
	combining atomic.Int32              // operations of callers that are running
	asking    chan struct{}             // full while a rank of this process asks what others are in
	stacks    stackReader
	looked    map[CommID]time.Time // when ranks of this world last looked for a deadlock; who asks may use it

	blamed sync.Once // Config.Blame was told

	keeping sync.Mutex
	kept    map[CommID]int // how many failures of a communicator are on their way here; at least 1

	mu        sync.Mutex
	closed    bool
	recordsTo recorderPath
	tracing   *tracing // nil: nothing is traced

	reporting  sync.Mutex      // Close reports too, and holds mu
	reported   verdict.Finding // last
	reportedAt time.Time
}

// Size returns the number of ranks.
func (w *World) Size() int { return len(w.endpoints) }

// Endpoint returns the engine of a rank.
func (w *World) Endpoint(r levels.Rank) *Endpoint { return w.endpoints[r] }

// eachLocal calls f for each rank of this process.
func (w *World) eachLocal(f func(e *Endpoint)) {
	for _, e := range w.endpoints {
		if e != nil {
			f(e)
		}
	}
}

// keep lets no rank of this process forget a communicator until letGo, as often as it is
// called. Who holds the lock of a rank that has not left the communicator may call it.
func (w *World) keep(id CommID) {
	w.keeping.Lock()
	defer w.keeping.Unlock()
	if w.kept == nil {
		w.kept = map[CommID]int{}
	}
	w.kept[id]++
}

// isKept reports whether a communicator must not be forgotten.
func (w *World) isKept(id CommID) bool {
	w.keeping.Lock()
	defer w.keeping.Unlock()
	return w.kept[id] > 0
}

// blame tells [Config.Blame] of the first failure.
func (w *World) blame(by levels.Rank, err error) {
	if tell := w.config.Blame; tell != nil {
		w.blamed.Do(func() { tell(by, err) })
	}
}
