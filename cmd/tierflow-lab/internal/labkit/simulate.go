package labkit

import (
	"context"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/tasks"
)

// Request returns a collective's request of so many bytes, as recordings have it: of float32 if
// they are whole ones, and sums.
func Request(coll tasks.Collective, bytes int64) tasks.Request {
	r := tasks.Request{Coll: coll}
	switch {
	case !coll.HasData():
	case bytes%4 == 0:
		r.Type, r.Count = tasks.Float32, bytes/4
	default:
		r.Type, r.Count = tasks.Uint8, bytes
	}
	if r.Reduces() {
		r.Op = tasks.Sum
	}
	return r
}

// Simulate returns the time of a compiled plan on a machine, ns. Longer ones than limit are
// [sim.ErrLimit]; 0: there is no limit.
func Simulate(ctx context.Context, c *sim.Compilation, m *machine.Machine, limit float64) (ns float64, err error) {
	c.Check = ctx.Err
	job, err := c.Job()
	if err != nil {
		return 0, err
	}
	r, err := job.Run(m, sim.Options{Limit: sim.Time(limit * float64(sim.Nanosecond)), Check: func(int64) error { return ctx.Err() }})
	if err != nil {
		return 0, err
	}
	return r.Time.Nanoseconds(), nil
}
