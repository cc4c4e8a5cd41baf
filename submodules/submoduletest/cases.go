package submoduletest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/check"
	"github.com/tierflow/tierflow/tasks"
)

// underTest is one operation by one algorithm.
type underTest struct {
	sub  submodules.Submodule
	algo submodules.Algorithm
	op   tasks.Collective
	most int // ranks of a group

	number int // the algorithm's; 0: the usual one
}

// cut is how a message is divided; bytes, elements being of four.
type cut struct {
	segment int64
	window  int
	inner   int64
}

// cuts are few because they multiply: whole; in inner segments that don't divide it; several
// segments through fewer slots, with and without inner ones; pieces and segments sent inline
// behind a longer one.
func (u underTest) cuts() []cut {
	const large = submodules.InlineMax + 4
	all := []cut{{tasks.Whole, 1, 0}, {4, 2, 0}, {tasks.Whole, 1, 8}, {12, 1, 4}, {tasks.Whole, 1, large}, {large, 2, 0}}
	if !u.algo.Inner {
		return all[:2]
	}
	return all
}

// first shows every change of order.
var first = tasks.UserOp("first", false, func(a, _ int32) int32 { return a })

// combining are the requests of a collective that combines: apart, in place, and with an
// operation bound to the order of ranks.
func combining(coll tasks.Collective) []tasks.Request {
	r := tasks.Request{Coll: coll, Type: tasks.Int32, Op: tasks.Sum}
	inPlace, ordered := r, r
	inPlace.InPlace, ordered.Op = true, first
	return []tasks.Request{r, inPlace, ordered}
}

// requests are those with tasks of the operation, without counts.
func (u underTest) requests() []tasks.Request {
	switch u.op {
	case tasks.Bcast:
		return []tasks.Request{{Coll: tasks.Bcast, Type: tasks.Int32}}
	case tasks.Reduce:
		return append(combining(tasks.Allreduce), combining(tasks.Reduce)...)
	case tasks.Gather, tasks.Allgather, tasks.Scatter:
		r := tasks.Request{Coll: u.op, Type: tasks.Int32}
		inPlace := r
		inPlace.InPlace = true
		all := append(u.shapedRequests(), r, inPlace, tasks.Request{Coll: tasks.Allgather, Type: tasks.Int32})
		if u.op != tasks.Allgather {
			r.Coll, inPlace.Coll = tasks.Alltoall, tasks.Alltoall
			all = append(all, r, inPlace)
		}
		return all
	case tasks.ReduceScatter:
		return append(u.shapedRequests(), combining(u.op)...)
	case tasks.Allreduce:
		return append(u.shapedRequests(), tasks.Request{Coll: tasks.Barrier})
	case tasks.Scan, tasks.Exscan, tasks.Prefix:
		return u.scans()
	}
	return u.plain()
}

// plain are the requests of a collective with tasks of its own name: in place too if it can be.
func (u underTest) plain() []tasks.Request {
	r := tasks.Request{Coll: u.op, Type: tasks.Int32}
	if !slices.Contains(tasks.Operations(u.op, u.shape(r)), u.op) {
		return nil
	}
	inPlace := r
	inPlace.InPlace = u.op.HasInPlace()
	return []tasks.Request{r, inPlace}
}

// scans are the scans and exscans with tasks of the operation by han.
func (u underTest) scans() (all []tasks.Request) {
	for _, coll := range []tasks.Collective{tasks.Scan, tasks.Exscan} {
		if slices.Contains(tasks.Operations(coll, tasks.Han), u.op) {
			all = append(all, combining(coll)...)
		}
	}
	return all
}

// shapedRequests returns the requests with tasks of the operation by some shapes only.
func (u underTest) shapedRequests() []tasks.Request {
	switch u.op {
	case tasks.Scatter:
		return []tasks.Request{{Coll: tasks.Bcast, Type: tasks.Int32}}
	case tasks.Allreduce:
		return combining(tasks.Allreduce)
	case tasks.ReduceScatter, tasks.Allgather:
		return combining(tasks.Allreduce)[:2]
	}
	return nil
}

// shape is one with tasks of the operation.
func (u underTest) shape(r tasks.Request) tasks.Shape {
	for _, s := range []tasks.Shape{tasks.Han, tasks.AR, tasks.RSAG, tasks.SAG} {
		if s.Fits(r.Coll) && slices.Contains(tasks.Operations(r.Coll, s), u.op) {
			return s
		}
	}
	if tasks.Han.Fits(r.Coll) {
		return tasks.Han
	}
	return tasks.Flat
}

// groups checks single groups of every size.
func (u underTest) groups() error {
	var sizes []int
	for n := 1; n <= u.most; n++ {
		sizes = append(sizes, n)
	}
	return u.onGroups(sizes, u.counts)
}

// numbers checks groups under other numbers than the usual one.
func (u underTest) numbers() error {
	for _, u.number = range append([]int{3}, u.algo.Number.Worth...) {
		if err := u.onGroups([]int{5, 9, 17}, u.fewCuts); err != nil {
			return err
		}
	}
	return nil
}

// fewCuts checks a request of some elements, whole and cut.
func (u underTest) fewCuts(r tasks.Request, h *levels.Hierarchy) error {
	if r.Coll.HasData() {
		r.Count = 11
	}
	for _, c := range u.cuts()[:2] {
		if err := u.check(r, h, u.plan(r, h, c)); err != nil {
			return err
		}
	}
	return nil
}

// onGroups checks all requests on single groups of some sizes, under several leaders.
func (u underTest) onGroups(sizes []int, check func(tasks.Request, *levels.Hierarchy) error) error {
	requests := u.requests()
	if requests == nil {
		return fmt.Errorf("%v: submoduletest knows no request with tasks of this operation", u.op)
	}
	for _, n := range sizes {
		topo, err := levels.Parse(strconv.Itoa(n))
		if err != nil {
			return err
		}
		for _, h := range u.ledBy(topo) {
			leader := h.Root()
			for _, r := range requests {
				if r.Rooted() {
					r.Root = leader
				}
				if err := check(r, h); err != nil {
					return fmt.Errorf("led by %d: %w", leader, err)
				}
			}
		}
	}
	return nil
}

// ledBy returns a group of all ranks under several leaders. The leader of a scan doesn't matter,
// but a prefix needs a group behind another one.
func (u underTest) ledBy(all *levels.Topology) (led []*levels.Hierarchy) {
	n := all.Size()
	switch behind, err := levels.Parse(fmt.Sprintf("a:1,b:%d", n)); {
	case err != nil:
		panic(fmt.Sprintf("submoduletest: impossible topology: %v", err))
	case u.op == tasks.Prefix:
		return []*levels.Hierarchy{behind.Trailing()}
	case u.op.Scans():
		return []*levels.Hierarchy{all.Flat(0)}
	}
	for _, leader := range slices.Compact([]levels.Rank{0, levels.Rank(n / 2), levels.Rank(n - 1)}) {
		led = append(led, all.Flat(leader))
	}
	return led
}

func (u underTest) counts(r tasks.Request, h *levels.Hierarchy) error {
	for _, c := range u.cuts() {
		for _, differ := range blocksThatDiffer(r, h.Topology().Size()) {
			if err := u.check(differ, h, u.plan(differ, h, c)); err != nil {
				return err
			}
		}
		counts := []int64{0, 1, 7, 11}
		if h.Topology().Size() > 5 { // ranks counted wrongly show with any count
			counts = []int64{0, 11}
		}
		for _, r.Count = range counts {
			if !r.Coll.HasData() && r.Count > 0 {
				break
			}
			if err := u.check(r, h, u.plan(r, h, c)); err != nil {
				return err
			}
		}
	}
	return nil
}

// blocksThatDiffer are requests with some empty blocks, and with a single one that isn't: a rank
// without data neither sends nor receives.
func blocksThatDiffer(r tasks.Request, ranks int) (all []tasks.Request) {
	if r.Coll.HasMatrix() {
		return pairsThatDiffer(r, ranks)
	}
	if !r.Coll.HasCounts() {
		return nil
	}
	for _, count := range []func(i int) int{
		func(i int) int { return []int{3, 0, 11, 1}[i%4] },
		func(i int) int { return 11 * max(0, 1-(i-ranks/2)*(i-ranks/2)) },
	} {
		counts := make([]int, ranks)
		for i := range counts {
			counts[i] = count(i)
		}
		c, err := tasks.NewCounts(counts)
		if err != nil {
			panic(fmt.Sprintf("submoduletest: impossible counts: %v", err))
		}
		r.Counts, r.Count = c, c.Max()
		all = append(all, r)
	}
	return all
}

// pairsThatDiffer are two requests: in one most pairs have nothing for each other and one has
// much more than others; in the other, one rank gives everything.
func pairsThatDiffer(r tasks.Request, ranks int) (all []tasks.Request) {
	for _, count := range []func(from, to int) int{
		func(from, to int) int { return []int{3, 0, 11, 0, 1}[(from+to)%5] + 40*max(0, 1-from-(ranks-1-to)) },
		func(from, to int) int { return 7 * max(0, 1-(from-ranks/2)*(from-ranks/2)) * (to + 1) },
	} {
		rows := make([][]int, ranks)
		for from := range rows {
			for to := range ranks {
				n := count(from, to)
				if r.InPlace { // the same both ways
					n = count(min(from, to), max(from, to))
				}
				rows[from] = append(rows[from], n)
			}
		}
		m, err := tasks.NewMatrix(rows)
		if err != nil {
			panic(fmt.Sprintf("submoduletest: impossible counts: %v", err))
		}
		r.Matrix, r.Count = m, m.Max()
		all = append(all, r)
	}
	return all
}

// levels checks machines with groups of several sizes and levels.
func (u underTest) levels() error {
	requests := append(u.requests(), tasks.Request{Coll: tasks.Barrier})
	for _, spec := range []string{"3", "1x4", "3x1", "3x2", "2x3/rr", "a:3,b:1,c:2", "2x2x2", "2x3x2/rr", "2x2x1x2"} {
		topo, err := levels.Parse(spec)
		if err != nil {
			return err
		}
		for _, r := range requests {
			r.Root = levels.Rank(topo.Size() / 2)
			if r.Coll.HasData() {
				r.Count = submodules.InlineMax/4 + 3
			}
			for _, c := range u.cuts() {
				for _, r := range append(blocksThatDiffer(r, topo.Size()), r) {
					if err := u.onTopology(r, topo, c); err != nil {
						return fmt.Errorf("on %s: %w", spec, err)
					}
				}
			}
		}
	}
	return nil
}

func (u underTest) onTopology(r tasks.Request, topo *levels.Topology, c cut) error {
	h, err := tasks.Hierarchy(r, topo, tasks.Plan{Shape: u.shape(r)})
	if errors.Is(err, tasks.ErrPlan) {
		return nil // rank order over interleaved nodes: no submodule can help
	}
	if err != nil {
		return err
	}
	return u.check(r, h, u.plan(r, h, c))
}

// plan gives the tasks under test to the submodule, wherever it reaches, and all
// others to the star.
func (u underTest) plan(r tasks.Request, h *levels.Hierarchy, c cut) tasks.Plan {
	p := tasks.Plan{Shape: u.shape(r), Segment: c.segment, Window: c.window}
	for k := range h.Depth() {
		sym := h.Level(k).Symbol
		p = p.Set(string(sym), tasks.Choice{Submodule: star{}.Name()})
		if u.sub.Reach() == submodules.Anywhere || h.WithinNodes(k) {
			kind := tasks.Kind{Symbol: sym, Op: u.op}
			p = p.Set(kind.String(), tasks.Choice{Submodule: u.sub.Name(), Algorithm: u.algo.Name, Inner: c.inner, N: u.number})
		}
	}
	return p
}

// check compiles for all ranks, for one of them twice, and proves the programs; or makes sure that all ranks
// refuse a request against the algorithm's restrictions.
func (u underTest) check(r tasks.Request, h *levels.Hierarchy, p tasks.Plan) error {
	reg := submodules.Registry{u.sub, star{}}
	refused := u.isRestricted(r, h)
	progs := make([]*submodules.Program, h.Topology().Size())
	for rank := range progs {
		var err error
		progs[rank], err = submodules.CompileFor(r, h, p, levels.Rank(rank), reg)
		if err != nil && !(refused && errors.Is(err, submodules.ErrUnsupported)) {
			return err
		}
		if refused {
			if err == nil && progs[rank].Len() > 0 {
				return fmt.Errorf("%v with plan %q: compiled, against the algorithm's own restriction", r, p)
			}
		}
	}
	if refused {
		return nil
	}
	one := levels.Rank(len(progs) / 2)
	again, err := submodules.CompileFor(r, h, p, one, reg)
	if err == nil {
		err = same(progs[one], again)
	}
	if err != nil {
		return fmt.Errorf("%v with plan %q: %w", r, p, err)
	}
	_, err = check.Programs(progs)
	return err
}

// isRestricted tells whether the algorithm's restrictions exclude a request on one of its levels.
func (u underTest) isRestricted(r tasks.Request, h *levels.Hierarchy) bool {
	ordered := r.Reduces() && !r.Op.Commutative() && u.op.Reduces() && !u.op.Scans()
	for k := range h.Depth() {
		if h.Widest(k) == 1 && h.Depth() > 1 || u.sub.Reach() == submodules.SharedNode && !h.WithinNodes(k) {
			continue
		}
		needs := func(r submodules.Restriction) bool { return slices.Contains(u.algo.Needs, r) }
		sizes := func(wrong func(n int) bool) bool {
			return slices.ContainsFunc(h.Groups(k), func(g *levels.Group) bool { return wrong(len(g.Ranks)) }) && u.makes(r, h, k)
		}
		switch {
		case ordered && (needs(submodules.NeedsCommutative) || needs(submodules.NeedsRootFirst) && !h.LowestLead(k)) && u.makes(r, h, k),
			needs(submodules.NeedsPowerOfTwo) && (u.op == tasks.Allgather || u.op == tasks.ReduceScatter) && sizes(func(n int) bool { return n&(n-1) != 0 }),
			needs(submodules.NeedsNoData) && u.op == tasks.Allreduce && r.Coll.HasData() && u.makes(r, h, k),
			needs(submodules.NeedsDense) && u.op == tasks.Alltoall && (!r.Matrix.IsZero() || unequal(h, k)) && u.makes(r, h, k),
			needs(submodules.NeedsEven) && u.op == tasks.Allgather && sizes(func(n int) bool { return n > 1 && n%2 != 0 }):
			return true
		}
	}
	return false
}

// unequal reports whether members of a group of a level speak for different numbers of ranks.
func unequal(h *levels.Hierarchy, level int) bool {
	return slices.ContainsFunc(h.Groups(level), func(g *levels.Group) bool {
		return slices.ContainsFunc(g.Ranks, func(r levels.Rank) bool {
			return len(h.Under(r, level)) != len(h.Under(g.Ranks[0], level))
		})
	})
}

// makes tells whether a request has tasks of the operation on a level.
func (u underTest) makes(r tasks.Request, h *levels.Hierarchy, level int) bool {
	g, err := tasks.ExpandOn(r, h, tasks.Plan{Shape: u.shape(r), Segment: tasks.Whole, Window: 1}, 0)
	return err == nil && slices.ContainsFunc(g.Phases, func(p tasks.Phase) bool { return p.Level == level && p.Kind.Op == u.op })
}
