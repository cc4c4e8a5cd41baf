package nbc

import (
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/trees"
	"github.com/tierflow/tierflow/tasks"
)

// pieces lists the inner segments.
func pieces(c *submodules.Call) (all []part) {
	for off, n := range c.Pieces() {
		all = append(all, part{off, n})
	}
	return all
}

// chainBcast: in a round a rank receives an inner segment and passes on the one
// before.
//
//	round    0      1      2      3
//	rank 0   send 0 send 1 send 2
//	rank 1   recv 0 recv 1 recv 2
//	                send 0 send 1 send 2
func chainBcast(r *rounds, c *submodules.Call) {
	place := trees.Chain(c.Seat(), len(c.Group.Ranks))
	all := pieces(c)
	lag := 1 // rounds from having to passing on
	if place.Parent < 0 {
		lag = 0
	}
	for i := range len(all) + lag {
		if place.Parent >= 0 && i < len(all) {
			r.recv(c.RankAt(place.Parent), all[i].of(c.Dst))
		}
		if len(place.Children) > 0 && i >= lag {
			r.send(c.RankAt(place.Children[0]), all[i-lag].of(c.Dst))
		}
		r.end()
	}
}

// chainReduce: from the last rank to the leader, each combines the next one's data with its own.
// Two buffers let one inner segment arrive while another is used.
//
//	round     0      1        2        3
//	inside    recv 0 recv 1   recv 2
//	                 reduce 0 reduce 1 reduce 2
//	                          send 0   send 1   send 2
//	last      send 0 send 1   send 2
func chainReduce(r *rounds, c *submodules.Call) {
	place := trees.Chain(c.Seat(), len(c.Group.Ranks))
	all := pieces(c)
	if len(place.Children) == 0 {
		for _, p := range all {
			r.send(c.RankAt(place.Parent), p.of(c.Src))
			r.end()
		}
		return
	}
	child := c.RankAt(place.Children[0])
	var buf [2]tasks.Span
	for i := range min(len(all), len(buf)) {
		buf[i] = r.e.Scratch(all[i].n)
	}
	in := func(i int) tasks.Span { return buf[i%2].Cut(0, all[i].n) }
	for i := range len(all) + 2 {
		if i < len(all) {
			r.recv(child, in(i))
		}
		if k := i - 1; k >= 0 && k < len(all) {
			combine(r, c, all[k].of(c.Src), in(k), all[k].of(c.Dst), child)
		}
		if k := i - 2; k >= 0 && place.Parent >= 0 {
			r.send(c.RankAt(place.Parent), all[k].of(c.Dst))
		}
		r.end()
	}
}
