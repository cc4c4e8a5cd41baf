package adapt

import "github.com/tierflow/tierflow/submodules"

// linearGather: all send to the leader at once.
func linearGather(e *submodules.Emitter, c *submodules.Call) {
	if c.Me != c.Group.Leader {
		sendAll(e, c.Group.Lead(), c.Held)
		return
	}
	c.Keep(e)
	for i, r := range c.Others() {
		recvAll(e, r, c.Parts[i])
	}
}

// linearScatter: the leader sends to all at once.
func linearScatter(e *submodules.Emitter, c *submodules.Call) {
	if c.Me != c.Group.Leader {
		recvAll(e, c.Group.Lead(), c.Held)
		return
	}
	c.Keep(e)
	for i, r := range c.Others() {
		sendAll(e, r, c.Parts[i])
	}
}

// linearAllgather: all send to all at once, each to the ranks behind it first: so not all begin
// with the same one.
func linearAllgather(e *submodules.Emitter, c *submodules.Call) {
	c.Keep(e)
	for distance := 1; distance < len(c.Group.Ranks); distance++ {
		to, from := c.Member(c.Me+distance), c.Member(c.Me-distance)
		sendAll(e, c.Group.Ranks[to], c.Held)
		recvAll(e, c.Group.Ranks[from], c.Parts[from])
	}
}
