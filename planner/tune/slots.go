package tune

import (
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/levels"
)

// Machine is a part of a job's ranks, tuned for as a machine of its own: so many nodes, with
// so many ranks each.
type Machine struct {
	Nodes, PerNode int
	Around         []*levels.Topology // machines between this one and others, see [Space]
}

// String is nodes and ranks a node: 3x2.
func (m Machine) String() string { return fmt.Sprintf("%dx%d", m.Nodes, m.PerNode) }

// Slots places machines on parts of a topology, to be measured at one time. In a rack, the domain just
// outside of nodes, there is one of them at most: so none disturbs another.
//
// The algorithm is ACCLAiM's (section IV-D): each machine takes the next unused nodes in order, and
// the rest of its racks counts as used.
type Slots struct {
	whole *levels.Topology
	nodes [][]levels.Rank             // ranks of each node; nodes of a rack follow each other
	used  []bool                      // nodes
	first map[string]*levels.Topology // machines on the first nodes
}

// NewSlots returns the free places of a topology.
func NewSlots(t *levels.Topology) *Slots {
	s := &Slots{whole: t, nodes: make([][]levels.Rank, t.Nodes()), used: make([]bool, t.Nodes()), first: map[string]*levels.Topology{}}
	for r := range levels.Rank(t.Size()) {
		s.nodes[t.Node(r)] = append(s.nodes[t.Node(r)], r)
	}
	return s
}

// Clear frees all nodes.
func (s *Slots) Clear() { clear(s.used) }

// Place returns the ranks for a machine; nil: it does not fit any more, or there is no such machine.
// A place counts only if it is like the first nodes: the machine's plans are made there.
func (s *Slots) Place(m Machine) []levels.Rank {
	like := s.first[m.String()]
	if like == nil {
		var err error
		if like, err = m.On(s.whole); err != nil {
			return nil
		}
		s.first[m.String()] = like
	}
	for n := range len(s.nodes) - m.Nodes + 1 {
		ranks := s.ranks(n, m)
		if ranks == nil {
			continue
		}
		if on, err := s.whole.Sub(ranks); err == nil && on.Alike(like) {
			for _, node := range s.nodes[n : n+m.Nodes] {
				s.use(s.whole.Rack(node[0]))
			}
			return ranks
		}
	}
	return nil
}

// ranks returns those of a machine from a first node on, in the order of ranks; nil: some are
// used, or there are too few.
func (s *Slots) ranks(first int, m Machine) (all []levels.Rank) {
	for n := first; n < first+m.Nodes; n++ {
		if s.used[n] || len(s.nodes[n]) < m.PerNode {
			return nil
		}
		all = append(all, s.nodes[n][:m.PerNode]...)
	}
	slices.Sort(all)
	return all
}

// use marks all nodes of a rack.
func (s *Slots) use(rack int32) {
	for n, ranks := range s.nodes {
		s.used[n] = s.used[n] || s.whole.Rack(ranks[0]) == rack
	}
}

// On is the machine's topology, on the first nodes of a whole.
func (m Machine) On(whole *levels.Topology) (*levels.Topology, error) {
	ranks, err := whole.Pick(m.Nodes, m.PerNode)
	if err != nil {
		return nil, err
	}
	return whole.Sub(ranks)
}
