package tune

import (
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/plans"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Space is the plans of a search: every shape, cut into every segment
// size with every window, under every combination of submodules, algorithms and
// inner segments for the levels, less plans forbidden by restrictions of algorithms
// and shapes. The zero value of a list is its default.
type Space struct {
	Registry   submodules.Registry // to choose from
	Shapes     []tasks.Shape       // nil: all
	Submodules []string            // nil: all of Registry
	Segments   []int64             // bytes, of each block if there are blocks; nil: [DefaultSegments]
	Windows    []int               // nil: [DefaultWindows]
	Inners     []int64             // bytes, 0 is none; nil: [DefaultInners], and those of an algorithm
	Numbers    []int               // of algorithms, 0 is the default; nil: that and those of an algorithm
	Eagers     []int64             // bytes, of exchanges with blocks that differ, 0 is none; nil: [DefaultEagers]
	Plan       tasks.Plan          // its choices are not searched
	Heuristics bool                // leave out plans that rarely win, see [Space.whyPruned]
	Machine    *machine.Machine    // with Heuristics its prices leave plans out; nil: it is not known
	Around     []*levels.Topology  // machines that get answers from this one's table and others: the built-in rule's plans there compete
}

// The default lists of a [Space]. A small segment costs messages, a large one
// fills the pipeline late; between these lie HAN's optima (figures 4 and 7), and
// the sizes of the built-in rule.
var (
	DefaultSegments = []int64{builtin.Packed(builtin.ChainLeast), builtin.Packed(32 << 10), builtin.Packed(builtin.ChainMost), builtin.InsideSegment, 256 << 10, 512 << 10, 1 << 20, tasks.Whole}
	DefaultWindows  = []int{2, 8}
	DefaultInners   = []int64{0, 32 << 10}
	DefaultEagers   = []int64{0, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, tasks.Whole}
)

// thresholdsOf lists plans like p with another eager=, if blocks differ and an algorithm heeds it. There
// are thresholds up to the largest message, and one for all messages. They are of whole blocks, so
// cut plans have none.
func (s Space) thresholdsOf(r tasks.Request, p tasks.Plan) (all []tasks.Plan) {
	if r.Matrix.IsZero() || s.Plan.Eager != 0 || p.Segment < r.Bytes() || !s.heedsEager(p) {
		return nil
	}
	for _, n := range or(s.Eagers, DefaultEagers) {
		if n == tasks.Whole || n > 0 && n < r.Bytes() {
			p.Eager = n
			all = append(all, p)
		}
	}
	return all
}

// heedsEager reports whether an algorithm of a plan heeds eager=.
func (s Space) heedsEager(p tasks.Plan) bool {
	return slices.ContainsFunc(p.Keys(), func(key string) bool {
		c, _ := p.Choice(key)
		a, known := s.Registry.Algorithm(c)
		return known && a.Eager
	})
}

// Rule is the plan of the built-in rule for a request, in the words of the
// space's configurations: an algorithm for each kind of task.
func (s Space) Rule(r tasks.Request, t *levels.Topology) tasks.Plan {
	return s.namedPlan(choose.Complete(r, t, s.Registry, s.Plan), r, t)
}

// namedPlan says a plan in the words of the space's configurations.
func (s Space) namedPlan(p tasks.Plan, r tasks.Request, t *levels.Topology) tasks.Plan {
	return table.Canonical(s.Plan.Over(plans.Named(builtin.Ask(r, t), p, s.Registry)), r.Bytes())
}

// cutPlans lists shapes, segments and windows, as the space's plan leaves them open.
func (s Space) cutPlans(r tasks.Request) (plans []tasks.Plan) {
	for _, shape := range or(s.Shapes, tasks.Shapes()) {
		for _, segment := range or(s.Segments, DefaultSegments) {
			for _, w := range or(s.Windows, DefaultWindows) {
				p := s.Plan.Over(tasks.Plan{Shape: shape, Segment: segment, Window: w})
				p = table.Canonical(tasks.Plan{Shape: p.Shape, Segment: p.Segment, Window: p.Window}, r.Bytes())
				if !slices.ContainsFunc(plans, p.Equal) {
					plans = append(plans, p)
				}
			}
		}
	}
	return plans
}

// allowedSubmodules is the registry less submodules beside the list.
func (s Space) allowedSubmodules() submodules.Registry {
	if s.Submodules == nil {
		return s.Registry
	}
	return slices.DeleteFunc(slices.Clone(s.Registry), func(m submodules.Submodule) bool {
		return !slices.Contains(s.Submodules, m.Name())
	})
}

// Limits of the heuristics.
const (
	soloBlock = 8 << 10 // builtin.SoloFrom of an alltoall: each rank reads its blocks once

	leastShard = 1 << 10 // of a segment, bytes
)

// whyPruned is the heuristics, HAN's two (section III-C) and others by the same
// reasoning: known properties of algorithms need no measurement.
//
//   - solo only for segments of at least 512 KiB, in an alltoall 8 KiB; between goroutine
//     ranks, without a setup to read each other's memory, for all;
//   - no cut of a flat shape with exchanges of one level only: they fill the wires in both
//     directions anyway; none into segments with shards of less than 1 KiB for a rank;
//   - no scan with messages of each to all others among more than 16 ranks;
//   - on a known machine no tree over the ranks as they are numbered, unless an operation needs
//     their order, and no stages if segments may flow: waiting gains nothing;
//   - no messages inside a node if ranks can share memory (HAN's table II has
//     only such submodules there), but for the trees of full nodes, [builtin.TreeInside];
//   - plans that [builtin.Wasted] names: a chain of more than four ranks with fewer pieces, a cut
//     through a message of at most 16 KiB, a linear bcast among more than 16 ranks.
func (s Space) whyPruned(g *tasks.Graph, r tasks.Request, p tasks.Plan) string {
	t, segment := g.On.Topology(), min(p.Segment, max(r.Bytes(), 1))
	cut := segment < r.Bytes()
	if s.Machine != nil && p.Shape == tasks.HanLockstep && slices.Contains(or(s.Shapes, tasks.Shapes()), tasks.Han) && s.Plan.Shape == 0 {
		return "pruned, stages where segments may flow"
	}
	if cut && p.Shape.IsFlat() && exchangesOnly(g) {
		return "pruned, cut for exchanges of one level"
	}
	for _, ph := range g.Phases {
		c, _ := p.For(ph.Kind)
		word := ph.Kind.String() + "=" + c.String()
		if why := s.pruneMany(r, ph.Kind, c, segment, cut, g.On.Widest(ph.Level)); why != "" {
			return "pruned, " + why + " in " + word
		}
		if !p.Shape.IsFlat() && g.On.WithinNodes(ph.Level) && !s.needsSharedMemory(c.Submodule) && s.canShare(ph.Kind.Op) &&
			!builtin.TreeInside(ph.Kind.Op, c, t.Size(), t.Nodes()) {
			return "pruned, messages inside a node: " + word
		}
		a, _ := s.allowedSubmodules().Algorithm(c)
		why := builtin.Wasted(r, t.Size(), p, ph.Kind.Op, c, a.Traits, g.On.Widest(ph.Level))
		if solo := soloLeast(t, ph.Kind.Op); c.Submodule == submodules.Solo && segment < solo {
			why = "segment too small for solo: less than " + tasks.FormatBytes(solo)
		}
		if why != "" {
			return "pruned, " + why + " in " + word
		}
	}
	return ""
}

// pruneMany is [Space.whyPruned] for one kind of task in groups of many ranks. cut: the message has
// several segments.
func (s Space) pruneMany(r tasks.Request, k tasks.Kind, c tasks.Choice, segment int64, cut bool, ranks int) string {
	isSharded := (k.Op == tasks.ReduceScatter || k.Op == tasks.Allgather) && !r.Blocks()
	switch {
	case cut && isSharded && segment < int64(ranks)*leastShard:
		return fmt.Sprintf("segment too small for shards: %s for %d ranks", tasks.FormatBytes(segment), ranks)
	case r.Coll.Scans() && ranks > builtin.LinearRanks && s.speaksWithAll(c, k.Op):
		return fmt.Sprintf("group too large for %s: %d ranks", c.Algorithm, ranks)
	case s.Machine != nil && s.isInOrder(c) && !keepsOrder(r, k.Op):
		return "no order to keep"
	}
	return ""
}

// speaksWithAll reports whether some rank exchanges messages with all others in an operation by a choice.
func (s Space) speaksWithAll(c tasks.Choice, op tasks.Collective) bool {
	a, _ := s.Registry.Algorithm(c)
	return op.Scans() && a.Traffic[op].Partners == submodules.Others
}

// isInOrder reports whether a choice has a tree over the ranks as they are numbered.
func (s Space) isInOrder(c tasks.Choice) bool {
	a, known := s.Registry.Algorithm(c)
	return known && a.InOrder
}

// keepsOrder reports whether op combines values in the order of ranks.
func keepsOrder(r tasks.Request, op tasks.Collective) bool {
	return op == tasks.Reduce && !r.Op.Commutative()
}

// exchangesOnly reports whether all phases are on one level, and in each of them all ranks
// send and receive about as much. In an alltoall a cut keeps many from sending to one at once.
func exchangesOnly(g *tasks.Graph) bool {
	return !slices.ContainsFunc(g.Phases, func(ph tasks.Phase) bool {
		switch ph.Kind.Op {
		case tasks.ReduceScatter, tasks.Allgather, tasks.Allreduce:
			return ph.Level != g.Phases[0].Level
		}
		return true
	})
}

// needsSharedMemory reports whether a submodule works through shared memory only.
func (s Space) needsSharedMemory(name string) bool {
	m, err := s.Registry.Find(name)
	return err == nil && m.Reach() == submodules.SharedNode
}

// canShare reports whether there is a submodule to do an operation in shared memory.
func (s Space) canShare(op tasks.Collective) bool {
	return slices.ContainsFunc(s.allowedSubmodules(), func(m submodules.Submodule) bool {
		return m.Reach() == submodules.SharedNode && slices.ContainsFunc(m.Algorithms(), func(a submodules.Algorithm) bool { return a.Does(op) })
	})
}

// soloLeast returns the least segment of op worth a measurement of solo, bytes.
func soloLeast(t *levels.Topology, op tasks.Collective) int64 {
	switch {
	case t.IsOneProcess():
		return 0
	case op.Exchanges():
		return soloBlock
	}
	return builtin.SoloFrom
}

func or[T any](given, fallback []T) []T {
	if given == nil {
		return fallback
	}
	return given
}
