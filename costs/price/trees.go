package price

import (
	"math"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// tree passes messages along a tree of so many ranks: down in a bcast or a scatter, and up in a
// reduce or a gather.
type tree struct {
	group
	n     float64 // bytes of a message, or of each rank's part
	op    tasks.Collective
	limbs func(size int) []limb // of a place whose tree has so many places, the largest first
	known map[int]Terms         // longest paths by size
	kind  way                   // without an inner segment
	count map[way]int           // of what [tree.across] has counted, by kind
}

// limb is the tree of a child: how many places away it begins, and how many it has.
type limb struct{ places, size int }

// rises reports whether messages go to the root.
func (t *tree) rises() bool { return t.op == tasks.Reduce || t.op == tasks.Gather }

// edge returns what it takes to pass a limb's message on, from being ready until it is there, and
// for how long the parent's wire and its processor are busy with it.
func (t *tree) edge(b limb) (hop, busy Terms, wire float64) {
	l, n, lead := t.link, t.n, t.lead
	if t.ranks > 1 && (b.places < t.ranks || t.size <= t.ranks) {
		l, lead = t.near, t.early
	}
	if t.op == tasks.Gather || t.op == tasks.Scatter {
		n *= float64(b.size)
	}
	hop, busy = l.hop(n), Terms{Processor: l.sends(n)}
	if n > lead && n > t.n {
		hop = hop.plus(l.credit())
	}
	if t.rises() {
		busy.Processor = l.receives(n)
	}
	if t.op == tasks.Reduce {
		combines := l.combines(n)
		hop.Work, busy.Work = combines, combines
	}
	if l != t.near {
		wire = l.wire(n)
	}
	return hop, busy, wire
}

// path returns the longest path below a place whose tree has so many. Messages to its children
// pass its wire and its processor one after the other, large ones in turns: then all have
// theirs when the last one has. In a reduce the smallest trees are combined first.
func (t *tree) path(size int) (path Terms) {
	if size <= 1 {
		return path
	}
	if path, ok := t.known[size]; ok {
		return path
	}
	limbs := t.limbs(size)
	var before Terms
	for i := range limbs {
		b := limbs[i]
		if t.rises() {
			b = limbs[len(limbs)-1-i]
		}
		hop, busy, wire := t.edge(b)
		way, wait := hop.plus(t.path(b.size)), later(busy, Terms{Wire: wire})
		switch {
		case t.rises():
			if i > 0 {
				before = before.plus(wait)
			}
			before = later(before, way)
			path = later(path.plus(work(busy.Work)), before)
		case t.n > turn:
			path = later(path, way.plus(wait.times(float64(len(limbs)-1))))
		default:
			path = later(path, before.plus(way))
			before = before.plus(wait)
		}
	}
	t.known[size] = path
	return path
}

// turn is what a message may have on the wire before others have a turn, bytes.
const turn = 128 << 10

// load returns what it takes of a place with such limbs to pass on a segment. Unless it is the
// root it hears one too, or sends one: with a part for each of so many places.
func (t *tree) load(limbs []limb, own limb) (l load) {
	for _, b := range limbs {
		_, busy, wire := t.edge(b)
		l.out, l.busy = l.out+wire, l.busy.plus(busy)
	}
	if own.size > 0 {
		_, busy, wire := t.edge(own)
		l.in, l.busy = wire, l.busy.plus(Terms{Processor: busy.Processor})
	}
	if t.rises() {
		l.in, l.out = l.out, l.in
	}
	return l
}

// loads returns those of a tree with such a path from the root to the last rank.
func (t *tree) loads(path Terms, root []limb) (s stage) {
	own := limb{t.size, 1}
	if len(root) > 0 {
		own = root[0]
	}
	s.root, s.inner = t.load(root, limb{}), t.load(t.limbs(own.size), limb{t.ranks, own.size})
	s.root.busy = later(s.root.busy, work(t.carried(t.n, float64(t.close-1), 1)))
	if t.op == tasks.Gather || t.op == tasks.Scatter {
		keep := work(t.copies(t.n))
		if len(t.limbs(own.size)) > 0 { // the root packs what goes the same way
			keep = keep.times(float64(t.size))
		}
		path, s.root.busy = path.plus(keep), s.root.busy.plus(keep)
	}
	if t.n > t.lead {
		path = path.plus(t.credit())
	}
	s.first, s.lag = path, t.trip(t.n)
	s.total = float64(t.size-1) * (t.receives(t.n) + t.sends(t.n) + s.inner.busy.Work)
	return s
}

// grown returns the stage of a tree whose places have such limbs. All that a node's ranks pass on
// to other nodes goes over its wire.
func (t *tree) grown(limbs func(size int) []limb) stage {
	t.limbs, t.known = limbs, map[int]Terms{}
	s := t.loads(t.path(t.size).plus(work(t.meeting())), limbs(t.size))
	if across := t.across(); across > 1 {
		wire := float64(across) * t.wire(t.n)
		s.first = later(s.first, t.hop(t.n).plus(Terms{Wire: wire - t.wire(t.n)}))
		for _, l := range []*load{&s.root, &s.inner} {
			l.in, l.out = max(l.in, wire), max(l.out, wire)
		}
	}
	return s
}

// carried returns what a node's memory takes for messages of n bytes to so many of its ranks: large ones
// are copied if they come from the node, as such a share does, and reductions combine.
func (t *tree) carried(n, ranks, near float64) float64 {
	passes := 0.0
	if n > t.eager {
		passes = 2 * near
	}
	if t.op == tasks.Reduce {
		passes += 3
	}
	return passes * t.memory * n * ranks
}

// meeting returns what it takes more to combine because ranks of a node share its memory: half of
// them do so in the first round, and half as many in each further one.
func (t *tree) meeting() (ns float64) {
	for ranks := t.close / 2; ranks > 1 && t.op == tasks.Reduce; ranks /= 2 {
		ns += max(0, 3*t.memory*t.n*float64(ranks)-max(t.reduce, 3*t.memory)*t.n)
	}
	return ns
}

// across returns how many messages the busiest node passes on to others, or hears from them, where
// its ranks have one wire. 0: each has its own.
func (t *tree) across() int {
	if t.ranks < 2 || t.size <= t.ranks {
		return 0
	}
	if n, known := t.count[t.kind]; known {
		return n
	}
	t.count[t.kind] = t.passed(func(yield func(from, to int) bool) { t.walk(0, t.size, yield) })
	return t.count[t.kind]
}

// walk goes through the messages below a place whose tree has so many, as long as yield reports true.
func (t *tree) walk(at, size int, yield func(from, to int) bool) bool {
	for _, b := range t.limbs(size) {
		if !yield(at, at+b.places) || !t.walk(at+b.places, b.size, yield) {
			return false
		}
	}
	return true
}

// digits are the limbs of a tree in digits of a radix.
func digits(radix int) func(int) []limb {
	return func(size int) (all []limb) {
		last := 1
		for last*radix < size {
			last *= radix
		}
		for unit := last; unit >= 1; unit /= radix {
			for digit := min(radix-1, (size-1)/unit); digit >= 1; digit-- {
				all = append(all, limb{digit * unit, min(unit, size-digit*unit)})
			}
		}
		return all
	}
}

// evenly are the limbs of a tree whose places have so many children each.
func evenly(children int) func(int) []limb {
	return func(size int) (all []limb) {
		kids, at := min(children, size-1), 1
		for i := range kids { // the first ones lead one more than the others, or as many
			n := (size - 1 + kids - 1 - i) / kids
			all = append(all, limb{at, n})
			at += n
		}
		return all
	}
}

// chains is so many chains below the root. Of each node's ranks the last one passes messages
// on to another node.
func (t *tree) chains(count int) stage {
	length := math.Ceil(float64(t.size-1) / float64(count))
	t.limbs = func(size int) []limb {
		if size == 1 {
			return nil
		}
		return []limb{{1, size - 1}}
	}
	far := math.Ceil(length / float64(t.ranks))
	if t.size <= t.ranks {
		far = 0
	}
	root := evenly(count)(t.size)
	across, _, _ := t.edge(limb{t.ranks, 1})
	inside, busy, wire := t.edge(limb{1, 1})
	wait := later(busy, Terms{Wire: wire}).times(float64(len(root) - 1))
	s := t.loads(wait.plus(across.times(far)).plus(inside.times(length-far)), root)
	if t.ranks > 1 && far > 0 { // a node's first rank and its last one use its wire
		last := t.load([]limb{{t.ranks, 1}}, limb{1, 1})
		wire := float64(t.meetings(root)) * t.wire(t.n)
		for _, l := range []*load{&s.root, &s.inner} {
			l.in, l.out = max(l.in, wire), max(l.out, wire)
		}
		s.inner.busy = later(s.inner.busy, last.busy)
	}
	return s
}

// meetings returns how many messages of chains the busiest node passes on to others: each chain leaves a
// node once, but the one in which the next begins hears from the root, too.
func (t *tree) meetings(chains []limb) int {
	return t.passed(func(yield func(from, to int) bool) {
		for _, c := range chains {
			for at, from := c.places, 0; at < c.places+c.size; at, from = at+1, at {
				if !yield(from, at) {
					return
				}
			}
		}
	})
}

// stage returns what an algorithm takes.
func (t *tree) stage(w *way) (stage, bool) {
	if !w.goesWhole(t.n) || t.size < 2 {
		return stage{}, false
	}
	parted := t.op == tasks.Gather || t.op == tasks.Scatter
	t.kind = *w
	t.kind.inner = 0
	switch w.Schedule {
	case submodules.DigitTree:
		return t.grown(digits(max(w.number, 2))), true
	case submodules.FanTree:
		return t.grown(evenly(w.number)), true
	case submodules.StarTree:
		return t.grown(evenly(t.size)), true
	case submodules.ChainTree:
		return t.chains(max(w.number, 1)), !parted
	case submodules.HalvingDoubling:
		x := &exchange{group: t.group, lanes: 1, skew: 1}
		x.rabenseifner(t.n, false)
		return x.loads(), t.op == tasks.Reduce
	case submodules.CirculantGraph:
		return t.blocks(w.inner), true
	}
	return stage{}, false
}

// blocks is a bcast or a reduce on a circulant graph, in blocks of so many bytes. The root
// sends one in every round, or hears one. So many ranks of a node share its wire: in each round
// as many send to another node as the round's skip is long, and no more than there are.
func (t *tree) blocks(block float64) (s stage) {
	count, depth, far := 1.0, float64(log2(t.size)), 0.0
	if block > 0 && block < t.n {
		count, t.n = math.Ceil(t.n/block), block
	}
	for skip := t.size; skip > 1; {
		skip = (skip + 1) / 2
		far += float64(min(t.ranks, skip))
	}
	hop, root, wire := t.edge(limb{t.ranks, 1})
	hop.Wire += max(0, far/depth-1) * wire
	wire *= far / depth
	other := Terms{Processor: t.receives(t.n)}
	if t.rises() {
		other.Processor = t.sends(t.n)
	}
	busy := root.times(float64(t.size-2) / float64(t.size-1)).plus(other) // a rank passes on all but its own ones
	each := later(later(later(root, busy), Terms{Wire: wire}), work(t.carried(t.n, float64(t.close), 1-far/(depth*float64(t.ranks)))))
	s.first = hop.times(depth).plus(each.times(count - 1))
	if t.n > t.lead {
		s.first = s.first.plus(t.credit())
	}
	turns := count - 1 + depth
	s.root, s.inner = load{out: turns * wire, busy: root.times(turns)}, load{count * wire, count * wire, each.times(count)}
	if t.rises() {
		s.root.in, s.root.out = s.root.out, 0
	}
	s.lag, s.total = s.first.sum(), float64(t.size-1)*s.inner.busy.sum()
	return s
}
