package submoduletest

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// flows are the parts that n ranks send each other, of n parts together. Rank 0 leads.
type flows struct {
	n   int
	all map[edge]float64
}

func (f *flows) send(from, to int, parts float64) {
	f.all[edge{levels.Rank(from % f.n), levels.Rank(to % f.n)}] += parts
}

// shift has each rank send to the one so many places ahead.
func (f *flows) shift(places int, parts float64) {
	for r := range f.n {
		f.send(r, r+places, parts)
	}
}

// flowsOf returns the flows of a schedule among n ranks, by an algorithm's number; false if the
// operation has no such schedule.
func flowsOf(s submodules.Schedule, op tasks.Collective, n, number int) (flows, bool) {
	f := flows{n, map[edge]float64{}}
	switch s {
	case submodules.DigitTree, submodules.FanTree, submodules.ChainTree, submodules.StarTree:
		f.tree(parents(s, n, number), op)
	case submodules.AroundRing:
		rounds := n - 1
		if op == tasks.Allreduce {
			rounds *= 2
		}
		f.shift(1, float64(rounds))
	case submodules.RecursiveDoubling, submodules.HalvingDoubling:
		f.fold(s, op, max(number, 2))
	case submodules.RecursiveHalving:
		f.pairs(n, func(distance int) float64 { return float64(distance) })
	case submodules.CirculantGraph:
		f.circulant(op)
	case submodules.DistanceDoubling:
		f.distances(op, max(number, 2))
	case submodules.NeighborExchange:
		for r := range n {
			side := 1 - r%2*2
			f.send(r, r+n+side, 1)
			for i := 1; i < n/2; i++ {
				side = -side
				f.send(r, r+n+side, 2)
			}
		}
	case submodules.AllAtOnce, submodules.OneByOne:
		for places := 1; places < n; places++ {
			f.shift(places, 1)
		}
	default:
		return f, false
	}
	return f, true
}

// parents lists those of a tree's places; the root's is -1.
func parents(s submodules.Schedule, n, number int) []int {
	all := make([]int, n)
	all[0] = -1
	switch s {
	case submodules.DigitTree:
		for place := 1; place < n; place++ { // without its last digit above 0
			unit := 1
			for place/unit%max(number, 2) == 0 {
				unit *= max(number, 2)
			}
			all[place] = place - place/unit%max(number, 2)*unit
		}
	case submodules.FanTree:
		below(all, 0, n, number, number)
	case submodules.ChainTree:
		below(all, 0, n, max(number, 1), 1)
	}
	return all // of a star
}

// below divides the places behind one among its children, as equally as can be.
func below(all []int, at, size, children, further int) {
	first, runs := at+1, min(children, size-1)
	for i := range runs {
		count := (size - 1 + runs - 1 - i) / runs
		all[first] = at
		below(all, first, count, further, further)
		first += count
	}
}

// tree has all places send along their edge: the data for all, or in a gather or a scatter the
// parts below it.
func (f *flows) tree(parents []int, op tasks.Collective) {
	parts := make([]float64, f.n)
	for place := f.n - 1; place > 0; place-- {
		if parts[place]++; op == tasks.Gather || op == tasks.Scatter {
			parts[parents[place]] += parts[place]
		}
	}
	for place, parent := range parents {
		switch sent := parts[place]; {
		case parent < 0:
		case op == tasks.Gather:
			f.send(place, parent, sent)
		case op == tasks.Scatter:
			f.send(parent, place, sent)
		case op == tasks.Reduce:
			f.send(place, parent, float64(f.n))
		default:
			f.send(parent, place, float64(f.n))
		}
	}
}

// pairs has the first so many ranks exchange parts at distances of powers of two.
func (f *flows) pairs(members int, parts func(distance int) float64) {
	for distance := 1; distance < members; distance *= 2 {
		for r := range members {
			if r^distance < members {
				f.send(r, r^distance, parts(distance))
			}
		}
	}
}

// fold is an exchange of pairs, or of all that differ in a digit of a radix. Each rank beyond a power of two hands its
// data over to one of the others first.
func (f *flows) fold(s submodules.Schedule, op tasks.Collective, radix int) {
	members, all := 1, float64(f.n)
	for members*2 <= f.n {
		members *= 2
	}
	switch {
	case op == tasks.Allgather:
		f.pairs(members, func(distance int) float64 { return float64(distance) })
	case op.Scans():
		f.pairs(f.n, func(int) float64 { return all })
		return
	case s == submodules.RecursiveDoubling:
		for unit := 1; unit < members; unit *= radix {
			for r := range members {
				for digit := range min(radix, members/unit) {
					if other := r + (digit-r/unit%radix)*unit; other != r {
						f.send(r, other, all)
					}
				}
			}
		}
	case op == tasks.Reduce: // halves, then a gather from all but the leader
		f.pairs(members, func(distance int) float64 { return all / float64(2*distance) })
		for r := 1; r < members; r++ {
			highest := 1
			for highest*2 <= r {
				highest *= 2
			}
			f.send(r, r-highest, all/float64(2*highest))
		}
	default:
		f.pairs(members, func(distance int) float64 { return all / float64(distance) })
	}
	for r := members; r < f.n; r++ {
		f.send(r, r-members, all)
		if op != tasks.Reduce {
			f.send(r-members, r, all)
		}
	}
}

// circulant sends over skips, each half of the next one, rounded up.
func (f *flows) circulant(op tasks.Collective) {
	skips := []int{f.n}
	for skips[0] > 1 {
		skips = slices.Insert(skips, 0, (skips[0]+1)/2)
	}
	for k, skip := range skips[:len(skips)-1] {
		parts := skips[k+1] - skip
		switch op {
		case tasks.Bcast, tasks.Reduce:
			for r := range parts {
				f.send(r, r+skip, float64(f.n))
			}
		case tasks.Allreduce:
			f.shift(skip, float64(parts))
			f.shift(f.n-skip, float64(parts))
		default:
			f.shift(skip, float64(parts))
		}
	}
	if op == tasks.Reduce {
		back := map[edge]float64{}
		for e, parts := range f.all {
			back[edge{e[1], e[0]}] = parts
		}
		f.all = back
	}
}

// distances sends all of a rank's data, or the blocks with a digit in their way; or nothing, to
// tell.
func (f *flows) distances(op tasks.Collective, radix int) {
	if op == tasks.Allgather {
		radix = 2
	}
	for unit := 1; unit < f.n; unit *= radix {
		for digit := 1; digit < radix && digit*unit < f.n; digit++ {
			parts := 0
			for way := range f.n {
				if way/unit%radix == digit {
					parts++
				}
			}
			switch op {
			case tasks.Allreduce:
				parts = 0
			case tasks.Allgather:
				parts = min(unit, f.n-unit)
			}
			f.shift(digit*unit, float64(parts))
		}
	}
}

// profile lists the parts that each rank sends and hears, under any numbering of ranks.
func (f *flows) profile() (all [][]float64) {
	sent, heard := make([][]float64, f.n), make([][]float64, f.n)
	for e, parts := range f.all {
		sent[e[0]], heard[e[1]] = append(sent[e[0]], parts), append(heard[e[1]], parts)
	}
	for r := range f.n {
		slices.Sort(sent[r])
		slices.Sort(heard[r])
		all = append(all, slices.Concat(sent[r], []float64{-1}, heard[r]))
	}
	slices.SortFunc(all, slices.Compare[[]float64])
	return all
}

// schedule holds an operation's schedule against the messages of programs of groups of many
// sizes, by all numbers worth a search.
func (u underTest) schedule() error {
	says := u.algo.Traffic[u.op]
	if says.Schedule == 0 {
		return nil
	}
	for _, number := range append([]int{0}, u.algo.Number.Worth...) {
		for _, n := range traitSizes {
			progs, err := u.compilePrograms(n, 0, cut{tasks.Whole, 1, 0}, number)
			if err != nil {
				return err
			}
			if progs == nil {
				continue
			}
			got := u.flows(progs)
			want, known := flowsOf(says.Schedule, u.op, got.n, cmp.Or(number, u.algo.Number.Usual))
			if !known || !slices.EqualFunc(want.profile(), got.profile(), slices.Equal[[]float64]) {
				return fmt.Errorf("its schedule is said to be %v: %d ranks then send and hear %v, but do %v", says.Schedule, got.n, want.profile(), got.profile())
			}
			if err := u.atOnce(progs); err != nil {
				return err
			}
		}
	}
	return nil
}

// flows are those of programs, among the ranks of u's tasks.
func (u underTest) flows(progs []*submodules.Program) flows {
	f, places := flows{all: map[edge]float64{}}, map[levels.Rank]levels.Rank{}
	place := func(r levels.Rank) levels.Rank {
		if _, known := places[r]; !known {
			places[r] = levels.Rank(len(places))
		}
		return places[r]
	}
	parts := 1.0
	for e, bytes := range u.edges(progs) {
		f.all[edge{place(e[0]), place(e[1])}] = float64(bytes)
	}
	f.n = len(places)
	switch progs[0].Request.Coll {
	case tasks.Gather, tasks.Scatter, tasks.Allgather, tasks.Alltoall, tasks.Neighbors: // of one rank each
	default:
		parts = float64(f.n)
	}
	for e, bytes := range f.all { // each rank of the world has 64 elements of 4 bytes of each
		f.all[e] = bytes * parts / float64(256*len(progs))
	}
	return f
}

// atOnce holds AtOnce against the partners whose messages a rank expects before any other has
// come, for schedules that leave it open.
func (u underTest) atOnce(progs []*submodules.Program) error {
	says, most := u.algo.Traffic[u.op], 0
	want := len(progs) - 1
	switch {
	case says.Schedule == submodules.OneByOne:
		want = 1
	case says.Schedule != submodules.AllAtOnce:
		return nil
	case says.AtOnce > 0:
		want = min(want, says.AtOnce)
	}
	for _, p := range progs {
		partners, waits := map[int32]bool{}, make([]bool, p.Len())
		for id := range dag.ID(p.Len()) {
			s := p.Step(id)
			if s.Kind == submodules.RecvStep && !waits[id] && p.Task(s).Kind.Op == u.op {
				partners[s.Peer] = true
			}
			for _, next := range p.Succ(id) {
				waits[next] = waits[next] || waits[id] || s.Peer >= 0 && p.Task(s).Kind.Op == u.op
			}
		}
		most = max(most, len(partners))
	}
	if most != want {
		return fmt.Errorf("a rank is said to expect messages of %d partners at once, but expects those of %d", want, most)
	}
	return nil
}

// hand holds Handed against the slots and the shared memory of programs with more data than goes
// in one line.
func (u underTest) hand() error {
	progs, err := u.whole(4, 0)
	if err != nil || progs == nil {
		return err
	}
	got := submodules.ByLink
	if u.sub.Reach() == submodules.SharedNode {
		got = submodules.Posted
	}
	for _, p := range progs {
		if p.Slots > 0 {
			got = submodules.Slotted
		}
		if slices.ContainsFunc(p.Steps(), func(s submodules.Step) bool { return s.Kind == submodules.ShareStep }) {
			got = submodules.Read
		}
	}
	if got != u.algo.Handed {
		return fmt.Errorf("the trait Handed is %v, but data is %v", u.algo.Handed, got)
	}
	return nil
}
