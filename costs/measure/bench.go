// Package measure runs tasks and collectives on the engines of an executor and
// times them, to fill the tables of package costs.
//
// Every function is a collective call: all ranks of the communicator make it with
// the same arguments, and all return the same result. Nothing else may run on the
// communicator meanwhile. A repetition begins on all ranks at one agreed time;
// rank 0 decides whether there is another one.
//
//	bench, err := measure.New(ctx, comm, topology, registry)
//	timing, err := bench.Collective(ctx, request, plan, costs.Stop{})
//	err = bench.Stages(ctx, request, plan, costs.Stop{}, book)
package measure

import (
	"context"
	"errors"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Bench is one rank's end of a communicator on which is measured.
type Bench struct {
	comm     *executor.Comm
	topology *levels.Topology
	registry submodules.Registry
}

// New makes a bench and compares the ranks' clocks. All ranks of comm must call it.
func New(ctx context.Context, comm *executor.Comm, t *levels.Topology, reg submodules.Registry) (*Bench, error) {
	return &Bench{comm: comm, topology: t, registry: reg}, nil
}

// Timing is how long repetitions took, in nanoseconds.
type Timing struct {
	Slowest costs.Summary // of the slowest rank in each repetition
	Ranks   []float64     // median of each rank
	Series  []float64     // the slowest rank's time, by repetition
}

// Collective times a request with a plan, on buffers of its own.
func (b *Bench) Collective(ctx context.Context, r tasks.Request, p tasks.Plan, stop costs.Stop) (Timing, error) {
	return Timing{}, errors.New("collective")
}

// Pipeline times when segments complete in a request with a dataflow shape: in
// its first segments, [costs.Extra] more than there are phases, or all if it has
// fewer.
func (b *Bench) Pipeline(ctx context.Context, r tasks.Request, p tasks.Plan, stop costs.Stop) (costs.Pipeline, error) {
	return costs.Pipeline{}, errors.New("pipeline")
}

// Stages puts into book what the stage tasks of a request cost, those of fewer
// segments than phases too; p's shape must be han-lockstep. What the book has
// already isn't measured again; if it has all, nothing runs. It returns how the
// stages that it measured settled.
func (b *Bench) Stages(ctx context.Context, r tasks.Request, p tasks.Plan, stop costs.Stop, book *costs.Book) ([]costs.Series, error) {
	return nil, errors.New("stages")
}

// Overlapped is what two task kinds cost a leader alone and at the same time.
type Overlapped struct {
	Kinds          [2]string // ib and sb
	A, B, Together costs.Cost
}

// Overlap times the tasks of two kinds of a request, each on a segment of its own:
// alone, and begun at the same time (HAN, figures 2 and 6).
func (b *Bench) Overlap(ctx context.Context, r tasks.Request, p tasks.Plan, kinds [2]tasks.Kind, stop costs.Stop) (Overlapped, error) {
	return Overlapped{}, errors.New("overlap")
}
