package levels

import "fmt"

// Pick returns the first perNode ranks of each of the first nodes, in the order of ranks: a
// smaller machine on the places of this one. Nodes with fewer ranks are an error.
func (t *Topology) Pick(nodes, perNode int) ([]Rank, error) {
	if nodes < 1 || perNode < 1 || nodes > t.Nodes() {
		return nil, fmt.Errorf("machine %dx%d: allowed are 1 to %d nodes, and 1 rank a node or more", nodes, perNode, t.Nodes())
	}
	had := make([]int, nodes)
	var all []Rank
	for r := range Rank(t.Size()) {
		if n := int(t.Node(r)); n < nodes && had[n] < perNode {
			had[n]++
			all = append(all, r)
		}
	}
	for n, have := range had {
		if have < perNode {
			return nil, fmt.Errorf("machine %dx%d: node %d has %d ranks", nodes, perNode, n, have)
		}
	}
	return all, nil
}
