package costs

import (
	"slices"
	"strings"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Unit is tasks measured by themselves: those of one phase of a plan, or of all its phases at one
// level. A [Book] stores their times as a [Pipeline].
type Unit struct {
	Phases []int // of the plan's pipeline, in order
	Key    Key   // of the book; its Window is 0 for one segment
	Blocks int64 // how many blocks of that segment size a rank has; 1 if there are no blocks
	Rooted bool  // some phase has a root: the last rank has the first segment long after the root has sent it
}

// Makeup is the units of a plan's time. It holds for every size of message, as long as the plan
// cuts it into segments of one size.
type Makeup struct {
	Singles []Unit   // each phase by itself, one segment
	Flows   [][]Unit // by level: the users of its processors or its wires, many segments
	One     Unit     // all phases, one segment: together they take another time than their sum
	Many    Unit     // all phases, many segments
}

// MakeupOf returns the units of a plan for a request. Their keys name the plan's segments of r. The
// error is that of [tasks.Expand].
func MakeupOf(r tasks.Request, t *levels.Topology, p tasks.Plan) (*Makeup, error) {
	if p.Shape == tasks.HanLockstep { // a stage ends before the next one begins
		p.Window = 1
	}
	g, err := tasks.Expand(First(r, p, 1), t, p, 0)
	if err != nil {
		return nil, err
	}
	g.Plan.Window = p.Window // of a graph of one segment it is less
	m := &Makeup{}
	var every []int
	at := map[bool]int{} // of Flows, by whether the level is within nodes
	for i, ph := range g.Phases {
		m.Singles = append(m.Singles, newUnit(g, 0, i))
		every = append(every, i)
		inside := g.On.WithinNodes(ph.Level)
		k, known := at[inside]
		switch {
		case !known:
			at[inside] = len(m.Flows)
			m.Flows = append(m.Flows, []Unit{newUnit(g, p.Window, i)})
		case inside:
			// Each phase takes the processors for itself.
			m.Flows[k] = append(m.Flows[k], newUnit(g, p.Window, i))
		default:
			// Wires carry in both directions at once, so the phases on them are measured together.
			m.Flows[k][0] = newUnit(g, p.Window, append(m.Flows[k][0].Phases, i)...)
		}
	}
	m.One, m.Many = newUnit(g, 0, every...), newUnit(g, p.Window, every...)
	return m, nil
}

func newUnit(g *tasks.Graph, window int, phases ...int) Unit {
	kinds := make([]tasks.Kind, len(phases))
	names := make([]string, len(phases))
	common := true
	for i, at := range phases {
		kinds[i] = g.Phases[at].Kind
		names[i] = kinds[i].String()
		common = common && isCommon(g, kinds[i])
	}
	name := strings.Join(names, "+")
	if !common {
		name = g.Request.Coll.String() + "." + name
	}
	k := newKey(g, name, kinds)
	k.Window = window
	// In lockstep phases of a level end together; one by itself does the same without.
	inStep := k.Shape == tasks.HanLockstep && window > 0 && len(phases) > 1
	if !inStep && (common && !g.Plan.Shape.IsFlat() || k.Shape == tasks.HanLockstep) {
		k.Shape = tasks.Han
	}
	u := Unit{Phases: slices.Clone(phases), Key: k, Blocks: 1}
	u.Rooted = slices.ContainsFunc(kinds, func(k tasks.Kind) bool { return k.Op.IsRooted() })
	if g.Request.Blocks() {
		u.Blocks = int64(g.On.Topology().Size())
	}
	return u
}

// isCommon reports whether tasks of a kind do the same in all collectives and shapes with them:
// they move the whole segment between each leader and its group.
func isCommon(g *tasks.Graph, k tasks.Kind) bool {
	return (k.Op == tasks.Bcast || k.Op == tasks.Reduce) && !g.Request.Blocks() && g.Plan.Shape != tasks.Rotate && g.Request.Coll.HasData()
}

// Units lists all units, those of one segment first.
func (m *Makeup) Units() []Unit {
	all := slices.Clone(m.Singles)
	for _, level := range m.Flows {
		all = append(all, level...)
	}
	return all
}

// Sizes of a run that shows how a unit's segments follow each other.
const (
	flowBytes   = 1 << 20 // kernels take in that much before a sender feels the wire
	mostFlowing = 96      // segments
	leastBlocks = 2       // segments of so many blocks, beside one a phase

	// In the first segments through deep trees filling counts as pace. So there segments fill the
	// window some times, unless they are too many bytes for a measurement.
	windowsFilled = 4
	settleBytes   = 4 << 20
)

// Segments is how many segments of a unit are to be measured: 1, or enough to see their
// pace. cut is into how many any message of interest is cut; 0: unknown.
func (u Unit) Segments(cut int64) int64 {
	if u.Key.Window == 0 {
		return 1
	}
	phases, all := int64(len(u.Phases)), u.Blocks*max(u.Key.Segment, 1)
	if u.Blocks > 1 && all >= flowBytes {
		return leastBlocks + phases
	}
	n := flowBytes / all
	if u.Rooted {
		n = max(n, min(int64(windowsFilled*u.Key.Window), settleBytes/all, cut))
	}
	return max(Extra+phases, min(mostFlowing, n))
}

// Plan returns the plan for measuring a unit of p.
func (u Unit) Plan(p tasks.Plan) tasks.Plan {
	p.Segment, p.Window = max(u.Key.Segment, 1), max(u.Key.Window, 1)
	if p.Shape == tasks.HanLockstep && u.Key.Shape != tasks.HanLockstep {
		p.Shape = tasks.Han
	}
	return p
}
