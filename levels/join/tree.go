package join

import "github.com/tierflow/tierflow/levels"

// fanOut is how many leaders hang below one leader at most.
const fanOut = 32

// tree is the shape of the control tree: node peers below their node's leader (its
// lowest rank), leaders below each other. It is the same on all ranks.
type tree struct {
	parent []levels.Rank // by rank; rank 0's is -1
}

func newTree(t *levels.Topology) *tree {
	tr := &tree{parent: make([]levels.Rank, t.Size())}
	leader := make([]levels.Rank, t.Nodes())
	var leaders []levels.Rank // ascending, so rank 0 first
	for i := range tr.parent {
		r := levels.Rank(i)
		node := t.Node(r)
		switch n := len(leaders); {
		case n > 0 && (leader[node] > 0 || node == t.Node(0)):
			tr.parent[r] = leader[node]
		case n == 0:
			tr.parent[r] = -1
			leaders = append(leaders, r)
		default:
			leader[node] = r
			tr.parent[r] = leaders[(n-1)/fanOut]
			leaders = append(leaders, r)
		}
	}
	return tr
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
