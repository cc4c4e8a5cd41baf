package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/local"
	"github.com/tierflow/tierflow/executor/tcp"
	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// The errors of this package's calls, see package executor.
var (
	ErrClosed    = executor.ErrClosed
	ErrBroken    = executor.ErrBroken
	ErrMismatch  = executor.ErrMismatch
	ErrBusy      = executor.ErrBusy
	ErrTruncated = executor.ErrTruncated
)

// Errors with details.
type (
	PeerError     = executor.PeerError
	MismatchError = executor.MismatchError
	StepError     = executor.StepError
)

// PlanVariable is the environment variable that forces plans.
const PlanVariable = "TIERFLOW_PLAN"

// CongestionVariable is the environment variable that names a TCP congestion control.
const CongestionVariable = "TIERFLOW_CONGESTION"

// LinksVariable is the environment variable that names the links between nodes, see
// [Options.Links].
const LinksVariable = "TIERFLOW_LINKS"

// Options are what a communicator may be told. The zero value and nil are ready
// to use.
type Options struct {
	// Plan forces plans, in the grammar of [tasks.ParseForced]; what it leaves
	// open is decided as always. Empty: the environment's TIERFLOW_PLAN.
	Plan string
	// Deterministic makes reductions give the same bits for all layouts of the ranks
	// and all plans: it puts order=tree before the plans of Plan or the environment.
	// Plans forced by these still apply. If one can't keep the order, creating the
	// collective fails, and the error lists those that can.
	Deterministic bool
	// Table names a file with a decision table, as tierflow tune writes it. The table
	// decides all that Plan leaves open; where it has no answer the built-in rule
	// does. In a job of processes rank 0's counts, for all ranks. Empty: the
	// environment's TIERFLOW_TABLE; if that is empty too, no table.
	Table string
	// TableData is the content of such a file, in place of Table.
	TableData []byte
	// Machine says what is known of the machine. Where neither Plan nor a table decides, plans
	// are then chosen by their prices on it, and the built-in rule's plan is one of several.
	//
	//	a file's name   a machine's file, as tierflow bench p2p writes it
	//	off             nothing is known, and the built-in rule decides
	//
	// In a job of processes rank 0's counts, for all ranks. Empty: the environment's
	// TIERFLOW_MACHINE; if that is empty too, off: then the same program has the same plans
	// wherever it runs.
	Machine string
	// MachineData is the content of such a file, in place of Machine.
	MachineData []byte
	// Log gets failures and stall reports. nil: none; but ranks that are processes
	// then report stalls to [slog.Default], which is standard error unless the
	// program says otherwise: nobody else could say why a job stands still.
	Log *slog.Logger
	// StallAfter is how long a collective waits before Log hears what for.
	// 0: 10 s; negative: never.
	StallAfter time.Duration
	// CloseTimeout bounds the wait of Close, on ranks that are processes, for living
	// ranks that have not closed yet. Then Close leaves, and its error names them.
	// Give more if ranks have much to do after their last collective. 0: 30 s.
	CloseTimeout time.Duration
	// Recorder is a file in which each rank keeps its last events, for tierflow trace
	// --recorder to read even after a kill -9; %r stands for the rank. Empty: the
	// environment's TIERFLOW_RECORDER; if that is empty too, no file. A further job
	// of the process while the first is open has .w2 at the end of its files, and so
	// on, see [executor.World.Record].
	Recorder string
	// DumpOnQuit makes SIGQUIT print what each rank waits for to standard error, see
	// [executor.World.Dump]; so does TIERFLOW_DUMP=1 in the environment. The process
	// goes on, unless it gets a second SIGQUIT within a second.
	DumpOnQuit bool
	// Congestion is the TCP congestion control of this rank's connections to other
	// nodes, one that the kernel has and allows, such as reno; creating the communicator
	// fails otherwise. Empty: the environment's TIERFLOW_CONGESTION; if that is empty
	// too, the system's choice.
	Congestion string
	// Hooks watch every step, see package trace. Zero: none.
	Hooks trace.Hooks
	// NoPeerReads keeps processes of a node from copying straight from each other's
	// memory, as if the kernel forbade it; shared memory serves instead.
	NoPeerReads bool
	// NoSpread leaves it to the kernel where processes begin to run. Else Join moves each
	// once to a share of its node's processors, if all may run on the same and there are
	// enough; none stays bound.
	NoSpread bool
	// Link makes messages between goroutine ranks take their time, see
	// [local.NewNetwork]. nil: they don't.
	Link local.Shaper
	// Links names the links between nodes and their rate, such as 10gbit. Decision tables
	// are measured and asked under that name: what one has of other links is from
	// elsewhere. In a job of processes that of rank 0 counts. Empty: the environment's
	// TIERFLOW_LINKS; if that is empty too, they are unknown, but those of goroutine ranks
	// without Link are [table.SharedMemory].
	Links string
}

// Comm is one rank's end of a communicator: the world's, or one that Split or Dup
// made. Calls that create collectives may be made by any goroutine. Collectives of one
// communicator, Split and Dup among them, are started one after the other, in the same
// order on all ranks; those of different communicators are independent.
type Comm struct {
	comm     *executor.Comm
	world    *world
	topology *levels.Topology
	policy
	memo    *memo
	derived bool // made by Split or Dup: the world is another Comm's to close

	mu    sync.Mutex
	cache map[tasks.Request]*Collective // of the one-shot calls; nil when closed
	kept  []tasks.Request               // its keys, the oldest first
	// counts is the last call that told counts, for the next one; nil: none, or in use.
	counts *countsCall
}

// countsCall is the call in which ranks tell each other their counts. A communicator keeps
// one for its next alltoallv.
type countsCall struct {
	col   *Collective
	table []int64 // a row for each rank: its bits, what it gives each rank, what it gets
}

// world counts the ranks of this process that have not closed yet.
type world struct {
	*executor.World
	open  atomic.Int32
	quiet func()   // ends dumps on SIGQUIT; nil without
	lent  sync.Map // unsafe.Pointer of what Alloc returned → func() that frees it
}

// Local makes a communicator of goroutine ranks, one Comm for each rank of the
// topology, which [levels.Parse] reads: 4x2 is four nodes of two ranks. Each Comm
// must be closed.
func Local(topology string, o *Options) ([]*Comm, error) {
	t, err := levels.Parse(topology)
	if err != nil {
		return nil, err
	}
	return LocalOn(t, o)
}

// LocalOn is [Local] on a topology.
func LocalOn(t *levels.Topology, o *Options) ([]*Comm, error) {
	if t == nil || t.Depth() == 0 {
		return nil, errNoTopology
	}
	if o == nil {
		o = &Options{}
	}
	p, err := o.policy()
	if err != nil {
		return nil, err
	}
	if err := tcp.UsableCongestion(o.congestion()); err != nil {
		return nil, err // as between processes, which would use it
	}
	t = t.OneProcess()
	if err := p.settle(o, t); err != nil {
		return nil, err
	}
	w := &world{World: local.NewShaped(t.Size(), o.config(), o.Link)}
	if err := o.observe(w); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	w.open.Store(int32(t.Size()))
	w.register(t)
	comms := make([]*Comm, t.Size())
	for r := range comms {
		comms[r] = &Comm{
			comm: w.Endpoint(levels.Rank(r)).Comm(0), world: w, topology: t,
			policy: p, memo: &memo{}, cache: map[tasks.Request]*Collective{},
		}
	}
	return comms, nil
}

func (o *Options) config() executor.Config {
	return executor.Config{
		StallAfter: o.StallAfter, CloseTimeout: o.CloseTimeout, Log: o.Log, Hooks: o.Hooks,
	}
}

// congestion is the congestion control that the options or the environment name.
func (o *Options) congestion() string { return cmp.Or(o.Congestion, os.Getenv(CongestionVariable)) }

// forced reads the plans that the options or the environment force.
func (o *Options) forced(reg submodules.Registry) (f tasks.Forced, origin string, err error) {
	text, origin := o.planText()
	return parseForced(text, origin, reg)
}

func (o *Options) planText() (text, origin string) {
	if text, origin = o.Plan, "Options.Plan"; text == "" {
		text, origin = os.Getenv(PlanVariable), PlanVariable
	}
	switch order := (tasks.Plan{Order: tasks.TreeOrder}).String(); {
	case !o.Deterministic:
		return text, origin
	case text == "":
		return order, "Options.Deterministic"
	default:
		return order + ";" + text, "Options.Deterministic and " + origin
	}
}

func parseForced(text, origin string, reg submodules.Registry) (f tasks.Forced, _ string, err error) {
	if f, err = tasks.ParseForced(text); err != nil {
		return nil, "", fmt.Errorf("%s: %w", origin, err)
	}
	for _, item := range f {
		if err := reg.Check(item.Plan); err != nil {
			return nil, "", fmt.Errorf("%s: %w", origin, err)
		}
	}
	return f, origin, nil
}

// Run makes a communicator of goroutine ranks, calls f once per rank, each on a
// goroutine of its own, closes the communicator and returns the first error. When
// f fails or panics on one rank, the others' calls return a [PeerError]; so do
// those that wait for a rank on which f has returned.
func Run(ctx context.Context, topology string, o *Options, f func(ctx context.Context, c *Comm) error) error {
	comms, err := Local(topology, o)
	if err != nil {
		return err
	}
	return Each(ctx, comms, f)
}

// Each is [Run] on communicators that exist. It closes them, also when it can't call f.
func Each(ctx context.Context, comms []*Comm, f func(ctx context.Context, c *Comm) error) error {
	if len(comms) == 0 {
		return errors.New("there are no communicators; give one for each rank")
	}
	err := callable(ctx, f)
	for i, c := range comms {
		if c.made() != nil {
			err = errors.Join(err, fmt.Errorf("communicator %d of %d: %w", i, len(comms), errNoComm))
		} else if slices.Contains(comms[:i], c) {
			err = errors.Join(err, fmt.Errorf("communicator %d of %d is given twice", i, len(comms)))
		}
	}
	if err != nil { // the ranks that there are end with it
		f = func(context.Context, *Comm) error { return err }
		comms = slices.DeleteFunc(slices.Clone(comms), func(c *Comm) bool { return c.made() != nil })
	}
	var first atomic.Pointer[error]
	var all sync.WaitGroup
	for _, c := range comms {
		all.Go(func() {
			c.guard(ctx, f, func(err error) { first.CompareAndSwap(nil, &err) })
		})
	}
	all.Wait()
	if p := first.Load(); p != nil {
		return *p
	}
	return err
}

// callable is an error if there is no context to call a function with, or no function.
func callable(ctx context.Context, f func(ctx context.Context, c *Comm) error) (err error) {
	if ctx == nil {
		err = errNoContext
	}
	if f == nil {
		err = errors.Join(err, errNoFunction)
	}
	return err
}

// guard calls f and closes the communicator. It reports an error before others
// can see its consequences. A panic is an error, and so is runtime.Goexit, as
// testing's FailNow calls it.
func (c *Comm) guard(ctx context.Context, f func(ctx context.Context, c *Comm) error, report func(error)) {
	err := fmt.Errorf("rank %d ended its goroutine", c.Rank())
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("rank %d panicked: %v\n%s", c.Rank(), p, debug.Stack())
		}
		if err != nil {
			report(err)
			c.world.Fail(c.worldRank(), err)
		}
		if err := c.Close(); err != nil {
			report(err)
		}
	}()
	err = f(ctx, c)
}

// Rank is this rank's number, from 0.
func (c *Comm) Rank() int {
	c.mustBeMade()
	return int(c.comm.Rank())
}

// Size is the number of ranks.
func (c *Comm) Size() int {
	c.mustBeMade()
	return c.topology.Size()
}

// Topology is where the ranks are.
func (c *Comm) Topology() *levels.Topology {
	c.mustBeMade()
	return c.topology
}

// Links names the links between nodes, see [Options.Links]; empty: they are unknown.
func (c *Comm) Links() string {
	c.mustBeMade()
	return c.links
}

// Counters counts what this rank has done on the communicator.
func (c *Comm) Counters() executor.Counters {
	c.mustBeMade()
	return c.comm.Counters()
}

// Close leaves the communicator, and with the one of all ranks those that were
// made from it. Calls of the other ranks that would need this one fail from then
// on. Closing again does nothing; it is an error, on all ranks, while a call is on
// its way. Ranks that are processes wait for each other, for as long as
// [Options.CloseTimeout] says.
func (c *Comm) Close() error {
	if err := c.made(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	c.mu.Lock()
	closed := c.cache == nil
	c.cache, c.counts = nil, nil
	c.mu.Unlock() // calls needn't wait for those of other ranks
	if closed {
		return nil
	}
	if c.derived {
		return c.comm.Close()
	}
	err := c.comm.Endpoint().Close()
	if c.world.open.Add(-1) == 0 {
		c.world.forget()
		err = errors.Join(err, c.world.Close())
		if c.world.quiet != nil {
			c.world.quiet()
		}
	}
	return err
}
