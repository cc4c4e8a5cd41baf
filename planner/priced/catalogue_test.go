package priced_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs/machine/machinetest"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/plans"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// search looks for the plans of the whole catalogue that are simulated to take least, at
// each speed: first all shapes and algorithms with few cuts, then the neighbours of the best
// ones. What a search with heuristics leaves out is left out.
type search struct {
	t     *testing.T
	r     tasks.Request
	on    *levels.Topology
	most  int64 // steps of a plan; what has more is left out
	left  int64 // steps of all plans that are still to be looked at
	known map[string]*found
	large map[string]bool // families with too many steps even where they are cut little
}

// found is a plan and what it takes at each speed, ns.
type found struct {
	plan tasks.Plan
	ns   [3]float64 // by index into speeds; 0: not known
}

// Limits of a search: how many of the best plans have their neighbours looked at, and how
// often.
const (
	finalists = 4
	turns     = 4
)

// bestOf returns the best plan for each speed, and how many plans were looked at. It ends
// early when the plans have more steps than wanted together. Where all are too large for a
// simulation it returns the rule's plan and takes 0 ns for it.
func bestOf(t *testing.T, r tasks.Request, on *levels.Topology, most, steps int64) (best [3]found, plans int) {
	s := &search{t: t, r: r, on: on, most: most, left: steps, known: map[string]*found{}, large: map[string]bool{}}
	ruled, _ := builtin.Choose(r, on, tasks.Plan{})
	s.try(ruled)
	families := s.families()
	for _, segment := range []int64{tasks.Whole, 256 << 10, builtin.Packed(64 << 10), builtin.Packed(16 << 10)} {
		for _, p := range families {
			p.Segment = segment
			s.try(p)
		}
	}
	for range turns {
		for _, p := range s.finalists() {
			s.neighbours(p)
		}
	}
	for speed := range machinetest.Speeds {
		best[speed].plan = ruled
		if all := s.sorted(speed); len(all) > 0 {
			best[speed].plan, best[speed].ns[speed] = all[0].plan, all[0].ns[speed]
		}
	}
	return best, len(s.known)
}

// families lists a plan of every shape and every algorithm, not cut.
func (s *search) families() (found []tasks.Plan) {
	alone := s.on.Nodes() == s.on.Size()
	for _, shape := range tasks.ShapesOf(s.r.Coll) {
		if alone && shape.IsFlat() || s.on.Nodes() == 1 && shape.IsFlat() && shape != tasks.Flat || alone && shape == tasks.HanLockstep {
			continue // the same without
		}
		p := tasks.Plan{Shape: shape, Segment: tasks.Whole, Window: 8}
		for _, q := range (plans.Combinations{Registry: all.Submodules()}).Of(s.r, s.on, p) {
			if g, err := builtin.Fits(s.r, s.on, q, all.Submodules()); err == nil && !s.unshared(g, q) {
				found = append(found, q)
			}
		}
	}
	return found
}

// unshared reports whether a plan sends messages between ranks that share memory.
func (s *search) unshared(g *tasks.Graph, p tasks.Plan) bool {
	return slices.ContainsFunc(g.Phases, func(ph tasks.Phase) bool {
		c, _ := p.For(ph.Kind)
		return !p.Shape.IsFlat() && g.On.WithinNodes(ph.Level) && c.Submodule != submodules.SM && c.Submodule != submodules.Solo
	})
}

// finalists lists the best plans so far of all speeds.
func (s *search) finalists() (plans []tasks.Plan) {
	for speed := range machinetest.Speeds {
		all := s.sorted(speed)
		for _, f := range all[:min(finalists, len(all))] {
			plans = append(plans, f.plan)
		}
	}
	return plans
}

// sorted lists the plans that are known at a speed, the best first.
func (s *search) sorted(speed int) (all []*found) {
	for _, f := range s.known {
		if f != nil && f.ns[speed] > 0 {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b *found) int {
		return cmp.Or(cmp.Compare(a.ns[speed], b.ns[speed]), strings.Compare(a.plan.String(), b.plan.String()))
	})
	return all
}

// neighbours tries what differs from a plan in one number.
func (s *search) neighbours(p tasks.Plan) {
	segment := min(p.Segment, s.r.Bytes())
	cuts := []int64{tasks.Whole, builtin.Packed(power(segment)), power(segment), builtin.Packed(power(segment) / 2), builtin.Packed(power(segment) * 2), power(segment) * 4}
	for _, n := range cuts {
		q := p
		q.Segment = max(n, 1<<10)
		s.try(q)
	}
	for _, w := range []int{2, 3, 8} {
		q := p
		q.Window = w
		s.try(q)
	}
	g, err := builtin.Outline(s.r, s.on, p)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, ph := range g.Phases {
		c, _ := p.For(ph.Kind)
		a := algorithm(c)
		numbers, inners := []int{0}, []int64{0}
		if a.Number.Taken() {
			numbers = append(numbers, a.Number.Worth...)
		}
		if a.Inner {
			inners = append(append(inners, 32<<10), a.Inners...)
			if c.Inner > 0 {
				inners = append(inners, c.Inner/2, c.Inner*2)
			}
		}
		for _, n := range numbers {
			next := c
			if next.N = n; n < g.On.Widest(ph.Level) {
				s.try(p.Set(ph.Kind.String(), next))
			}
		}
		for _, n := range inners {
			next := c
			next.Inner = n
			s.try(p.Set(ph.Kind.String(), next))
			s.try(alike(p, g, ph, next))
		}
	}
}

// alike sets the choice of a kind, and of those kinds of the level that have its algorithm.
func alike(p tasks.Plan, g *tasks.Graph, ph tasks.Phase, c tasks.Choice) tasks.Plan {
	for _, other := range g.Phases {
		was, _ := p.For(other.Kind)
		if other.Level == ph.Level && was.Submodule == c.Submodule && was.Algorithm == c.Algorithm {
			p = p.Set(other.Kind.String(), c)
		}
	}
	return p
}

// power returns the largest power of two up to n and a sixteenth.
func power(n int64) int64 {
	p := int64(1)
	for p*2 <= n+n/15 {
		p *= 2
	}
	return p
}

func algorithm(c tasks.Choice) submodules.Algorithm {
	if m, err := all.Submodules().Find(c.Submodule); err == nil {
		for _, a := range m.Algorithms() {
			if a.Name == c.Algorithm {
				return a
			}
		}
	}
	return submodules.Algorithm{}
}

// try simulates a plan at all speeds, unless it is known, or has too many steps.
func (s *search) try(p tasks.Plan) {
	p = table.Canonical(p, s.r.Bytes())
	key := p.String()
	if _, done := s.known[key]; done || s.left <= 0 {
		return
	}
	g, err := builtin.Fits(s.r, s.on, p, all.Submodules())
	whole := p
	whole.Segment, whole.Window = tasks.Whole, 1
	if s.known[key] = nil; err != nil || s.large[whole.String()] || s.isPruned(g, p) {
		return
	}
	job, err := sim.Compile(s.r, s.on, p, all.Submodules())
	if err != nil {
		s.t.Fatalf("%v on %v by %v: %v", s.r, s.on, p, err)
	}
	s.left -= job.Steps() + 20*int64(s.on.Size())
	if job.Steps() > s.most {
		s.large[whole.String()] = true
		return
	}
	f := &found{plan: p}
	for speed := range machinetest.Speeds {
		result, err := job.Run(machinetest.Speeds[speed].Machine(), sim.Options{})
		if err != nil {
			s.t.Fatalf("%v on %v by %v: %v", s.r, s.on, p, err)
		}
		f.ns[speed] = result.Time.Nanoseconds()
	}
	s.known[key] = f
}

// isPruned reports whether a search with heuristics leaves a plan out, or whether its ranks
// all speak with all, of which there are too many to simulate.
func (s *search) isPruned(g *tasks.Graph, p tasks.Plan) bool {
	bytes := max(s.r.Bytes(), 1)
	segment := min(p.Segment, bytes)
	segments := (bytes + segment - 1) / segment
	if segments > 1 && bytes <= builtin.CutFrom {
		return true
	}
	for _, ph := range g.Phases {
		c, _ := p.For(ph.Kind)
		ranks, pieces := g.On.Widest(ph.Level), segments
		if c.Inner > 0 {
			pieces *= (segment + c.Inner - 1) / c.Inner
		}
		everybody := int64(ranks) * int64(s.on.Size()) * segments
		switch {
		case c.Algorithm == submodules.Chain && ranks > 2 && pieces < int64(ranks):
			return true
		case c.Algorithm == submodules.Linear && c.Submodule != submodules.Solo && ranks > builtin.LinearRanks:
			return true
		case c.Submodule == submodules.Solo && segment < 512<<10 && (ph.Kind.Op != tasks.Alltoall || segment < 8<<10):
			return true
		case everybody > s.most && slices.Contains([]string{submodules.Ring, submodules.Pairwise, submodules.Neighbor, submodules.Slices}, c.Algorithm):
			return true
		}
	}
	return false
}
