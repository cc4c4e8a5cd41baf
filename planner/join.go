package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/tierflow/tierflow/executor/proc"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/levels/join/launcher"
	"github.com/tierflow/tierflow/submodules/all"
)

// ErrOver is the error of [Join] in a waiting process, if the job ends without it.
var ErrOver = launcher.ErrOver

// Join enters this process's job and returns its
// communicator of all ranks: a job of tierflow run, torchrun, mpiexec, mpirun, srun or
// Kubernetes, or, started by none of these, a job of one rank. See [join.FromEnv] for
// the variables, and package levels/join/launcher for their order. It returns
// when all ranks have come, after 30 s at the latest unless ctx or
// TIERFLOW_JOIN_TIMEOUT says otherwise. A job of several ranks needs Linux; elsewhere
// Join returns an error.
//
// A process started by tierflow run --max-restarts during the job waits, as long as ctx
// lets it, until the ranks let it in by [Comm.Grow]; so does a process calling Join again. [ErrOver]
// means the job's end without it.
//
// Plans forced on rank 0 and its decision table, by its options or environment,
// hold for all ranks. Rank 0 warns of unknown variables TIERFLOW_….
func Join(ctx context.Context, o *Options) (*Comm, error) {
	cfg, err := join.FromEnv(os.Getenv)
	if err != nil {
		if unable := proc.Supported(); unable != nil {
			return nil, unable // it comes before errors of variables
		}
		return nil, err
	}
	if cfg.Rank == 0 {
		o.warnOfVariables()
	}
	return JoinAs(ctx, cfg, o)
}

// JoinAs is [Join] with a configuration from elsewhere.
func JoinAs(ctx context.Context, cfg join.Config, o *Options) (*Comm, error) {
	if ctx == nil {
		return nil, fmt.Errorf("join: %w", errNoContext)
	}
	answerLauncher()
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
	if cfg.Lobby != nil && cfg.Lobby.Enter() {
		return joinRunning(ctx, cfg, o)
	}
	if cfg.Lobby == nil {
		return joinOnce(ctx, cfg, o)
	}
	inTime, stop := cfg.Lobby.InTime(ctx)
	c, err := joinOnce(inTime, cfg, o)
	late := err != nil && errors.Is(context.Cause(inTime), launcher.ErrRuns)
	stop()
	switch {
	case late:
		return joinRunning(ctx, cfg, o)
	case err == nil:
		cfg.Lobby.Entered()
	}
	return c, err
}

// joinRunning waits until the ranks of a running job let this process in, again and again if that fails.
func joinRunning(ctx context.Context, cfg join.Config, o *Options) (*Comm, error) {
	if cfg.Listener != nil {
		cfg.Listener.Close() // as join.Join does
	}
	for {
		p, err := cfg.Lobby.Await(ctx)
		if err != nil {
			return nil, fmt.Errorf("join a job that runs: %w", err)
		}
		cfg.Rank, cfg.Size, cfg.Rendezvous, cfg.Listener = p.Rank, p.Size, nil, nil
		cfg.Share = func(context.Context, string) (string, error) { return p.Text, nil }
		c, err := joinOnce(ctx, cfg, o)
		if err == nil {
			if err = BarrierNow(ctx, c); err == nil {
				return c, nil
			}
			_ = c.close()
		}
		o.logger().Warn("the ranks could not let this process in; it waits on", "err", err)
		if ctx.Err() != nil {
			return nil, err
		}
	}
}

// joinOnce is JoinAs of one of several ranks, all joining now.
func joinOnce(ctx context.Context, cfg join.Config, o *Options) (*Comm, error) {
	if cfg.Log == nil {
		cfg.Log = o.Log
	}
	cfg.TLS = cmp.Or(o.TLS, cfg.TLS)
	if err := proc.Supported(); err != nil {
		return nil, err
	}
	if err := proc.EnoughDescriptors(joinDescriptors(cfg), fmt.Sprintf("joining a job of %d ranks as rank %d", cfg.Size, cfg.Rank)); err != nil {
		return nil, err
	}
	job, err := join.Join(ctx, cfg)
	if err != nil {
		blameJoin(&cfg, err)
		return nil, err
	}
	c, err := enter(ctx, job, o, cfg.Blame)
	if err != nil {
		blameJoin(&cfg, err)
		return nil, errors.Join(err, job.Abandon(ctx, asJoinError(err)))
	}
	cfg.Share = nil // it refers to the job before, and so to all jobs before
	c.world.settings = joinSettings{cfg, o}
	return c, nil
}

// asJoinError turns a [PeerError] into the job's own kind of error, with the same rank.
func asJoinError(err error) error {
	if p, ok := errors.AsType[*PeerError](err); ok {
		return &join.PeerError{Rank: p.Rank, Err: p.Err}
	}
	return err
}

// blameJoin tells the launcher of the rank in the way of joining, if err names one.
func blameJoin(cfg *join.Config, err error) {
	if cfg.Blame == nil {
		return
	}
	if late, ok := errors.AsType[*join.JoinError](err); ok && len(late.Ranks) > 0 {
		cfg.Blame(late.Ranks[0], err.Error())
	} else if peer, ok := errors.AsType[*join.PeerError](err); ok {
		cfg.Blame(peer.Rank, peer.Err.Error())
	}
}

// joinDescriptors is about the number of descriptors for entering a job: listeners, the edges of
// the control tree, and on rank 0 a connection to everyone.
func joinDescriptors(cfg join.Config) int {
	const edges = 16
	if cfg.Rank == 0 {
		return edges + cfg.Size
	}
	return edges
}

// enter agrees on rank 0's settings and opens the data plane.
func enter(ctx context.Context, job *join.Job, o *Options, blame func(levels.Rank, string)) (*Comm, error) {
	registry := all.Submodules()
	agreed, table, err := o.agree(ctx, job, registry)
	if err != nil {
		return nil, err
	}
	origin := agreed.PlanOrigin + " of rank 0"
	forced, err := ParseForced(agreed.Plan, origin, registry)
	if err != nil {
		return nil, err
	}
	known, err := agreed.machineSource(o, job)
	if err != nil {
		return nil, err
	}
	cfg, err := o.processConfig()
	if err != nil {
		return nil, err
	}
	doorway, err := planDoor(job, agreed.Job)
	if err != nil {
		return nil, err
	}
	doorway.lookThrough(&cfg)
	doorway.dumpInto(&cfg, o)
	if blame != nil {
		cfg.Blame = func(rank levels.Rank, err error) { blame(rank, err.Error()) }
	}
	w, err := proc.New(ctx, job, job.Rank, job.Topology, cfg)
	if err != nil {
		return nil, err
	}
	w.Endpoint(job.Rank).Adopt()
	entered := &world{World: w, guest: job}
	doorway.open(entered, o.recorderPath(int(job.Rank)), o.Log)
	if err := o.observe(entered, agreed.Job, job.Topology); err != nil {
		return nil, errors.Join(err, w.Close(), entered.closeDoor())
	}
	p := policy{
		compiled: o.Decide, forced: forced, origin: origin, links: sealedLinks(agreed.Links, job), machineSource: known,
		tries: agreed.Tries, uniform: agreed.Uniform,
	}
	c := newComm(base{w.Endpoint(job.Rank).Comm(0), job.Topology, registry}, entered, p)
	if job.Rank == 0 {
		c.tableFile, c.remembers = o.keptTable(job), o.remembers()
	}
	c.world.open.Store(1)
	entered.register(job.Topology)
	err = c.unify(&c.base)
	if err == nil {
		err = c.share(ctx, &c.base, agreed, table)
	}
	if err == nil && known.checks {
		var same bool
		same, err = c.isUnchanged(ctx, c.machine)
		known.measures = !same
	}
	if err == nil && known.measures {
		err = c.measureMachine(ctx, &c.base, c.Secured() != "")
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// sealedLinks names the links between nodes: sealed ones are others. Times on plain ones are from
// elsewhere then.
func sealedLinks(name string, job *join.Job) string {
	switch {
	case job.Secured() == "" || job.Topology.Nodes() == 1:
		return name
	case name == "":
		return "tls"
	}
	return name + "+tls"
}

var _ proc.Job = (*join.Job)(nil)
