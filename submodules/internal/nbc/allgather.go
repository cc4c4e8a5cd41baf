package nbc

import "github.com/tierflow/tierflow/submodules"

// keepOwn adds [submodules.Call.Keep].
func (r *rounds) keepOwn(c *submodules.Call) {
	r.open = append(r.open, c.Keep(r.e, r.gate)...)
}

// linearGather: all send to the leader in one round.
func linearGather(r *rounds, c *submodules.Call) {
	if c.Me != c.Group.Leader {
		r.send(c.Group.Lead(), c.Held...)
		return
	}
	r.keepOwn(c)
	for i, from := range c.Others() {
		r.recv(from, c.Parts[i]...)
	}
}

// linearAllgather: all send to all in one round.
func linearAllgather(r *rounds, c *submodules.Call) {
	r.keepOwn(c)
	for i, other := range c.Others() {
		r.send(other, c.Held...)
		r.recv(other, c.Parts[i]...)
	}
}

// ringAllgather: each passes on the part from the round before.
//
//	n = 4     rank 0        rank 1        rank 2        rank 3
//	round 0   sends part 0  sends part 1  sends part 2  sends part 3
//	round 1   sends part 3  sends part 0  sends part 1  sends part 2
//	round 2   sends part 2  sends part 3  sends part 0  sends part 1
func ringAllgather(r *rounds, c *submodules.Call) {
	r.keepOwn(c)
	next, last := c.Group.Ranks[c.Member(c.Me+1)], c.Group.Ranks[c.Member(c.Me-1)]
	for i := range len(c.Group.Ranks) - 1 {
		r.send(next, c.Part(c.Member(c.Me-i))...)
		r.recv(last, c.Parts[c.Member(c.Me-i-1)]...)
		r.end()
	}
}

// recursiveDoublingAllgather: pairs at twice the distance of before exchange all
// they have. It needs a power of two of ranks.
//
//	round 0   0↔1  2↔3    a part each
//	round 1   0↔2  1↔3    two parts each
func recursiveDoublingAllgather(r *rounds, c *submodules.Call) {
	r.keepOwn(c)
	for distance := 1; distance < len(c.Group.Ranks); distance *= 2 {
		peer := c.Me ^ distance
		mine, its := c.Me&^(distance-1), peer&^(distance-1)
		for i := range distance {
			r.send(c.Group.Ranks[peer], c.Part(mine+i)...)
			r.recv(c.Group.Ranks[peer], c.Parts[its+i]...)
		}
		r.end()
	}
}

// bruckAllgather: in each round a rank gets as many parts as it has from the rank
// as far ahead, the last time those it lacks. Parts go to their places at once:
// there is nothing to rotate in the end.
//
//	n = 5     rank 0 gets
//	round 0   part 1 from 1
//	round 1   parts 2, 3 from 2
//	round 2   part 4 from 4
func bruckAllgather(r *rounds, c *submodules.Call) {
	r.keepOwn(c)
	n := len(c.Group.Ranks)
	for distance := 1; distance < n; distance *= 2 {
		to, from := c.Member(c.Me-distance), c.Member(c.Me+distance)
		for i := range min(distance, n-distance) {
			r.send(c.Group.Ranks[to], c.Part(c.Member(c.Me+i))...)
			r.recv(c.Group.Ranks[from], c.Parts[c.Member(from+i)]...)
		}
		r.end()
	}
}

// neighborAllgather: an even number of ranks exchange with the neighbour on one side, then with
// the one on the other, and so on: first their own part, then the last pair of parts to come.
//
//	n = 6     rank 0            rank 1
//	round 0   ↔1: part 0 | 1    ↔0: part 1 | 0
//	round 1   ↔5: 0 1 | 4 5     ↔2: 0 1 | 2 3
//	round 2   ↔1: 4 5 | 2 3     ↔0: 2 3 | 4 5
func neighborAllgather(r *rounds, c *submodules.Call) {
	r.keepOwn(c)
	n := len(c.Group.Ranks)
	peer := neighbor(c.Me, 0, n)
	r.send(c.Group.Ranks[peer], c.Held...)
	r.recv(c.Group.Ranks[peer], c.Parts[peer]...)
	r.end()
	for i := 1; i < n/2; i++ {
		peer := neighbor(c.Me, i, n)
		give, get := lastPair(c.Me, i-1, n), lastPair(peer, i-1, n)
		for j := range 2 {
			r.send(c.Group.Ranks[peer], c.Part(give+j)...)
		}
		for j := range 2 {
			r.recv(c.Group.Ranks[peer], c.Parts[get+j]...)
		}
		r.end()
	}
}

// neighbor is a rank's partner in a round: even ranks begin upwards.
func neighbor(rank, round, n int) int {
	if rank%2 == round%2 {
		return (rank + 1) % n
	}
	return (rank + n - 1) % n
}

// lastPair is the pair of parts that a rank got in a round: its neighbour's pair of the round
// before.
func lastPair(rank, round, n int) int {
	for ; round > 0; round-- {
		rank = neighbor(rank, round, n)
	}
	return rank &^ 1
}
