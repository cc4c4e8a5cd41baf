package nbc

import "github.com/tierflow/tierflow/submodules"

// dissemination is a barrier for any number of ranks: in each round a rank tells the one at
// twice the distance of before of all it has heard so far (Hensgen, Finkel, Manber, IJPP 1988).
//
//	round 0   0→1 1→2 2→3 3→4 4→0
//	round 1   0→2 1→3 2→4 3→0 4→1
//	round 2   0→4 1→0 2→1 3→2 4→3
//
// With a radix of four it tells three in a round, at four times the distance of before, and so on (n-way
// dissemination: Hoefler et al., IPDPS 2006).
func dissemination(r *rounds, c *submodules.Call) {
	for unit, values := range submodules.Digits(len(c.Group.Ranks), max(2, c.N)) {
		for digit := 1; digit < values; digit++ {
			r.send(c.Group.Ranks[c.Member(c.Me+digit*unit)], c.Src)
			r.recv(c.Group.Ranks[c.Member(c.Me-digit*unit)], c.Dst)
		}
		r.end()
	}
}
