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

// KChains is [KChain] with so many chains, 1 or more; 0: [Chains].
func KChains(chains int) Shape {
	return func(v, n int) Place { return spread(v, n, or(chains, Chains), 1) }
}

// or returns number, or usual if it is 0.
func or(number, usual int) int {
	if number == 0 {
		return usual
	}
	return number
}
