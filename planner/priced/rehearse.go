package priced

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/price"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/planner/rule"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// rehearsal simulates plans of one request on a machine, within a budget. It counts work and
// reads no clock, so all ranks come to the same end.
type rehearsal struct {
	machine *machine.Machine
	asked   *rule.Asked
	reg     submodules.Registry
	left    int64 // of the budget, in steps that are simulated
	most    int64 // of one plan
}

// What compiling takes, in steps that are simulated.
const (
	compiledRank = 8   // a rank, whatever it does
	compiledPlan = 300 // a plan
)

// The budget for numbers of a hasty measurement, in steps of 0.1 to 0.2 µs: a millisecond for few
// ranks, and ten for mostRanks. Exact numbers are worth exactTimes as much. Among more ranks
// nothing is simulated: a look at one plan takes longer.
const (
	leastBudget  = 6_000
	budgetOfRank = 64
	exactTimes   = 4
	mostRanks    = 1024
	mostShare    = 3 // one plan may use as much of it
)

// newRehearsal returns a rehearsal with all of its budget. margin is that of [Choose].
func newRehearsal(m *machine.Machine, asked *rule.Asked, reg submodules.Registry, margin float64) *rehearsal {
	s := &rehearsal{machine: m, asked: asked, reg: reg}
	if size := int64(asked.On.Size()); size <= mostRanks {
		s.left = max(leastBudget, budgetOfRank*size)
		if margin < Hasty {
			s.left *= exactTimes
		}
		s.most = s.left / mostShare
	}
	return s
}

// time returns what a plan takes, ns, if the budget allows to find out. A plan that takes longer
// than limit takes an infinite time; 0: there is no limit. A long row of segments is simulated
// in part: once the pipeline is full each further segment takes as long as the one before.
func (s *rehearsal) time(p tasks.Plan, limit float64) (ns float64, ok bool) {
	r := s.asked.Request
	unit, fill := s.row(p)
	count := r.Bytes() / max(unit, 1)
	first := int64(fill + 2)
	second := first + int64(max(p.Window, fill, 4))
	if unit == 0 || count <= first+second+2 {
		return s.whole(r, p, limit)
	}
	short, ok := s.whole(s.cut(first*unit), p, limit)
	if !ok || math.IsInf(short, 1) {
		return short, ok
	}
	long, ok := s.whole(s.cut(second*unit), p, limit)
	each := (long - short) / float64((second-first)*unit)
	return long + float64(r.Bytes()-second*unit)*each, ok
}

// cut returns the request with fewer bytes.
func (s *rehearsal) cut(bytes int64) tasks.Request {
	r := s.asked.Request
	r.Count = max(1, bytes/int64(r.Type.Size()))
	return r
}

// row returns how long the segments are that follow each other, bytes, and how many of them it
// takes until the pipeline is full. 0: the message goes in one.
func (s *rehearsal) row(p tasks.Plan) (unit int64, fill int) {
	g, err := s.asked.Outline(p)
	if err != nil {
		return 0, 0
	}
	if p.Segment < s.asked.Request.Bytes() {
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

// whole simulates a plan for a request, if the budget allows it.
func (s *rehearsal) whole(r tasks.Request, p tasks.Plan, limit float64) (ns float64, ok bool) {
	if !r.Blocks() { // so that all have shards of one size, and nodes are alike
		size := int64(s.asked.On.Size())
		if r.Count > leastShards*size {
			r.Count -= r.Count % size
		}
		if all := size * int64(r.Type.Size()); p.Segment < r.Bytes() && p.Segment > leastShards*all {
			p.Segment -= p.Segment % all
		}
	}
	c := &sim.Compilation{Request: r, Topology: s.asked.On, Plan: p, Registry: s.reg, Most: min(s.left, s.most)}
	s.left -= compiledPlan + compiledRank*int64(s.asked.On.Size())
	if s.guess(r, p) > 2*c.Most {
		return 0, false
	}
	job, err := s.compile(c)
	if err != nil {
		if errors.Is(err, sim.ErrLimit) {
			s.left -= c.Most
		}
		return 0, false
	}
	s.left -= sim.CompiledStep*job.Compiled() + job.Steps()/int64(job.StandsFor())
	result, err := job.Run(s.machine, sim.Options{Limit: sim.Time(limit * float64(sim.Nanosecond))})
	switch {
	case errors.Is(err, sim.ErrLimit):
		return math.Inf(1), true
	case err != nil:
		return 0, false
	}
	return result.Time.Nanoseconds(), true
}

// leastShards is from how many elements for each rank on some may be left out.
const leastShards = 16

// compile compiles one node that stands for all, or else all ranks.
func (s *rehearsal) compile(c *sim.Compilation) (*sim.Job, error) {
	if s.standsForAll(c.Request) {
		c.Trusting = true
		job, err := c.SymmetricJob()
		if !errors.Is(err, sim.ErrAsymmetric) {
			return job, err
		}
		s.left -= compiledPlan
	}
	return c.Job()
}

// standsForAll reports whether one node may stand for all.
func (s *rehearsal) standsForAll(r tasks.Request) bool {
	return !r.Rooted() && s.asked.On.Nodes() > 1 && sim.CheckAlike(s.machine, 0) == nil
}

// guess returns about how many steps a simulation has: each rank sends and receives as often as
// each phase's algorithm says, for each segment.
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
	if s.standsForAll(r) {
		ranks /= s.asked.On.Nodes()
	}
	return steps * int64(ranks) * max(1, (r.Bytes()+p.Segment-1)/max(1, p.Segment))
}

// candidate is a plan that may be chosen.
type candidate struct {
	Priced
	family string
	known  bool // it has a price; else that of the cheapest stands for it
}

// seen returns the plan, without a price that is another one's.
func (c *candidate) seen() Priced {
	p := c.Priced
	if !c.known {
		p.Price = price.Price{}
	}
	return p
}

// hope is by how much less a plan may take than its price says, as a share, before any
// of its family was simulated.
const hope = 0.6

// contest is plans that compete, and what was learned of them.
type contest struct {
	*rehearsal
	left   []candidate       // that were not simulated, sorted by price
	missed []candidate       // that are too large to be simulated
	seen   []Priced          // that were simulated
	best   float64           // of seen, ns
	ratios map[string]ratios // of a simulated time to a price, by family
	logs   float64           // of the last ratios of families with a price
	known  int               // how many of these there are
}

// ratios are those of a family: the last one, and the least and the most of all.
type ratios struct{ last, least, most float64 }

// lowest is what the next one is at least, if it is as far below the others as these are apart,
// and by neighbour anyway.
func (r *ratios) lowest() float64 { return min(neighbour*r.last, r.least*r.least/r.most) }

// compete simulates plans, the most promising first, until the budget is spent or none promises
// to be better than the best one. all are sorted by price. It returns all, the fastest first:
// those that were not simulated with what is expected of them.
func (s *rehearsal) compete(all []candidate) []Priced {
	t := &contest{rehearsal: s, left: all, best: math.Inf(1), ratios: map[string]ratios{}}
	for at := t.next(); at >= 0 && s.left > 0 && len(t.missed) < mostMissed; at = t.next() {
		c := t.left[at]
		t.left = slices.Delete(t.left, at, at+1)
		if !s.fits(c.Plan) {
			continue
		}
		ns, ok := s.time(c.Plan, unworthy*t.best)
		switch {
		case !ok:
			t.missed = append(t.missed, c)
			continue
		case math.IsInf(ns, 1):
			ns = max(unworthy*t.best, t.ratios[c.family].last*c.Price.NS)
			c.Expected = ns
			t.seen = append(t.seen, c.seen())
		default:
			c.Simulated = ns
			t.seen = append(t.seen, c.seen())
			t.best = min(t.best, ns)
		}
		t.learn(&c, ns)
	}
	for _, c := range slices.Concat(t.left, t.missed) {
		ns, known := t.expected(&c)
		switch {
		case !c.known:
			continue
		case !math.IsInf(t.best, 1): // some were simulated
			ns *= 1 + unseen
		case known:
			ns *= 1 + Exact
		default:
			ns *= 1 + doubt
		}
		c.Expected = ns
		t.seen = append(t.seen, c.Priced)
	}
	slices.SortStableFunc(t.seen, func(a, b Priced) int { return cmp.Compare(a.Time(), b.Time()) })
	for i := 0; i < min(maxPlans, len(t.seen)); {
		if t.seen[i].Simulated > 0 || s.fits(t.seen[i].Plan) {
			i++
		} else {
			t.seen = slices.Delete(t.seen, i, i+1)
		}
	}
	return t.seen
}

// fits reports whether a plan can be compiled.
func (s *rehearsal) fits(p tasks.Plan) bool {
	_, err := s.asked.Fits(p, s.reg)
	return err == nil
}

// expected returns what a plan probably takes, ns, and whether its family is known.
func (t *contest) expected(c *candidate) (ns float64, known bool) {
	if of, known := t.ratios[c.family]; known {
		return c.Price.NS * of.last, true
	}
	return c.Price.NS * math.Exp(t.logs/float64(max(1, t.known))), false
}

// learn keeps what a plan takes for others of its family, and if it has a price for all.
func (t *contest) learn(c *candidate, ns float64) {
	ratio := ns / c.Price.NS
	of, known := t.ratios[c.family]
	if !known {
		of = ratios{ratio, ratio, ratio}
	}
	t.ratios[c.family] = ratios{ratio, min(of.least, ratio), max(of.most, ratio)}
	switch {
	case !c.known:
	case known:
		t.logs += math.Log(ratio / of.last)
	default:
		t.logs += math.Log(ratio)
		t.known++
	}
}

// next returns the index of the plan that promises to take least, -1: none is worth a simulation.
// What it promises lies between what is expected of it and the least that it may take.
func (t *contest) next() int {
	at, least := -1, math.Inf(1)
	for i := range t.left {
		ns, known := t.expected(&t.left[i])
		bound := hope * ns
		if known {
			of := t.ratios[t.left[i].family]
			bound = of.lowest() * t.left[i].Price.NS
		}
		if promise := math.Sqrt(bound * ns); bound < t.best && promise < least {
			at, least = i, promise
		}
	}
	return at
}

const (
	// unworthy is how many times as long as the best one a plan may take to be simulated to its end.
	unworthy = 1.25
	// mostMissed is how many plans may turn out to be too large.
	mostMissed = 50
	// neighbour is by how much less a plan may take than others of its family promise.
	neighbour = 0.9
	// unseen is by which share of its time a plan must promise less than those that were simulated,
	// if it was too large for that, or the budget was spent.
	unseen = 0.25
	// doubt is by which share the price of a plan is taken to be too low of whose family none was simulated.
	doubt = 0.1
)

// family names what a plan is but for sizes: shape and algorithms.
func family(p tasks.Plan) string {
	text := p.Shape.String()
	for _, key := range p.Keys() {
		c, _ := p.Choice(key)
		c.Inner = 0
		text += "," + key + "=" + c.String()
	}
	return text
}
