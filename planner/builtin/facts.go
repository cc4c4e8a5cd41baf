package builtin

import (
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/tasks"
)

// Facts are the parameters of a request on a topology, and of the forced part of its plan. They say
// nothing about the machine.
type Facts struct {
	*Asked
	Forced tasks.Plan
}

var _ rules.Source = (*Facts)(nil)

// Value returns a parameter of the request, of the layout, or of the forced part.
func (a *Facts) Value(p rules.Param) int64 {
	if s, is := p.IsFits(); is {
		return rules.Bool(a.fits(s))
	}
	r, size := &a.request, a.On.Size()
	switch p {
	case rules.Ranks:
		return int64(size)
	case rules.Nodes:
		return int64(a.On.Nodes())
	case rules.PerNode, rules.Balanced, rules.Ordered:
		return a.layout(p)
	case rules.Processes:
		return rules.Bool(!a.On.IsOneProcess())
	case rules.Bytes:
		return r.MeanBytes()
	case rules.Total:
		return r.AllBytes(size)
	case rules.Longest:
		return r.Bytes()
	case rules.Blocks:
		if r.Blocks() {
			return int64(size)
		}
		return 1
	case rules.Count:
		return r.Count
	case rules.Element:
		if !r.Coll.HasData() {
			return 0
		}
		return int64(r.Type.Size())
	case rules.Root:
		return int64(r.Root)
	case rules.Commutative:
		return rules.Bool(!r.Reduces() || r.Op.Commutative())
	case rules.BuiltIn:
		return rules.Bool(!r.Reduces() || r.Op.Func() == nil)
	case rules.Regular:
		return rules.Bool(!r.Differ())
	case rules.Parts:
		return a.parts()
	case rules.Free:
		return rules.Bool(len(a.Forced.Keys()) == 0 && a.Forced.Order == tasks.AnyOrder)
	case rules.TreeForced:
		return rules.Bool(a.Forced.Order == tasks.TreeOrder)
	case rules.Asked:
		return int64(r.Coll)
	}
	return rules.Unknown
}

// fits reports whether the collective has a shape, and the groups of ranks can have it.
func (a *Facts) fits(s tasks.Shape) bool {
	if !s.Fits(a.request.Coll) {
		return false
	}
	_, err := a.Hierarchy(tasks.Plan{Shape: s, Order: a.Forced.Order})
	return err == nil
}

// parts is how many blocks of the largest size make up all bytes; 1 without blocks.
func (a *Facts) parts() int64 {
	r := &a.request
	switch {
	case r.Differ() && r.Count > 0:
		return (r.AllBytes(a.On.Size()) + r.Bytes() - 1) / r.Bytes()
	case r.Blocks():
		return int64(a.On.Size())
	}
	return 1
}

// layout returns a parameter from a look at all ranks.
func (a *Facts) layout(p rules.Param) int64 {
	at := make([]int64, a.On.Nodes())
	ordered := true
	for rank := range levels.Rank(a.On.Size()) {
		node := a.On.Node(rank)
		at[node]++
		ordered = ordered && (rank == 0 || a.On.Node(rank-1) == node || at[node] == 1)
	}
	most, least := at[0], at[0]
	for _, n := range at {
		most, least = max(most, n), min(least, n)
	}
	switch p {
	case rules.PerNode:
		return most
	case rules.Balanced:
		return rules.Bool(most == least)
	}
	return rules.Bool(ordered)
}
