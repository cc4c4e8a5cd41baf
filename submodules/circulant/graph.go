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
	found [][]int // by place: what inPhase found
}

func newGraph(n int) graph {
	g := graph{n: n, found: make([][]int, n)}
	for skip := n; ; skip = (skip + 1) / 2 {
		g.skips = append([]int{skip}, g.skips...)
		if skip == 1 {
			return g
		}
	}
}

// phase is the number of rounds of a phase.
func (g graph) phase() int { return len(g.skips) - 1 }

// placeAhead is the place that v sends to in a round, behind the one that it hears from.
func (g graph) placeAhead(v, round int) int {
	return (v + g.skips[round%g.phase()]) % g.n
}

func (g graph) placeBehind(v, round int) int {
	return (v - g.skips[round%g.phase()] + g.n) % g.n
}

// base is the number of the smallest of the skips that add up to v, larger ones being
// taken first. It is the block that v hears in the first phase. Of place 0, which hears
// none, it is the length of a phase.
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

// turn is what a place does in one round.
type turn struct {
	to, from int // places
	out, in  int // blocks; none: nothing goes that way
}

// none in place of a block is no block.
const none = -1

// turns are the rounds in which a place of the graph takes part in broadcasting some
// blocks from place 0: one less than blocks and rounds of a phase together. Each other
// place hears every block once.
func (g graph) turns(v, blocks int) []turn {
	all := make([]turn, g.phase()+blocks-1)
	for i, block := range g.hears(v, blocks) {
		round := g.round(i, blocks)
		all[i] = turn{to: g.placeAhead(v, round), from: g.placeBehind(v, round), out: none, in: block}
	}
	for round := range min(g.phase(), len(all)) {
		heard := g.hears(g.placeAhead(v, g.round(round, blocks)), blocks)
		for i := round; i < len(all); i += g.phase() {
			all[i].out = heard[i]
		}
	}
	return all
}

// round counts the rounds of a broadcast so that the last one ends a phase.
func (g graph) round(i, blocks int) int {
	q := g.phase()
	return i + (q-(blocks-1)%q)%q
}

// hears returns by round the block that a place hears. Who has the last block already
// isn't told again: in the last rounds there would be later ones.
func (g graph) hears(v, blocks int) []int {
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

// inPhase returns by round of a phase the block that a place hears: of the blocks that
// the root sends out in this phase, from 0 on, or of those before, which are negative.
func (g graph) inPhase(v int) []int {
	if g.found[v] != nil {
		return g.found[v]
	}
	own := g.base(v)
	s := search{graph: g, at: g.n + v, limit: 2 * g.n, left: make([]bool, g.phase()+1)}
	for block := range s.left {
		s.left[block] = block != own
	}
	s.walk(0, g.phase())
	for round, block := range s.heard {
		if s.heard[round] = block - g.phase(); block == g.phase() {
			s.heard[round] = own
		}
	}
	g.found[v] = s.heard
	return s.heard
}

// search finds what a place hears in the rounds of a phase.
//
// In each phase, a place hears one of the blocks that the root sends out in it: the
// one numbered by its base. In all other rounds it hears a block of the phase before,
// and the block of a round comes from a place between: not further on than the place
// behind by the round's skip, but further on than by the next one, else it would have
// come in another round. The search walks the ways from the root, by the largest skips
// first, to the furthest such place whose base has not been heard. What is found for
// later rounds lies further back.
type search struct {
	graph
	at    int    // the place, a lap ahead of the root
	limit int    // where the search for the last round ended
	left  []bool // by block: not heard yet; the length of a phase stands for the place's own
	heard []int  // by round
}

// walk goes on from a place by skips up to the one numbered most, until it has found
// what is heard in all rounds or the place is too far on for the next one.
func (s *search) walk(from, most int) {
	for block := most; block >= 0 && len(s.heard) < s.phase(); block-- {
		next := from + s.skips[block]
		if !s.left[block] || next > s.back(0) || next >= s.limit {
			continue
		}
		if next <= s.back(1) {
			s.walk(next, block)
		}
		if len(s.heard) == s.phase() || from > s.back(1) {
			return
		}
		if s.left[block] {
			s.left[block], s.limit = false, next
			s.heard = append(s.heard, block)
		}
	}
}

// back is the place behind by the skip of the next round, or of one later.
func (s *search) back(later int) int { return s.at - s.skips[len(s.heard)+later] }
