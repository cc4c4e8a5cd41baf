package nbc

import "github.com/tierflow/tierflow/submodules"

// rabenseifnerReduce: reduce-scatter, then the parts come together at the leader.
func rabenseifnerReduce(r *rounds, c *submodules.Call) {
	p, stands := newPartial(r, c, c.Group.Leader)
	if stands {
		p.halve()
		p.gather(p.fold.member(c.Group.Leader))
	}
}

// rabenseifnerAllreduce: reduce-scatter, then all members collect all parts.
func rabenseifnerAllreduce(r *rounds, c *submodules.Call) {
	p, stands := newPartial(r, c, 0)
	if stands {
		p.halve()
		p.allgather()
	}
	p.unfold()
}

// halve is the reduce-scatter: neighbours first, to keep rank order. Each gives away one half of
// its part and combines the other.
//
//	          member 0   member 1   member 2   member 3
//	start     abcd       abcd       abcd       abcd
//	0↔1 2↔3   ab         cd         ab         cd
//	0↔2 1↔3   a          c          b          d
func (p *partial) halve() {
	for distance := 1; distance < p.fold.members; distance *= 2 {
		peer := p.peer(distance)
		keep, give := p.mine.halves(p.c.Elem)
		if p.me&distance != 0 {
			keep, give = give, keep
		}
		p.room(keep.n)
		p.send(peer, give.of(p.sum))
		p.recv(peer, p.in.Cut(0, keep.n))
		p.end()
		p.combine(keep, peer)
		p.mine, p.theirs = keep, append(p.theirs, give)
	}
}

// gather undoes the exchanges from the last to the first, in one direction: a rank on the other
// side than the root sends its part and is done.
func (p *partial) gather(root int) {
	for i := len(p.theirs) - 1; i >= 0; i-- {
		distance := 1 << i
		peer := p.peer(distance)
		if (p.me^root)&distance != 0 {
			p.send(peer, p.mine.of(p.c.Dst))
			p.end()
			return
		}
		p.recv(peer, p.theirs[i].of(p.c.Dst))
		p.end()
		p.mine = p.mine.join(p.theirs[i])
	}
}

// allgather undoes the exchanges from the last to the first, in both directions.
func (p *partial) allgather() {
	for i := len(p.theirs) - 1; i >= 0; i-- {
		peer := p.peer(1 << i)
		p.send(peer, p.mine.of(p.c.Dst))
		p.recv(peer, p.theirs[i].of(p.c.Dst))
		p.end()
		p.mine = p.mine.join(p.theirs[i])
	}
}
