package sim

import (
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Compilation makes a job of a request. The zero values of the functions change nothing.
type Compilation struct {
	Request  tasks.Request
	Topology *levels.Topology
	Plan     tasks.Plan
	Registry submodules.Registry
	// Keep reports whether a task is compiled, see [tasks.Graph.Only]. All ranks must keep
	// the same phases. nil: all tasks are.
	Keep func(*tasks.Task) bool
	// Idle reports whether a rank does nothing. The others must not speak with it. nil: no rank is
	// idle.
	Idle func(levels.Rank) bool
	// Check is asked before each rank. Its error ends the compilation, and is that of Job.
	// nil: nobody is asked.
	Check func() error
	// Trusting lets SymmetricJob compare no more than two ranks of other nodes, the second node's
	// first and the last one. If others differ the times are wrong.
	Trusting bool
	// Most bounds the work, in steps: those of all simulated ranks, and [CompiledStep] for each
	// compiled one. A job of more is [ErrLimit]. 0: there is no bound.
	Most int64

	unfolded bool // every rank is compiled by itself
	compiled int64
	compiler submodules.Compiler
}

// Compile compiles a request for all ranks. It keeps no more than their forms: a rank's program is
// dropped before the next one is made.
func Compile(r tasks.Request, t *levels.Topology, p tasks.Plan, reg submodules.Registry) (*Job, error) {
	return (&Compilation{Request: r, Topology: t, Plan: p, Registry: reg}).Job()
}

// Job compiles for all ranks, as [Compile] does.
func (c *Compilation) Job() (*Job, error) {
	cut, err := tasks.CutRequest(c.Request, c.Topology, c.Plan)
	if err != nil {
		return nil, err
	}
	j := &Job{topology: c.Topology, passes: cut.Passes}
	store, steps := newStore(), int64(0) // of all ranks
	for _, p := range partsOf(cut) {
		before := int64(0)
		err := c.eachSeat(p.request, cut.On, store, nil, func(rank levels.Rank, s seat, uncompiled int) error {
			j.seats[p.index] = append(j.seats[p.index], s)
			each, others := int64(s.form.len()), int64(0)
			steps += p.times * each
			if rank >= firstOthers { // those to come are as much work at least
				others = min(before, each) * (p.times*int64(c.Topology.Size()-1-int(rank)) + CompiledStep*int64(uncompiled))
			}
			before = each
			return c.checkWork(steps + others)
		})
		if err != nil {
			return nil, err
		}
	}
	j.forms = store.count
	return j, j.connect(c.Check)
}

// CompiledStep is the work of compiling a step, in simulated steps: BenchmarkCompile and
// BenchmarkRun take 0.2 to 0.5 µs and 0.1 to 0.3 µs for one.
const CompiledStep = 2

// firstOthers is the first rank like those after it: ranks below it may lead others.
const firstOthers = 3

// checkWork returns [ErrLimit] if so many steps, and the compiled ones, are too much work.
func (c *Compilation) checkWork(steps int64) error {
	if c.Most > 0 && steps+CompiledStep*c.compiled > c.Most {
		return ErrLimit
	}
	return nil
}

// Compiled returns how many steps were compiled so far, for failed jobs too.
func (c *Compilation) Compiled() int64 { return c.compiled }

// part is what a job does with the seats of one index.
type part struct {
	index   int
	request tasks.Request
	times   int64 // how often it is done, 1 or more
}

// partsOf returns the parts of a job that there are: the passes, and the rest in the end.
func partsOf(cut tasks.Cut) []part {
	parts := make([]part, 0, 2)
	if cut.Passes > 0 {
		parts = append(parts, part{0, cut.Whole, cut.Passes})
	}
	if cut.Passes == 0 || cut.Rest.Count > 0 {
		parts = append(parts, part{1, cut.Rest, 1})
	}
	return parts
}

// eachSeat calls f for each rank, in their order, with its place in a form of the store, and with
// how many ranks are still to be compiled. An error of f ends it. If isLeft reports true a rank is
// left out; nil: none is.
func (c *Compilation) eachSeat(part tasks.Request, on *levels.Hierarchy, store *store, isLeft func(levels.Rank) bool, f func(rank levels.Rank, s seat, uncompiled int) error) error {
	isAlone := c.Trusting && isLeft != nil // no two of the remaining ranks have one role
	roles := newCasting(part, on, c.Plan, !c.unfolded && c.Idle == nil && !isAlone)
	for rank := range levels.Rank(c.Topology.Size()) {
		if isLeft != nil && isLeft(rank) {
			continue
		}
		if err := ask(c.Check); err != nil {
			return err
		}
		s, known := seat{form: nothing}, c.Idle != nil && c.Idle(rank)
		if !known {
			s, known = roles.fold(rank)
		}
		if !known {
			prog, err := c.compileRank(part, on, rank)
			if err != nil {
				return err
			}
			s = seatOf(prog, store)
			c.compiled += int64(s.form.len())
			roles.add(rank, s)
		}
		if err := f(rank, s, roles.unknown); err != nil {
			return err
		}
	}
	return nil
}

func (c *Compilation) compileRank(part tasks.Request, on *levels.Hierarchy, rank levels.Rank) (*submodules.Program, error) {
	g, err := tasks.ExpandOn(part, on, c.Plan, rank)
	if err != nil {
		return nil, err
	}
	if c.Keep != nil {
		g = g.Only(c.Keep)
	}
	return c.compiler.Compile(g, on.Topology().Size(), c.Registry)
}
