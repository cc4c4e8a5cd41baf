package adapt

import (
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
)

// linearGather: all send to the leader at once.
func linearGather(e *submodules.Emitter, c *submodules.Call) {
	if c.Me != c.Group.Leader {
		up := outlet{to: c.Group.Lead()}
		for _, s := range c.Held {
			up.send(e, s, submodules.None)
		}
		return
	}
	c.Keep(e)
	for i, r := range c.Others() {
		in := inlet{from: r}
		for _, s := range c.Parts[i] {
			in.used(in.recv(e, s, submodules.None))
		}
	}
}

// linearAllgather: all send to all at once, each to the ranks behind it first, so
// that not all begin with the same one.
func linearAllgather(e *submodules.Emitter, c *submodules.Call) {
	c.Keep(e)
	n := len(c.Group.Ranks)
	for distance := 1; distance < n; distance++ {
		to, from := (c.Me+distance)%n, (c.Me-distance+n)%n
		out, in := outlet{to: c.Group.Ranks[to]}, inlet{from: c.Group.Ranks[from]}
		for _, s := range c.Held {
			out.send(e, s, submodules.None)
		}
		for _, s := range c.Parts[from] {
			in.used(in.recv(e, s, submodules.None))
		}
	}
}

// ringAllgather: what comes from the rank before goes on to the next as soon as it
// is there, piece by piece.
//
//	time →   0     1     2     3
//	part me  send
//	me-1     recv  send
//	me-2           recv  send
//	me-3                 recv
func ringAllgather(e *submodules.Emitter, c *submodules.Call) {
	c.Keep(e)
	n := len(c.Group.Ranks)
	rank := func(i int) levels.Rank { return c.Group.Ranks[(i+n)%n] }
	out, in := outlet{to: rank(c.Me + 1)}, inlet{from: rank(c.Me - 1)}
	if n == 1 {
		return
	}
	for _, s := range c.Held {
		out.send(e, s, submodules.None)
	}
	for i := 1; i < n; i++ {
		for _, s := range c.Parts[(c.Me-i+n)%n] {
			got := in.recv(e, s, submodules.None)
			in.used(got)
			if i < n-1 {
				out.send(e, s, got)
			}
		}
	}
}
