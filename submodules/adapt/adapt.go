// Package adapt lowers tasks to event-driven trees of sends and receives: each
// inner segment moves on as soon as it is there, whatever its siblings do. It is
// the design of ADAPT (Luo et al., HPDC 2018), HAN's submodule between nodes.
//
// It emits steps only; trees are index arithmetic on the group.
package adapt

import (
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Adapt is the submodule.
type Adapt struct{}

var _ submodules.Submodule = Adapt{}

// Name is the word in plans.
func (Adapt) Name() string { return "adapt" }

// Doc says what it is.
func (Adapt) Doc() string { return "event-driven trees over links (ADAPT, HPDC 2018; HAN, III)" }

// Reach says that it works over links of any kind.
func (Adapt) Reach() submodules.Reach { return submodules.Anywhere }

// trees are the algorithms in the order of the catalogue.
var trees = []struct {
	name, doc string
	make      func(v, n int) tree
}{
	{"binomial", "log2(n) rounds deep, the root sends log2(n) times", binomial},
	{"chain", "each rank feeds the next; best when many segments fill it", chain},
}

// Algorithms lists the trees.
func (Adapt) Algorithms() []submodules.Algorithm {
	all := make([]submodules.Algorithm, len(trees))
	for i, t := range trees {
		all[i] = submodules.Algorithm{
			Name: t.name, Doc: t.doc, Inner: true,
			Ops:    []tasks.Collective{tasks.Bcast, tasks.Reduce},
			Needs:  []submodules.Restriction{submodules.NeedsRootFirst},
			Source: "ADAPT, HPDC 2018",
		}
	}
	return all
}

// Lower emits a bcast or a reduction along the tree.
func (Adapt) Lower(e *submodules.Emitter, c *submodules.Call) error {
	n := len(c.Group.Ranks)
	at := relative{group: c.Group, n: n}
	var t tree
	for _, algo := range trees {
		if algo.name == c.Algorithm {
			t = algo.make(at.of(c.Me), n)
		}
	}
	switch c.Kind.Op {
	case tasks.Bcast:
		bcast(e, c, at, t)
	case tasks.Reduce:
		reduce(e, c, at, t)
	default:
		return fmt.Errorf("%v: %w", c.Kind.Op, submodules.ErrUnsupported)
	}
	return nil
}

// relative numbers a group's ranks from its leader on, who becomes 0.
type relative struct {
	group *levels.Group
	n     int
}

func (r relative) of(index int) int              { return (index - r.group.Leader + r.n) % r.n }
func (r relative) rank(relative int) levels.Rank { return r.group.Ranks[(relative+r.group.Leader)%r.n] }

// bcast: each inner segment comes from the parent and goes to all children.
//
//	time →   0    1    2    3
//	inner 0  recv send
//	inner 1       recv send
//	inner 2            recv send
func bcast(e *submodules.Emitter, c *submodules.Call, at relative, t tree) {
	for off, n := range c.Pieces() {
		got := submodules.None
		if t.parent >= 0 {
			got = e.Recv(at.rank(t.parent), c.Dst.Cut(off, n))
			e.Ready(got)
		}
		for _, child := range slices.Backward(t.children) { // the deepest subtree first
			e.Send(at.rank(child), c.Dst.Cut(off, n), got)
		}
	}
	if t.parent < 0 {
		e.ReadyAtStart()
	}
}

// reduce: each inner segment is received from the children in turn, combined in
// the order of their ranks, and sent to the parent. A piece of scratch per child
// and segment lets all children send at once.
func reduce(e *submodules.Emitter, c *submodules.Call, at relative, t tree) {
	in := make([]tasks.Span, len(t.children))
	for i := range in {
		in[i] = e.Scratch(c.Dst.Len)
	}
	for off, n := range c.Pieces() {
		sum := c.Src.Cut(off, n)
		dst := c.Dst.Cut(off, n)
		last := submodules.None
		for i, child := range t.children {
			from := in[i].Cut(off, n)
			got := e.Recv(at.rank(child), from)
			last = e.Reduce(dst, sum, from, last, got)
			sum = dst
		}
		switch {
		case t.parent >= 0:
			e.Send(at.rank(t.parent), sum, last)
		case len(t.children) == 0 && sum != dst:
			e.Copy(dst, sum)
		}
	}
}
