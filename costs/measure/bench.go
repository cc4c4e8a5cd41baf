// Package measure runs tasks and collectives on the engines of an executor and times
// them, to fill the tables of package costs. It chooses nothing and predicts nothing.
//
// Every method of [Bench] is a collective call: all ranks of the communicator make
// it with the same arguments, and all return the same result. Nothing else may run
// on the communicator meanwhile. A repetition begins on all ranks at one agreed
// time; rank 0 decides whether there is another one.
//
//	bench, err := measure.New(ctx, comm, topology, registry)
//	timing, err := bench.Collective(ctx, request, plan, stats.Stop{})
//	series, err := bench.Stages(ctx, request, plan, stats.Stop{}, book)
package measure

import (
	"context"
	"time"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Bench is one rank's end of a communicator for measurements.
type Bench struct {
	// Regime is the regime of calls in Collective, the same on all ranks. Zero is [costs.Single].
	// Other methods time single runs in any regime.
	Regime costs.Regime

	comm     *executor.Comm
	topology *levels.Topology
	registry submodules.Registry
	kept     map[tasks.Request]*executor.Run // of exchanges
	offset   time.Duration                   // of this rank's wall clock from rank 0's
	notice   time.Duration                   // how long before a start ranks must be told
	now      func() time.Time                // the clock of calls back to back: time.Now, but in tests
}

// New makes a bench and compares the ranks' clocks. All ranks of comm must call
// it; t is where they are.
func New(ctx context.Context, comm *executor.Comm, t *levels.Topology, reg submodules.Registry) (*Bench, error) {
	b := &Bench{comm: comm, topology: t, registry: reg, kept: map[tasks.Request]*executor.Run{}, now: time.Now}
	return b, b.compareClocks(ctx)
}

// Topology is where the ranks are.
func (b *Bench) Topology() *levels.Topology { return b.topology }

// Rank is this rank's number.
func (b *Bench) Rank() levels.Rank { return b.comm.Rank() }
