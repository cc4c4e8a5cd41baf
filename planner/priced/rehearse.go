package priced

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/executor/flow"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// rehearsal simulates plans of one request on a machine, within a budget. It counts work and
// reads no clock, so all ranks come to the same end.
type rehearsal struct {
	machine    *machine.Machine
	asked      *builtin.Asked
	reg        submodules.Registry
	left       int64            // of the budget, in simulated steps
	most       int64            // of one plan
	spare      int64            // of the budget, for the best ones
	eager      int64            // goes without credit, bytes
	areAlike   bool             // nodes: equal in ranks and in costs, so that one may stand for all
	noneStands bool             // for others: all ranks are simulated
	ruled      tasks.Plan       // the rule's
	own        float64          // its time, ns; 0: it was not asked for
	ruleStands bool             // one node stood for all when the rule's plan was simulated
	jobs       map[string]sized // jobs, by structure
	asymmetric map[string]bool  // plans with nodes that don't do the same, by outer
}

// sized is a job, with the bytes of its request.
type sized struct {
	job   *sim.Job
	bytes int64
}

// Costs of compiling, in simulated steps.
const (
	compiledRank = 8   // a rank
	compiledPlan = 300 // a plan
)

// The budget for numbers of a hasty measurement, in steps of 0.1 to 0.3 µs: a millisecond for few
// ranks, and ten for mostRanks. Exact numbers are worth exactTimes as much, up to mostExact. Among
// more ranks nothing is simulated: a look at one plan takes longer.
const (
	leastBudget  = 6_000
	budgetOfRank = 64
	exactTimes   = 12
	mostExact    = 200_000
	mostRanks    = 1024
	mostShare    = 2 // one plan may use as much of it
	spareShare   = 4 // as much is kept for the best ones
)

// newRehearsal returns a rehearsal with a budget of so many steps.
func newRehearsal(m *machine.Machine, asked *builtin.Asked, reg submodules.Registry, steps int64) *rehearsal {
	return &rehearsal{machine: m, asked: asked, reg: reg, eager: flow.NewLimits(m.EagerMax, m.Budget).EagerMax, areAlike: sim.CheckEqual(asked.On) == nil && sim.CheckAlike(m, 0) == nil, left: steps, most: steps, jobs: map[string]sized{}, asymmetric: map[string]bool{}}
}

// divideBudget divides the budget of a choice. margin is that of [Choose].
func (s *rehearsal) divideBudget(margin float64) {
	size := int64(s.asked.On.Size())
	if size > mostRanks {
		s.left = 0
		return
	}
	s.left = max(leastBudget, budgetOfRank*size)
	if margin < Hasty {
		s.left = max(s.left, min(exactTimes*s.left, mostExact))
	}
	s.most, s.spare = s.left/mostShare, s.left/spareShare
	s.left -= s.spare
}

// time returns the time of a plan, ns, if the budget allows to find out. A plan that takes longer
// than limit takes an infinite time; 0: there is no limit. A long row of segments is simulated
// in part: once the pipeline is full, and the first messages without credit have gone, each further
// segment takes as long as the one before. isPart says so, or that one node stood for all: then
// simultaneous events come in the best order.
func (s *rehearsal) time(p tasks.Plan, limit float64) (ns float64, isPart, ok bool) {
	r, p := s.withEqualShards(p)
	bytes := s.asked.Request().Bytes()
	unit, fill := s.pipelineOf(p)
	first := int64(fill + 2)
	if unit > 0 {
		first += flow.NewLimits(s.machine.EagerMax, s.machine.Budget).Lead / unit
	}
	second := first + int64(max(p.Window, 2*fill, 8))
	if unit == 0 || bytes/unit <= first+second+2 {
		ns, ok = s.whole(r, bytes, p, limit)
		return ns, ok && s.jobs[s.structure(r, p)].job.StandsFor() > 1, ok
	}
	short, ok := s.whole(s.cut(first*unit), first*unit, p, limit)
	if !ok || math.IsInf(short, 1) {
		return short, true, ok
	}
	long, ok := s.whole(s.cut(second*unit), second*unit, p, limit)
	each := (long - short) / float64((second-first)*unit)
	return long + float64(float64(bytes-second*unit)*each), true, ok
}

// withEqualShards returns the request and the plan with shards of one size for all ranks, so nodes are alike.
func (s *rehearsal) withEqualShards(p tasks.Plan) (tasks.Request, tasks.Plan) {
	r, size := s.asked.Request(), int64(s.asked.On.Size())
	if r.Blocks() || r.Count < size {
		return r, p
	}
	r.Count -= r.Count % size
	if all := size * int64(r.Type.Size()); p.Segment < r.Bytes() && p.Segment >= all {
		p.Segment -= p.Segment % all
	}
	return r, p
}

// cut returns the request with fewer bytes.
func (s *rehearsal) cut(bytes int64) tasks.Request {
	r := s.asked.Request()
	r.Count = max(1, bytes/int64(r.Type.Size()))
	return r
}

// pipelineOf returns the length of the segments in a row, bytes, and their number until the pipeline is full.
// 0: the message goes in one.
func (s *rehearsal) pipelineOf(p tasks.Plan) (unit int64, fill int) {
	g, err := s.asked.Outline(p)
	if err != nil {
		return 0, 0
	}
	if p.Segment < s.asked.Request().Bytes() {
		unit = p.Segment
	}
	for _, ph := range g.Phases {
		c, _ := p.For(ph.Kind)
		if ph.Kind.Op != tasks.Bcast && ph.Kind.Op != tasks.Reduce {
			fill = max(fill, p.Window)
			continue
		}
		n := g.On.Widest(ph.Level)
		depth := 2 * submodules.Doublings.Of(n)
		if a, known := s.reg.Algorithm(c); known {
			switch {
			case a.Traffic[ph.Kind.Op].Rounds != 0:
				depth = a.Traffic[ph.Kind.Op].Rounds.Of(n)
			case a.Number.Taken():
				depth = max(depth, n/max(1, cmp.Or(c.N, a.Number.Usual)))
			}
		}
		fill += depth
		if unit == 0 && c.Inner > 0 {
			unit = c.Inner
		}
	}
	return unit, fill
}

// whole simulates a plan for a request as if it had so many bytes, if the budget allows it.
func (s *rehearsal) whole(r tasks.Request, bytes int64, p tasks.Plan, limit float64) (ns float64, ok bool) {
	key := s.structure(r, p)
	known := s.jobs[key]
	if known.job == nil {
		if known, ok = s.compile(r, p); !ok {
			return 0, false
		}
		s.jobs[key] = known
	}
	s.left -= known.job.Steps() / int64(known.job.StandsFor())
	result, err := known.job.Resized(bytes, known.bytes).Run(s.machine, sim.Options{Limit: sim.Time(limit * float64(sim.Nanosecond))})
	switch {
	case errors.Is(err, sim.ErrLimit):
		return math.Inf(1), true
	case err != nil:
		return 0, false
	}
	return result.Time.Nanoseconds(), true
}

// structure names a job for a request but for lengths. Plans with messages that differ in nothing else
// share it: those cut into as many equal segments and pieces.
func (s *rehearsal) structure(r tasks.Request, p tasks.Plan) string {
	bytes := r.Bytes()
	ranks := ""
	if s.noneStands && s.mayStand(r) {
		ranks = "all ranks "
	}
	segment := min(p.Segment, bytes)
	if segment == 0 || bytes%segment != 0 {
		return fmt.Sprint(ranks, bytes, " ", p)
	}
	count := bytes / segment
	p.Segment = tasks.Whole
	for _, key := range p.Keys() {
		c, _ := p.Choice(key)
		if c.Inner == 0 || c.Inner >= segment {
			c.Inner = 0
		} else if segment%c.Inner == 0 {
			c.Inner = segment / c.Inner
		} else {
			return fmt.Sprint(ranks, bytes, " ", count, " ", p)
		}
		p = p.Set(key, c)
	}
	return fmt.Sprint(ranks, count, " of ", p)
}

// compile compiles a plan for a request, if the budget allows it.
func (s *rehearsal) compile(r tasks.Request, p tasks.Plan) (sized, bool) {
	c := &sim.Compilation{Request: r, Topology: s.asked.On, Plan: p, Registry: s.reg, Most: min(s.left, s.most)}
	if s.guess(r, p) > c.Most {
		return sized{}, false
	}
	s.left -= compiledPlan + compiledRank*int64(s.asked.On.Size())
	job, err := s.job(c)
	s.left -= sim.CompiledStep * c.Compiled()
	return sized{job, r.Bytes()}, err == nil
}

// job compiles one node that stands for all, or else all ranks.
func (s *rehearsal) job(c *sim.Compilation) (*sim.Job, error) {
	if outer := s.outer(c.Plan); s.standsForAll(c.Request) && !s.asymmetric[outer] {
		c.Trusting = true
		job, err := c.SymmetricJob()
		if !errors.Is(err, sim.ErrAsymmetric) {
			return job, err
		}
		if s.asymmetric[outer] = true; s.guess(c.Request, c.Plan) > c.Most {
			return nil, sim.ErrLimit
		}
	}
	return c.Job()
}

// standsForAll reports whether one node stands for all where nodes do the same.
func (s *rehearsal) standsForAll(r tasks.Request) bool { return !s.noneStands && s.mayStand(r) }

// mayStand reports whether one node could stand for all: none has the root, and nodes are alike.
func (s *rehearsal) mayStand(r tasks.Request) bool { return !r.Rooted() && s.areAlike }

// guess returns about how much work a simulation is: each rank sends and receives as often as
// each phase's algorithm says, for each segment. Ranks of one role are compiled once: with levels
// all but leaders have their place in the node for a role, else each has its own.
func (s *rehearsal) guess(r tasks.Request, p tasks.Plan) (steps int64) {
	g, err := s.asked.Outline(p)
	if err != nil {
		return 0
	}
	for _, ph := range g.Phases {
		c, _ := p.For(ph.Kind)
		messages := 1
		if op := ph.Kind.Op; op != tasks.Bcast && op != tasks.Reduce {
			n := g.On.Widest(ph.Level)
			messages = submodules.Doublings.Of(n)
			if a, known := s.reg.Algorithm(c); known {
				messages = max(messages, a.Traffic[op].Rounds.Of(n), a.Traffic[op].Partners.Of(n))
			}
			if op == tasks.Gather || op == tasks.Scatter {
				messages = 1
			}
		} else if r.Blocks() && p.Segment < r.Bytes() { // one after the other
			messages = s.asked.On.Size()
		}
		pieces := int64(1)
		if c.Inner > 0 {
			pieces = (min(p.Segment, r.Bytes()) + c.Inner - 1) / c.Inner
		}
		steps += 2 * int64(messages) * pieces
	}
	ranks := s.asked.On.Size()
	compiled := ranks
	switch nodes := s.asked.On.Nodes(); {
	case s.standsForAll(r) && !s.asymmetric[s.outer(p)]:
		ranks /= nodes
		compiled = ranks
	case !p.Shape.IsFlat() && p.Shape != tasks.Lanes && !r.Blocks(): // the root's node, one of the others, and the other leaders
		compiled = 2*(ranks/nodes) + nodes
	}
	steps *= int64(ranks + sim.CompiledStep*min(compiled, ranks))
	return steps * max(1, (r.Bytes()+p.Segment-1)/max(1, p.Segment))
}
