package executor

import (
	"context"
	"sync"

	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels/clock"
)

// sample is a run's state for keeping its steps in the rank's trace.
type sample struct {
	about   *trace.Bound // nil: bound before there was a trace
	sampled bool         // this call is kept
	number  uint32       // of the call, in the trace
	last    int64        // of a straight call: when the step before ended
}

// TraceOptions choose the traced calls and the files.
type TraceOptions struct {
	Dir   string   // a folder, made if need be, for a file of each rank: r3.trace and so on
	Every int      // one call of so many is kept; 1: all
	Job   string   // the same name on all ranks
	Nodes []string // the names of the ranks' nodes, by rank
}

// tracing is the trace of a world.
type tracing struct {
	TraceOptions
	base  int64 // the machine's clock at 0 of the clock of traces
	clock string
	began string // UTC, RFC 3339
	stop  context.CancelFunc
	asked sync.WaitGroup

	mu    sync.Mutex
	ahead clock.Map // of rank 0's clock
}
