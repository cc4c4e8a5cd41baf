package circulant

// graph is the circulant graph of n places: in round k of a phase, place v sends to
// v+skip(k) and hears from v-skip(k), counted in a circle. A phase has as many rounds
// as n has binary digits of places, ⌈log2 n⌉, and then begins anew.
//
//	n = 9: skips 1 2 3 5
//	n = 16: skips 1 2 4 8
type graph struct {
	n     int
	skips []int   // by round of a phase: half of the next one, rounded up; n at the end
	memo  [][]int // by place: the results of inPhase
}

func newGraph(n int) graph {
	g := graph{n: n, memo: make([][]int, n)}
	for skip := n; ; skip = (skip + 1) / 2 {
		g.skips = append([]int{skip}, g.skips...)
		if skip == 1 {
			return g
		}
	}
}

// phase is the number of rounds of a phase.
func (g graph) phase() int { return len(g.skips) - 1 }

// placeAhead is v's receiver in a round, placeBehind its sender.
func (g graph) placeAhead(v, round int) int {
	return (v + g.skips[round%g.phase()]) % g.n
}

func (g graph) placeBehind(v, round int) int {
	return (v - g.skips[round%g.phase()] + g.n) % g.n
}

// base is the number of the smallest skip in v, written as a sum of skips with the larger ones
// taken first. It is the block that v hears in the first phase; for place 0, which hears none,
// the length of a phase.
func (g graph) base(v int) int {
	for k := g.phase() - 1; v > 0; k-- {
		if v >= g.skips[k] {
			if v -= g.skips[k]; v == 0 {
				return k
			}
		}
	}
	return g.phase()
}

// turn is the work of a place in one round.
type turn struct {
	to, from int // places
	out, in  int // blocks; none: nothing goes that way
}

// none in place of a block is no block.
const none = -1

// turns are the rounds of a place of the graph in broadcasting some blocks from place 0: one
// less than blocks and rounds of a phase together. Each other place hears every block once.
func (g graph) turns(v, blocks int) []turn {
	all := make([]turn, g.phase()+blocks-1)
	for i, block := range g.arrivals(v, blocks) {
		round := g.round(i, blocks)
		all[i] = turn{to: g.placeAhead(v, round), from: g.placeBehind(v, round), out: none, in: block}
	}
	for round := range min(g.phase(), len(all)) {
		theirs := g.arrivals(g.placeAhead(v, g.round(round, blocks)), blocks)
		for i := round; i < len(all); i += g.phase() {
			all[i].out = theirs[i]
		}
	}
	return all
}

// round counts the rounds of a broadcast such that the last one ends a phase.
func (g graph) round(i, blocks int) int {
	q := g.phase()
	return i + (q-(blocks-1)%q)%q
}

// arrivals returns by round the block that a place hears. A place with the last block isn't told
// again: in the last rounds there would be later ones.
func (g graph) arrivals(v, blocks int) []int {
	all := make([]int, g.phase()+blocks-1)
	if blocks == 1 { // as below, without a search: in a round the block comes as far as the next skip
		for k := range all {
			all[k] = none
			if g.skips[k] <= v && v < g.skips[k+1] {
				all[k] = 0
			}
		}
		return all
	}
	in, first, complete := g.inPhase(v), g.round(0, blocks), false
	for i := range all {
		round := first + i
		block := in[round%g.phase()] + round/g.phase()*g.phase() - first
		switch {
		case v == 0 || block < 0 || complete && block >= blocks-1:
			block = none
		case block >= blocks-1:
			block, complete = blocks-1, true
		}
		all[i] = block
	}
	return all
}

// inPhase returns by round of a phase the block that a place hears: one of those that the root
// sends out in this phase, from 0 on, or an earlier one, of a negative number.
func (g graph) inPhase(v int) []int {
	if g.memo[v] != nil {
		return g.memo[v]
	}
	own := g.base(v)
	s := search{graph: g, at: g.n + v, limit: 2 * g.n, left: make([]bool, g.phase()+1)}
	for block := range s.left {
		s.left[block] = block != own
	}
	s.walk(0, g.phase())
	for round, block := range s.arrivals {
		if s.arrivals[round] = block - g.phase(); block == g.phase() {
			s.arrivals[round] = own
		}
	}
	g.memo[v] = s.arrivals
	return s.arrivals
}

// search finds the blocks that a place hears in the rounds of a phase.
//
// In each phase, a place hears one of the blocks that the root sends out in it: the one numbered
// by its base. In all other rounds it hears a block of the phase before. The block of a round
// comes from a place between: not further on than the place behind by the round's skip, but
// further on than by the next one, else it would have come in another round. The search walks
// the ways from the root, by the largest skips first, to the furthest such place whose base has
// not been heard. The places for later rounds lie further back.
type search struct {
	graph
	at       int    // the place, a lap ahead of the root
	limit    int    // the place found for the round before
	left     []bool // by block: not heard yet; the length of a phase stands for the place's own
	arrivals []int  // by round
}

// walk goes on from a place by skips up to the one numbered most, until it has found the blocks
// of all rounds or the place is too far on for the next one.
func (s *search) walk(from, most int) {
	for block := most; block >= 0 && len(s.arrivals) < s.phase(); block-- {
		next := from + s.skips[block]
		if !s.left[block] || next > s.placeBack(0) || next >= s.limit {
			continue
		}
		if next <= s.placeBack(1) {
			s.walk(next, block)
		}
		if len(s.arrivals) == s.phase() || from > s.placeBack(1) {
			return
		}
		if s.left[block] {
			s.left[block], s.limit = false, next
			s.arrivals = append(s.arrivals, block)
		}
	}
}

// placeBack returns the place behind by the skip of the next round, or of one later.
func (s *search) placeBack(later int) int { return s.at - s.skips[len(s.arrivals)+later] }
