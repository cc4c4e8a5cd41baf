package priced

import (
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// mostMeasured bounds the messages of a plan chosen on hasty numbers, bytes. The longest ones in such a
// measurement have 168 KiB, and lie in caches. Longer ones may not, and then a byte takes longer than
// measured.
const mostMeasured = 256 << 10

// ruleBudget is the least budget for one simulation of the rule's plan, in simulated steps: about two
// milliseconds. Plans of some hundred segments between a few ranks take as much.
const ruleBudget = 4 * leastBudget

// simulateRule simulates the rule's plan on a budget of its own: with all ranks, or if they are too many
// with one node in place of all. It reports whether it could.
func (s *rehearsal) simulateRule(ruled tasks.Plan) (ok bool) {
	left, most := s.left, s.most
	defer func() { s.left, s.most, s.noneStands = left, most, false }()
	s.ruled = ruled
	for _, s.ruleStands = range []bool{false, true} {
		s.left = max(left, ruleBudget)
		s.most, s.noneStands = s.left, !s.ruleStands
		if s.own, _, ok = s.time(ruled, 0); ok {
			return true
		}
	}
	return false
}

// prove simulates plans as the rule's was, the fastest first, until one takes less than limit, ns,
// or the budget is spent. Slower plans, and those before it without a simulation, go.
func (s *rehearsal) prove(seen []Priced, limit float64) []Priced {
	s.left, s.noneStands = s.left+s.most, !s.ruleStands
	defer func() { s.noneStands = false }()
	for len(seen) > 0 && !seen[0].Plan.Equal(s.ruled) {
		if one := &seen[0]; one.Simulated > 0 && one.Simulated < limit && s.left > 0 {
			if ns, _, ok := s.time(one.Plan, limit); ok && ns < limit {
				one.Simulated = ns
				break
			}
		}
		seen = seen[1:]
	}
	return seen
}

// longest returns about how long the longest message between nodes is, bytes: a segment, or a
// piece of it, or a node's share of it if algorithms divide it among all first. Blocks that go straight
// from their source to their place don't count: no cache has them twice, however they are cut.
func (s *rehearsal) longest(p tasks.Plan) (bytes int64) {
	g, err := s.asked.Outline(p)
	if err != nil {
		return 0
	}
	for _, ph := range g.Phases {
		n := g.On.Widest(ph.Level)
		c, _ := p.For(ph.Kind)
		if n < 2 || ph.Level < g.On.Depth()-1 || n == s.asked.On.Size() && s.goesStraight(c, ph.Kind.Op) {
			continue
		}
		one := min(p.Segment, s.asked.Request().Bytes())
		if c.Inner > 0 {
			one = min(one, c.Inner)
		}
		if a, known := s.reg.Algorithm(c); known && ph.Kind.Op == tasks.Allreduce {
			switch a.Traffic[ph.Kind.Op].Rounds {
			case submodules.TwiceOthers, submodules.TwiceDoublings:
				one /= int64(n)
			}
		}
		bytes = max(bytes, one)
	}
	return bytes
}

// goesStraight reports whether a choice has each block of an operation sent once, by the rank that has it to the
// one that it is for.
func (s *rehearsal) goesStraight(c tasks.Choice, op tasks.Collective) bool {
	a, known := s.reg.Algorithm(c)
	isMoved := op == tasks.Gather || op == tasks.Scatter || op == tasks.Alltoall
	return known && isMoved && a.Traffic[op].Partners == submodules.Others
}
