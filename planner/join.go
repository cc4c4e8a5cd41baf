package planner

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/tierflow/tierflow/executor/proc"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// Join enters the job that this process was started in and returns its
// communicator of all ranks: a job of tierflow run, torchrun, mpiexec, mpirun, srun or
// Kubernetes, or, started by none of these, a job of one rank. See [join.FromEnv] for
// the variables, and package levels/join/launcher for who is asked first. It returns
// when all ranks have come, after 30 s at the latest unless ctx or
// TIERFLOW_JOIN_TIMEOUT says otherwise.
//
// Plans forced on rank 0 and its decision table, by its options or environment,
// hold for all ranks.
func Join(ctx context.Context, o *Options) (*Comm, error) {
	cfg, err := join.FromEnv(os.Getenv)
	if err != nil {
		return nil, err
	}
	return JoinAs(ctx, cfg, o)
}

// JoinAs is [Join] with a configuration from elsewhere.
func JoinAs(ctx context.Context, cfg join.Config, o *Options) (*Comm, error) {
	if ctx == nil {
		return nil, fmt.Errorf("join: %w", errNoContext)
	}
	if o == nil {
		o = &Options{}
	}
	if cfg.Size < 0 || cfg.Size <= 1 && cfg.Rank != 0 {
		return nil, fmt.Errorf("join as rank %d of %d: allowed are sizes from 1, and ranks from 0 to one less", cfg.Rank, cfg.Size)
	}
	if cfg.Size <= 1 {
		if cfg.Listener != nil {
			cfg.Listener.Close() // as join.Join does
		}
		alone, err := Local("1", o)
		if err != nil {
			return nil, err
		}
		return alone[0], nil
	}
	if cfg.Log == nil {
		cfg.Log = o.Log
	}
	if err := proc.EnoughDescriptors(joinDescriptors(cfg), fmt.Sprintf("joining a job of %d ranks as rank %d", cfg.Size, cfg.Rank)); err != nil {
		return nil, err
	}
	job, err := join.Join(ctx, cfg)
	if err != nil {
		return nil, err
	}
	c, err := enter(ctx, job, o)
	if err != nil {
		return nil, errors.Join(err, job.Close(ctx))
	}
	return c, nil
}

// joinDescriptors is about what entering a job opens: listeners, the edges of the
// control tree, and on rank 0 a connection to everyone.
func joinDescriptors(cfg join.Config) int {
	const edges = 16
	if cfg.Rank == 0 {
		return edges + cfg.Size
	}
	return edges
}

// enter agrees on what rank 0 forces and opens the data plane.
func enter(ctx context.Context, job *join.Job, o *Options) (*Comm, error) {
	registry := all.Submodules()
	agreed, table, err := o.agree(ctx, job, registry)
	if err != nil {
		return nil, err
	}
	forced, origin, err := parseForced(agreed.Plan, agreed.PlanOrigin+" of rank 0", registry)
	if err != nil {
		return nil, err
	}
	known, err := agreed.heard(o, job)
	if err != nil {
		return nil, err
	}
	w, err := proc.New(ctx, job, job.Rank, job.Topology, o.processConfig())
	if err != nil {
		return nil, err
	}
	entered := &world{World: w}
	if err := o.observe(entered); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	c := &Comm{
		comm: w.Endpoint(job.Rank).Comm(0), world: entered, topology: job.Topology,
		policy: policy{registry: registry, forced: forced, origin: origin, links: agreed.Links, wish: known}, memo: &memo{},
		cache: map[tasks.Request]*Collective{},
	}
	c.world.open.Store(1)
	entered.register(job.Topology)
	err = c.share(ctx, agreed, table)
	if err == nil && known.measures {
		err = c.measureMachine(ctx, known.keep)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

var _ proc.Job = (*join.Job)(nil)
