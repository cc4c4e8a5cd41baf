package price

import (
	"math"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Least returns a lower bound on the time of a request by any plan, ns: the bytes that must go into or out of
// the busiest domain of some level, at the rate of the fastest link that leads there. It is 0 on one node, for
// collectives without data, and where blocks differ.
func Least(m *machine.Machine, t *levels.Topology, r tasks.Request) (ns float64) {
	fastest := math.Inf(1) // of the links from this level outwards, ns a byte
	for k := t.Depth() - 1; k > 0; k-- {
		l, err := m.Link(t.Level(k))
		if err != nil {
			return 0
		}
		fastest = min(fastest, l.Byte)
		ns = max(ns, fastest*leastBytes(r, domainSizes(t, k-1), t.Domain(r.Root, k-1)))
	}
	return ns
}

// domainSizes returns the ranks of each domain of a level.
func domainSizes(t *levels.Topology, level int) []int {
	sizes := make([]int, t.Domains(level))
	for rank := range levels.Rank(t.Size()) {
		sizes[t.Domain(rank, level)]++
	}
	return sizes
}

// leastBytes returns the most bytes that must go one way into or out of a domain, of domains with so many
// ranks. An allreduce puts 2(d-1)/d of its vector on the wire of one of d domains at least (Patarasuk and Yuan,
// Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009).
func leastBytes(r tasks.Request, ranks []int, root int32) float64 {
	domains, bytes, size := float64(len(ranks)), float64(r.Bytes()), 0
	if len(ranks) < 2 || r.Differ() || !r.Coll.HasData() {
		return 0
	}
	least, most := ranks[0], 0.0
	for _, n := range ranks {
		size, least = size+n, min(least, n)
	}
	switch r.Coll {
	case tasks.Allreduce:
		return 2 * (domains - 1) / domains * bytes
	case tasks.Bcast, tasks.Reduce, tasks.Scan, tasks.Exscan:
		return bytes
	case tasks.Allgather, tasks.ReduceScatter: // the smallest domain lacks most
		return float64(size-least) * bytes
	case tasks.Gather, tasks.Scatter:
		return float64(size-ranks[root]) * bytes
	case tasks.Alltoall:
		for _, n := range ranks {
			most = max(most, float64(n*(size-n))*bytes)
		}
	}
	return most
}
