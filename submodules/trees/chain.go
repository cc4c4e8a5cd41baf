package trees

import "cmp"

// Chain is a line: with many segments on their way all links are busy.
//
//	0 → 1 → 2 → 3 → …
func Chain(v, n int) Place { return spread(v, n, 1, 1) }

// Chains is the usual number of chains of [KChains], ADAPT's and coll/tuned's default.
const Chains = 4

// KChains is so many parallel chains below the root, 1 or more; 0: [Chains]. Four are as full
// as one chain once they run, and a quarter as long:
//
//	0 ─┬→ 1 → 2 → 3
//	   ├→ 4 → 5 → 6
//	   ├→ 7 → 8
//	   └→ 9 → 10
func KChains(chains int) Shape {
	most := cmp.Or(chains, Chains)
	return func(v, n int) Place { return spread(v, n, most, 1) }
}
