package casegen

import (
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Smaller lists the cases one step simpler than c, those that save most first: fewer ranks,
// ranks in block order, fewer elements, root 0, buffers apart, one segment, a window of one, no
// hierarchy or a plain one, default algorithms. None is listed twice or equal to c, and no chain of them is
// endless. Some may not fit their plans.
func Smaller(c Case) []Case {
	var all []Case
	add := func(change func(*Case)) {
		next := c
		change(&next)
		all = append(all, next)
	}
	all = append(all, onSubsets(c)...)
	if c.Request.Differ() {
		add(func(n *Case) { n.Request.Counts, n.Request.Matrix = tasks.Counts{}, tasks.Matrix{} })
	} else {
		for _, count := range fewer(c.Request.Count) {
			add(func(n *Case) { n.Request.Count = count })
		}
	}
	if c.Request.Root != 0 {
		add(func(n *Case) { n.Request.Root = 0 })
	}
	if c.Request.InPlace {
		add(func(n *Case) { n.Request.InPlace = false })
	}
	for _, p := range simpler(c.Plan) {
		add(func(n *Case) { n.Plan = p })
	}
	return all
}

// onSubsets is c with ranks left out or in another order; the root stays the same rank, as long
// as it stays.
func onSubsets(c Case) []Case {
	seen := []Case{c}
	for _, ranks := range subsets(c.Topology) {
		next := c
		restrict(&next.Request, ranks)
		next.Topology = dropNames(c.Topology, ranks)
		next.Request.Root = levels.Rank(max(0, slices.Index(ranks, c.Request.Root)))
		same := func(o Case) bool { return o.Topology.Equal(next.Topology) && o.Request.Root == next.Request.Root }
		if !slices.ContainsFunc(seen, same) {
			seen = append(seen, next)
		}
	}
	return seen[1:]
}

// dropNames returns a subset with default names: so it has a short spec.
func dropNames(t *levels.Topology, ranks []levels.Rank) *levels.Topology {
	all, paths := make([]levels.Level, t.Depth()), make([][]int32, len(ranks))
	for k := range all {
		all[k] = t.Level(k)
	}
	for i, r := range ranks {
		for k := range t.Depth() - 1 {
			paths[i] = append(paths[i], t.Domain(r, k))
		}
	}
	sub, err := levels.New(all, paths)
	if err != nil {
		panic(fmt.Sprintf("casegen: part of a topology is none: %v", err))
	}
	return sub
}

// subsets lists halves, all ranks but one, and all ranks node by node.
func subsets(t *levels.Topology) [][]levels.Rank {
	ranks := make([]levels.Rank, t.Size())
	for r := range ranks {
		ranks[r] = levels.Rank(r)
	}
	var sets [][]levels.Rank
	if n := len(ranks); n > 1 {
		sets = append(sets, ranks[:n/2], ranks[n/2:])
		for i := n - 1; i >= 0 && n > 2; i-- { // of two ranks these are the halves
			sets = append(sets, slices.Delete(slices.Clone(ranks), i, i+1))
		}
	}
	blocks := slices.Clone(ranks)
	slices.SortStableFunc(blocks, func(a, b levels.Rank) int { return int(t.Domain(a, 0) - t.Domain(b, 0)) })
	return append(sets, blocks)
}

// fewer lists smaller counts.
func fewer(n int64) []int64 {
	all := []int64{0, 1, n / 2, n - 1}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(m int64) bool { return m < 0 || m >= n })
}

// simpler lists plans with one parameter at its plainest.
func simpler(p tasks.Plan) []tasks.Plan {
	var all []tasks.Plan
	add := func(change func(*tasks.Plan)) {
		next := p
		if change(&next); !next.Equal(p) {
			all = append(all, next)
		}
	}
	add(func(p *tasks.Plan) { p.Segment = tasks.Whole })
	add(func(p *tasks.Plan) { p.Window = 1 })
	add(func(p *tasks.Plan) { p.Shape = tasks.Flat })
	if p.Shape != tasks.Flat { // of shapes with levels han is the one with fewest tasks
		add(func(p *tasks.Plan) { p.Shape = tasks.Han })
	}
	for _, key := range p.Keys() {
		c, _ := p.Choice(key)
		add(func(p *tasks.Plan) { *p = p.Set(key, tasks.Choice{Submodule: c.Submodule, Algorithm: c.Algorithm}) })
		add(func(p *tasks.Plan) { *p = p.Set(key, tasks.Choice{Submodule: c.Submodule, Inner: c.Inner}) })
	}
	return all
}

// Minimize returns a failing case without a failing [Smaller] one. It starts from c, a failing
// case, and goes on to a smaller one as long as there is one. Fails should tell the failure at
// hand from cases that don't fit their plans. It is called often; bound its work.
func Minimize(c Case, fails func(Case) bool) Case {
	for {
		smaller := Smaller(c)
		at := slices.IndexFunc(smaller, fails)
		if at < 0 {
			return c
		}
		c = smaller[at]
	}
}
