package tasks

import (
	"slices"

	"github.com/tierflow/tierflow/levels"
)

// Operations lists the operations of the tasks of a collective by a shape.
func Operations(c Collective, s Shape) []Collective {
	do := c.row().recipe(s)
	all := slices.Concat([]Collective{do.First, do.Up, do.Down, c.row().Alone}, do.Top, do.Single)
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(op Collective) bool { return op == 0 })
}

// pipeline lists the kinds on the way of r's segments on h, in order. Levels at which all groups
// have one rank drop out; a single rank with data to copy keeps one kind for it.
func pipeline(r Request, h *levels.Hierarchy, s Shape) []Phase {
	wide := wideLevels(h)
	if len(wide) == 0 {
		top := h.Depth() - 1
		if alone := r.Coll.row().Alone; alone != 0 {
			return []Phase{{Kind{h.Level(top).Symbol, alone}, top}}
		}
		return nil
	}
	all := make([]Phase, 0, 2*len(wide)+2)
	add := func(op Collective, level int) {
		if op != 0 {
			all = append(all, Phase{Kind{h.Level(level).Symbol, op}, level})
		}
	}
	do, last := r.Coll.row().recipe(s), len(wide)-1
	if do.Single == nil || last > 0 {
		do.Single = do.Top
	}
	for i, k := range wide[:last] {
		if i == 0 && do.First != 0 {
			add(do.First, k)
			continue
		}
		add(do.Up, k)
	}
	for _, op := range do.Single {
		add(op, wide[last])
	}
	for i := last - 1; i >= 0; i-- {
		add(do.Down, wide[i])
	}
	return all
}

// Phases lists the phases of a request by a shape, as a [Graph] of any rank has them. h is what
// [Hierarchy] returned.
func Phases(r Request, h *levels.Hierarchy, s Shape) []Phase { return pipeline(r, h, s) }

// wideLevels lists the levels at which some group has several ranks.
func wideLevels(h *levels.Hierarchy) (wide []int) {
	wide = make([]int, 0, h.Depth())
	for k := range h.Depth() {
		if h.Widest(k) > 1 {
			wide = append(wide, k)
		}
	}
	return wide
}

// role is a rank's part in the tasks of a phase.
type role struct {
	group  *levels.Group   // nil: it has none
	turns  []*levels.Group // group led by each member in turn, by segment; nil: it isn't
	speaks [][]levels.Rank // by member, whose blocks are its part; nil if parts are shards, or there are none
	shards int             // of a segment; members beyond have none
}

// findRoles finds the rank's part in all phases.
func (g *Graph) findRoles() {
	g.roles = make([]role, len(g.Phases))
	for at, ph := range g.Phases {
		group := g.On.Group(g.Rank, ph.Level)
		switch {
		case g.acrossLanes(ph):
			group = g.lane(ph)
		case g.isAmongAll(at):
			group = g.exchange.all(ph)
		}
		if group == nil || len(group.Ranks) == 1 && len(g.Phases) > 1 && !g.makesRoom() || ph.Kind.Op == Prefix && g.scan.isFirst(group) {
			continue
		}
		if ph.Kind.Op == Scan || ph.Kind.Op == Exscan {
			g.scan.ups = append(g.scan.ups, at)
		}
		p := &g.roles[at]
		p.group, p.shards = group, len(group.Ranks)
		switch {
		case g.acrossLanes(ph):
			p.shards = len(g.Groups(ph))
		case !ph.Kind.Op.HasBlocks():
		case g.Request.Blocks():
			for _, r := range group.Ranks {
				p.speaks = append(p.speaks, g.On.Under(r, ph.Level))
			}
		case g.Plan.Shape == Lanes:
			p.shards = len(g.On.Lanes(ph.Level, ph.Level))
		}
		if g.Plan.Shape == Rotate && ph.Level == g.top() {
			p.turns = turns(group)
		}
	}
}

// top is the outermost level with tasks.
func (g *Graph) top() int {
	top := 0
	for _, ph := range g.Phases {
		top = max(top, ph.Level)
	}
	return top
}

// IsOutermost reports whether a task is at the outermost level with tasks.
func (g *Graph) IsOutermost(t *Task) bool { return int(t.Level) == g.top() }

// turns is a group led by each of its ranks.
func turns(group *levels.Group) []*levels.Group {
	all := make([]*levels.Group, len(group.Ranks))
	for i := range all {
		led := *group
		led.Leader = i
		all[i] = &led
	}
	return all
}

// acrossLanes reports whether a phase's groups are lanes.
func (g *Graph) acrossLanes(ph Phase) bool {
	return g.Plan.Shape == Lanes && ph.Kind.Op == Allreduce
}

// Groups lists the groups of a phase's tasks, under any leader.
func (g *Graph) Groups(ph Phase) []*levels.Group {
	switch {
	case g.acrossLanes(ph):
		return g.On.Lanes(g.Phases[0].Level, ph.Level)
	case g.Request.Exchanges() && g.Plan.Shape == Lanes && ph != g.Phases[0]:
		return []*levels.Group{g.exchange.all(ph)}
	}
	return g.On.Groups(ph.Level)
}

// lane is the rank's group across lanes, nil if it is in none.
func (g *Graph) lane(ph Phase) *levels.Group {
	for _, group := range g.Groups(ph) {
		if group.Pos(g.Rank) >= 0 {
			return group
		}
	}
	return nil
}

// group is the rank's group in a segment's task of a phase, nil if it has none.
func (g *Graph) group(i, at int) *levels.Group {
	if turns := g.roles[at].turns; turns != nil {
		return turns[i%len(turns)]
	}
	return g.roles[at].group
}
