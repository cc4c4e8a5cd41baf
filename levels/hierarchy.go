package levels

import (
	"fmt"
	"slices"
	"sync/atomic"
)

// Hierarchy is the groups and leaders on every level for one root. It is immutable
// and safe for concurrent use. Its levels are those of its topology, or the
// outermost alone if it is flat.
//
// Methods that take a rank or a level index panic, as a slice does, when it is
// out of range.
type Hierarchy struct {
	topology *Topology
	root     Rank
	base     int        // the topology's level that is level 0 here
	trailing bool       // the last rank of a group leads it
	groups   [][]*Group // groups[k][d]: every domain has exactly one group
	ordered  bool
}

// Group is the ranks that talk to each other in one domain: all of its ranks at
// level 0, above that the leaders of the groups below. Treat it as read-only.
type Group struct {
	Level  int    // of the hierarchy
	Index  int    // among the groups of its level
	Ranks  []Rank // ascending, never empty
	Leader int    // index into Ranks: the root if it is in, else 0; the last one of a [Topology.Trailing]
}

// Lead is the rank that speaks for the group one level up.
func (g *Group) Lead() Rank { return g.Ranks[g.Leader] }

// Pos is the index of r in Ranks, or -1.
func (g *Group) Pos(r Rank) int {
	if i, ok := slices.BinarySearch(g.Ranks, r); ok {
		return i
	}
	return -1
}

// Hierarchy returns the groups of all levels for root, in O(ranks × depth), or those that it
// returned last for the same root. It panics when t has no rank root; requests are checked
// before they come here.
func (t *Topology) Hierarchy(root Rank) *Hierarchy { return t.hierarchy(root, 0, false) }

// Trailing returns the groups of all levels, each led by its last rank. The root is the
// last rank of all. In a scan that rank has its group's total.
func (t *Topology) Trailing() *Hierarchy { return t.hierarchy(Rank(t.Size()-1), 0, true) }

// Flat returns one group of all ranks at the outermost level and no other level:
// Depth is 1, Level(0) is the topology's outermost. It panics when t has no
// rank root.
func (t *Topology) Flat(root Rank) *Hierarchy { return t.hierarchy(root, t.Depth()-1, false) }

// made keeps the last hierarchy of each kind: whoever chooses a plan
// asks for the same several times, and then again for the next plan.
type made struct {
	full, flat, trailing atomic.Pointer[Hierarchy]
	text                 atomic.Pointer[string] // see Topology.String
}

func (m *made) place(base int, trailing bool) *atomic.Pointer[Hierarchy] {
	switch {
	case trailing:
		return &m.trailing
	case base > 0:
		return &m.flat
	}
	return &m.full
}

func (t *Topology) hierarchy(root Rank, base int, trailing bool) *Hierarchy {
	if root < 0 || int(root) >= t.Size() {
		panic(fmt.Sprintf("levels: root %d of a topology with ranks 0 to %d", root, t.Size()-1))
	}
	last := t.made.place(base, trailing)
	if h := last.Load(); h != nil && h.root == root {
		return h
	}
	h := t.group(root, base, trailing)
	last.Store(h)
	return h
}

// group makes the groups of a hierarchy.
func (t *Topology) group(root Rank, base int, trailing bool) *Hierarchy {
	h := &Hierarchy{
		topology: t, root: root, base: base, trailing: trailing,
		groups:  make([][]*Group, t.Depth()-base),
		ordered: !slices.Contains(t.runs[base:], false),
	}
	members := make([]Rank, t.Size())
	for r := range members {
		members[r] = Rank(r)
	}
	for k := range h.groups {
		h.groups[k] = h.split(k, members)
		members = slices.DeleteFunc(members, func(r Rank) bool { return h.Group(r, k).Lead() != r })
	}
	return h
}

// split groups members, in ascending order, by their level-k domain.
func (h *Hierarchy) split(k int, members []Rank) []*Group {
	domain, count := h.topology.domain[h.base+k], h.topology.count[h.base+k]
	size := make([]int32, count)
	for _, r := range members {
		size[domain[r]]++
	}
	ranks := make([]Rank, len(members)) // one array, cut into the groups' Ranks
	store, groups := make([]Group, count), make([]*Group, count)
	for d, n := range size {
		store[d] = Group{Level: k, Index: d, Ranks: ranks[:0:n]}
		groups[d], ranks = &store[d], ranks[n:]
	}
	for _, r := range members {
		g := groups[domain[r]]
		if r == h.root || h.trailing {
			g.Leader = len(g.Ranks)
		}
		g.Ranks = append(g.Ranks, r)
	}
	return groups
}

// Topology returns the places of the ranks.
func (h *Hierarchy) Topology() *Topology { return h.topology }

// Root is the rank that leads on its own path.
func (h *Hierarchy) Root() Rank { return h.root }

// Depth is the number of levels: the topology's, or 1 if flat.
func (h *Hierarchy) Depth() int { return len(h.groups) }

// Level returns level k, counted from the inside.
func (h *Hierarchy) Level(k int) Level { return h.topology.levels[h.base+k] }

// Group is the group that r is in at level k, or nil: above level 0 only the leaders
// of the groups below are in one.
func (h *Hierarchy) Group(r Rank, k int) *Group {
	if k > 0 && h.groups[k-1][h.topology.domain[h.base+k-1][r]].Lead() != r {
		return nil
	}
	return h.groups[k][h.topology.domain[h.base+k][r]]
}

// Under lists the ranks that r speaks for in its group at level k, ascending: those
// of its domain one level down, at level 0 itself. Treat it as read-only.
func (h *Hierarchy) Under(r Rank, k int) []Rank {
	if k == 0 {
		return []Rank{r}
	}
	below := h.base + k - 1
	return h.topology.ranks[below][h.topology.domain[below][r]]
}

// Groups lists the groups of level k: one per domain, in the domains' order. Treat it
// as read-only.
func (h *Hierarchy) Groups(k int) []*Group { return h.groups[k] }

// Widest is the ranks of the largest group of level k.
func (h *Hierarchy) Widest(k int) (n int) {
	for _, g := range h.groups[k] {
		n = max(n, len(g.Ranks))
	}
	return n
}

// Ordered reports whether combining groups from the inside out, each in the order
// of its ranks, combines all ranks in order: every domain is a contiguous run of
// ranks. Reductions that do not commute need it.
func (h *Hierarchy) Ordered() bool { return h.ordered }
