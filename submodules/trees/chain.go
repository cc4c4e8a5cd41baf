package trees

// Chain is a line: with many segments on their way all links are busy.
//
//	0 → 1 → 2 → 3 → …
func Chain(v, n int) Place { return spread(v, n, 1, 1) }

// Chains is how many chains [KChain] has, ADAPT's and coll/tuned's default.
const Chains = 4

// KChain is that many parallel chains below the root: as full as a chain once
// it runs, and a quarter as long.
//
//	0 ─┬→ 1 → 2 → 3
//	   ├→ 4 → 5 → 6
//	   ├→ 7 → 8
//	   └→ 9 → 10
func KChain(v, n int) Place { return spread(v, n, Chains, 1) }
