package join

import "github.com/tierflow/tierflow/levels"

// fanOut is how many leaders hang below one leader at most.
const fanOut = 32

// tree is the shape of the control tree: node peers below their node's leader (its
// lowest rank), leaders below each other. It is the same on all ranks.
type tree struct {
	node   []int           // by rank: its node's place
	places [][]levels.Rank // the ranks of each node, ascending; nodes in the order of their lowest ranks
	parent []levels.Rank   // by rank, while none is lost; rank 0's is -1
}

func newTree(topology *levels.Topology) *tree {
	size := topology.Size()
	t := &tree{node: make([]int, size), parent: make([]levels.Rank, size)}
	known := map[int32]int{} // places by node of the topology
	for r := range levels.Rank(size) {
		place, ok := known[topology.Node(r)]
		if !ok {
			place = len(t.places)
			known[topology.Node(r)] = place
			t.places = append(t.places, nil)
		}
		t.node[r] = place
		t.places[place] = append(t.places[place], r)
	}
	for r, gone := 0, make([]error, size); r < size; r++ {
		t.parent[r] = t.parentWithout(gone, levels.Rank(r))
	}
	return t
}

// leader returns the lowest rank of a node not gone, -1 if there is none.
func (t *tree) leader(place int, gone []error) levels.Rank {
	for _, r := range t.places[place] {
		if gone[r] == nil {
			return r
		}
	}
	return -1
}

// parentWithout returns the rank above r among those not gone, -1 above the root. It is the leader of
// r's node. Above a leader it is the leader of the nearest node towards the root; nodes without a living
// rank don't count. If all of them are empty it is the leader of the first node with one.
func (t *tree) parentWithout(gone []error, r levels.Rank) levels.Rank {
	place := t.node[r]
	if leader := t.leader(place, gone); leader != r {
		return leader
	}
	for up := place; up > 0; {
		up = (up - 1) / fanOut
		if leader := t.leader(up, gone); leader >= 0 {
			return leader
		}
	}
	for first := range place {
		if leader := t.leader(first, gone); leader >= 0 {
			return leader
		}
	}
	return -1
}

// next is the neighbour of from on the way to another rank.
func (t *tree) next(from, to levels.Rank) levels.Rank {
	for r := to; r >= 0; r = t.parent[r] {
		if t.parent[r] == from {
			return r
		}
	}
	return t.parent[from]
}
