package launch

import (
	"fmt"
	"slices"
)

// place returns the ranks of each node, ascending. Each pass over the slots gives every slot one rank; only with
// oversubscribe is there more than one pass.
//
//	slots a:2,b:1, 5 ranks    block: a = 0 1 2, b = 3 4      rr: a = 0 2 3, b = 1 4   (oversubscribed)
func place(nodes []node, ranks int, mapping string, oversubscribe bool) ([][]int, error) {
	slots := 0
	for _, n := range nodes {
		slots += n.slots
	}
	if slots > maxRanks {
		return nil, fmt.Errorf("%d slots on %d hosts: at most %d", slots, len(nodes), maxRanks)
	}
	if ranks == 0 {
		ranks = slots
	}
	if ranks > slots && !oversubscribe {
		return nil, fmt.Errorf("%d ranks on %d slots of %d hosts: ask for fewer, give more slots, or allow it with --oversubscribe",
			ranks, slots, len(nodes))
	}
	order := slotOrder(nodes, mapping)
	nodeOf := make([]int, ranks)
	for i := range nodeOf {
		nodeOf[i] = order[i%len(order)]
	}
	if mapping == mapBlock {
		slices.Sort(nodeOf) // later passes join the block of their node
	}
	placed := make([][]int, len(nodes))
	for rank, n := range nodeOf {
		placed[n] = append(placed[n], rank)
	}
	return placed, nil
}

// mostPerProcessor bounds the ranks that start without a word about how many they are.
const mostPerProcessor = 64

// crowdText says how many ranks start on this machine if they are very many; empty: they are not.
func crowdText(ranks, processors int) string {
	if ranks <= mostPerProcessor*processors {
		return ""
	}
	return fmt.Sprintf("starting %d ranks on %d processors of this machine; interrupt to stop that", ranks, processors)
}

// slotOrder returns the node of each slot, in the order of filling.
func slotOrder(nodes []node, mapping string) []int {
	type slot struct{ node, onNode int }
	var slots []slot
	for i, n := range nodes {
		for s := range n.slots {
			slots = append(slots, slot{i, s})
		}
	}
	if mapping == mapRoundRobin {
		slices.SortStableFunc(slots, func(a, b slot) int { return a.onNode - b.onNode })
	}
	order := make([]int, len(slots))
	for i, s := range slots {
		order[i] = s.node
	}
	return order
}
