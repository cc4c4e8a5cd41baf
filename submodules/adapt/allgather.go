package adapt

import (
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

// linearScatter: the leader sends to all at once.
func linearScatter(e *submodules.Emitter, c *submodules.Call) {
	if c.Me != c.Group.Leader {
		in := inlet{from: c.Group.Lead()}
		for _, s := range c.Held {
			in.used(in.recv(e, s, submodules.None))
		}
		return
	}
	c.Keep(e)
	for i, r := range c.Others() {
		out := outlet{to: r}
		for _, s := range c.Parts[i] {
			out.send(e, s, submodules.None)
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
