package nbc

import (
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// partial is a member's share of a reduction among a power of two of members: its sum so far, of
// a part of the vector. Members that combine are neighbours, or blocks of them are: so rank
// order is kept.
type partial struct {
	*rounds
	c      *submodules.Call
	fold   fold
	me     int        // member
	sum    tasks.Span // Src until the first combination, then Dst
	in     tasks.Span // scratch for arriving data
	mine   part
	theirs []part // what the other member of each exchange has, from the first one on
}

// newPartial folds the group. The ranks that are folded away send their data and have no more
// part in it: stands is false.
func newPartial(r *rounds, c *submodules.Call, keep int) (p *partial, stands bool) {
	f := newFold(c, keep)
	p = &partial{rounds: r, c: c, fold: f, me: f.member(c.Me), sum: c.Src, mine: part{0, c.Dst.Len}}
	partner := f.partner(c.Me)
	switch {
	case f.index(p.me) != c.Me:
		r.send(c.Group.Ranks[partner], c.Src)
		r.end()
		return p, false
	case partner >= 0:
		p.in = r.e.Scratch(c.Dst.Len)
		r.recv(c.Group.Ranks[partner], p.in)
		r.end()
		p.combine(p.mine, c.Group.Ranks[partner])
	}
	return p, true
}

// room makes scratch for n bytes unless there is some.
func (p *partial) room(n int64) {
	if p.in.Region == 0 {
		p.in = p.e.Scratch(n)
	}
}

// peer is the rank to exchange with over a distance of members.
func (p *partial) peer(distance int) levels.Rank {
	return p.c.Group.Ranks[p.fold.index(p.me^distance)]
}

// combine is a round that adds a rank's data to a part.
func (p *partial) combine(what part, from levels.Rank) {
	combine(p.rounds, p.c, what.of(p.sum), p.in.Cut(0, what.n), what.of(p.c.Dst), from)
	p.end()
	p.sum = p.c.Dst
}

// unfold gives the result to the ranks that were folded away.
func (p *partial) unfold() {
	partner := p.fold.partner(p.c.Me)
	switch {
	case partner < 0:
	case p.fold.index(p.me) == p.c.Me:
		p.send(p.c.Group.Ranks[partner], p.c.Dst)
	default:
		p.recv(p.c.Group.Ranks[partner], p.c.Dst)
	}
}
