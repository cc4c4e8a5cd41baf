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
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/submodules/all"
)

// ErrOver is the error of [Join] in a waiting process, if the job ends without it.
var ErrOver = launcher.ErrOver

// Join enters this process's job and returns its
// communicator of all ranks: a job of tierflow run, torchrun, mpiexec, mpirun, srun or
// Kubernetes, or, started by none of these, a job of one rank. See [join.FromEnv] for
// the variables, and package levels/join/launcher for their order. It returns
// when all ranks have come, after 30 s at the latest unless ctx or
// TIERFLOW_JOIN_TIMEOUT says otherwise. No rank enters before all are able to: if one can't, such as for a file
// that it can't write, Join fails on all, with that rank's reason. A job of several ranks needs Linux; elsewhere
// Join returns an error.
//
// A process started by tierflow run --max-restarts during the job waits, as long as ctx
// lets it, until the ranks let it in by [Comm.Grow]; so does a process calling Join again. [ErrOver]
// means the job's end without it.
//
// Plans forced on rank 0 and its decision table, by its options or environment,
// hold for all ranks. Rank 0 warns of unknown variables TIERFLOW_….
//
// Nothing outside of the job is touched, such as signals, files and processors, but for what the options or the environment
// name; see [Options.Managed].
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
	return joinAs(ctx, cfg, o)
}

// joinAs is raw.JoinAs.
func joinAs(ctx context.Context, cfg join.Config, o *Options) (*Comm, error) {
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
		return joinOnce(ctx, cfg, o, jobName{})
	}
	inTime, stop := cfg.Lobby.InTime(ctx)
	c, err := joinOnce(inTime, cfg, o, jobName{})
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
		c, err := joinOnce(ctx, cfg, o, jobName{})
		if err == nil {
			if err = Barrier(ctx, c); err == nil {
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

// joinOnce is JoinAs of one of several ranks, all joining now. before is the name of a job that goes on by that.
func joinOnce(ctx context.Context, cfg join.Config, o *Options, before jobName) (*Comm, error) {
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
	own := said{before: before}
	if cfg.Lobby != nil {
		life := cfg.Lobby.Life()
		own.Life = &life
	}
	c, err := enter(ctx, job, o, own, cfg.Blame)
	if err != nil {
		blameJoin(&cfg, asJoinError(err))
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
		cfg.Blame(launcher.Blame{Rank: late.Ranks[0], Why: err.Error()})
	} else if peer, ok := errors.AsType[*join.PeerError](err); ok {
		cfg.Blame(launcher.Blame{Rank: peer.Rank, Why: peer.Err.Error()})
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

// enter agrees on rank 0's settings and opens the data plane. No rank enters before all are able to: if
// one fails, all return its reason.
func enter(ctx context.Context, job *join.Job, o *Options, own said, blame func(launcher.Blame)) (*Comm, error) {
	e := entry{job: job, o: o.settings(), own: own, blame: blame}
	err := e.open(ctx)
	if err != nil && e.world == nil { // the others are at the same step: to abandon the job ends it there
		return nil, err
	}
	if err = e.agreeOnEntry(ctx, err); err == nil && e.hasCalls() {
		if err = e.call(ctx); err != nil {
			e.comm.comm.Revoke(err) // others wait in such a call
		}
		err = e.agreeOnEntry(ctx, err)
	}
	if err != nil {
		return nil, errors.Join(err, e.undo())
	}
	return e.comm, nil
}

// entry is a rank's way from the job into its communicator of all ranks.
type entry struct {
	job   *join.Job
	o     *settings
	blame func(launcher.Blame) // see [join.Config.Blame]

	own    said
	agreed announcement
	of     []said // by rank
	data   []byte // the table and rules that agreed tells of; on rank 0 only
	world  *world // nil: the data plane was not opened
	comm   *Comm  // nil: it was not made
}

// open makes this rank's part of the communicator. Once the data plane is open it waits for nobody.
func (e *entry) open(ctx context.Context) error {
	job, o, registry := e.job, e.o, all.Submodules()
	var err error
	if e.agreed, e.data, e.of, err = o.agree(ctx, job, registry, e.own); err != nil {
		return err
	}
	origin := e.agreed.PlanOrigin + " of rank 0"
	forced, err := choose.ParseForced(e.agreed.Plan, origin, registry)
	if err != nil {
		return err
	}
	known, err := e.agreed.machineSource(o, job)
	if err != nil {
		return err
	}
	if err := e.openWorld(ctx); err != nil {
		return err
	}
	p := policy{common: e.agreed.common, compiled: o.Decide, forced: forced, origin: origin, machineSource: known}
	p.common.Links = sealedLinks(p.common.Links, job)
	c := newComm(base{e.world.Endpoint(job.Rank).Comm(0), job.Topology, registry}, e.world, p)
	if job.Rank == 0 {
		c.tableFile, c.remembers = o.keptTable(job), e.agreed.Managed && o.remembers()
	}
	e.comm = c
	c.world.open.Store(1)
	e.world.register(job.Topology)
	return c.unify(&c.base)
}

// openWorld opens the data plane, the door, and the files that the settings name.
func (e *entry) openWorld(ctx context.Context) error {
	cfg, err := e.o.processConfig(e.agreed.Managed)
	if err != nil {
		return err
	}
	doorway, err := planDoor(e.job, e.agreed.jobName, e.agreed.Managed)
	if err != nil {
		return err
	}
	doorway.lookThrough(&cfg, e.job)
	if err := doorway.dumpInto(&cfg, e.o); err != nil {
		return err
	}
	if e.blame != nil {
		cfg.Blame = func(rank levels.Rank, err error) {
			if rank >= 0 && e.of[rank].Life != nil { // the launcher knows processes
				rank = levels.Rank(e.of[rank].Life.Slot)
			}
			e.blame(launcher.Blame{Rank: rank, Why: err.Error(), Aborted: errors.Is(err, ErrAborted)})
		}
	}
	w, err := proc.New(ctx, e.job, e.job.Rank, e.job.Topology, cfg)
	if err != nil {
		return err
	}
	w.Endpoint(e.job.Rank).Adopt()
	e.world = &world{World: w, guest: e.job, of: e.of, name: e.agreed.jobName}
	doorway.open(e.world, e.o.recorderPath(int(e.job.Rank)), e.o.Log)
	return e.o.observe(e.world, e.agreed.Managed, e.agreed.Job, e.job.Topology)
}

// hasCalls reports whether the ranks make calls before Join returns. All ranks find the same.
func (e *entry) hasCalls() bool {
	c := e.comm
	return e.agreed.Table+e.agreed.Rules > 0 || c.checks || c.measures
}

// call makes the ranks' first calls: they share rank 0's table and rules, and measure the machine.
func (e *entry) call(ctx context.Context) error {
	c := e.comm
	measures := c.measures
	if err := c.share(ctx, &c.base, e.agreed, e.data); err != nil {
		return err
	}
	if c.checks {
		same, err := c.isUnchanged(ctx, c.machine)
		if err != nil {
			return err
		}
		if !same && !c.common.Managed {
			c.machine = &choose.Machine{Why: "the kept machine is another one now, and only managed jobs measure it again"}
		}
		measures = !same && c.common.Managed
	}
	if !measures {
		return nil
	}
	return c.measureMachine(ctx, &c.base, c.Secured() != "")
}

// undo takes back what a rank made that can't enter. The others do the same.
func (e *entry) undo() error {
	switch {
	case e.comm != nil:
		return e.comm.close()
	case e.world != nil:
		return errors.Join(e.world.Close(), e.world.closeDoor())
	}
	return nil
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
