package levels

import "slices"

// NodeSymbol is the symbol of the level inside which ranks share memory.
const NodeSymbol = 's'

// node is the index of the level with [NodeSymbol], or of the innermost when a
// topology names none.
func (t *Topology) node() int {
	for k, l := range t.levels {
		if l.Symbol == NodeSymbol {
			return k
		}
	}
	return 0
}

// Node is the index of the node that r lives on: its domain at the level with
// [NodeSymbol].
func (t *Topology) Node(r Rank) int32 { return t.Domain(r, t.node()) }

// Nodes is the number of nodes.
func (t *Topology) Nodes() int { return t.Domains(t.node()) }

// Rack is the index of the domain just outside of r's node: a rack, or a site. Where nodes are in
// nothing but the whole machine it is 0.
func (t *Topology) Rack(r Rank) int32 { return t.Domain(r, min(t.node()+1, t.Depth()-1)) }

// WithinNodes reports whether no group of a level spans two nodes.
func (h *Hierarchy) WithinNodes(level int) bool {
	for _, g := range h.Groups(level) {
		for _, r := range g.Ranks[1:] {
			if h.topology.Node(r) != h.topology.Node(g.Ranks[0]) {
				return false
			}
		}
	}
	return true
}

// LowestLead reports whether every group of a level is led by its lowest rank.
func (h *Hierarchy) LowestLead(level int) bool {
	return !slices.ContainsFunc(h.Groups(level), func(g *Group) bool { return g.Leader != 0 })
}

// Lanes are groups across the groups of level k: lane l is the l-th rank of each of
// them. There are as many as the smallest of those groups has ranks. Their Level is
// the one given as across, their Leader the lowest rank.
func (h *Hierarchy) Lanes(k, across int) []*Group {
	groups := h.Groups(k)
	n := len(groups[0].Ranks)
	for _, g := range groups {
		n = min(n, len(g.Ranks))
	}
	lanes := make([]*Group, n)
	for l := range lanes {
		lanes[l] = &Group{Level: across, Index: l}
		for _, g := range groups {
			lanes[l].Ranks = append(lanes[l].Ranks, g.Ranks[l])
		}
		slices.Sort(lanes[l].Ranks)
	}
	return lanes
}

// NodeName returns the name of a rank's node.
func (t *Topology) NodeName(r Rank) string { return t.DomainName(r, t.node()) }
