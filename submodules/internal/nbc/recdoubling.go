package nbc

import "github.com/tierflow/tierflow/submodules"

// recursiveDoubling: members exchange all they have with the one at twice the
// distance of before.
//
//	round 0   0↔1  2↔3  4↔5  6↔7
//	round 2   0↔2  1↔3  4↔6  5↔7      between them each combines
//	round 4   0↔4  1↔5  2↔6  3↔7
func recursiveDoubling(r *rounds, c *submodules.Call) {
	p, stands := newPartial(r, c, 0)
	if stands {
		p.room(c.Dst.Len)
		for distance := 1; distance < p.fold.members; distance *= 2 {
			peer := p.peer(distance)
			p.send(peer, p.sum)
			p.recv(peer, p.in)
			p.end()
			p.combine(p.mine, peer)
		}
	}
	p.unfold()
}
