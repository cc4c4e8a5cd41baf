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
	limbs func(size int) []limb // of a place with so many in its tree, the largest first
	paths map[int]Terms         // longest paths by size
	kind  way                   // without an inner segment
	known map[way]int           // counted by [tree.across], by kind
}

// limb is the tree of a child: how many places away it begins, and how many it has.
type limb struct{ places, size int }

// stage returns the stage of an algorithm.
func (t *tree) stage(w *way) (stage, bool) {
	if !w.goesWhole(t.n) || t.size < 2 {
		return stage{}, false
	}
	t.kind = *w
	t.kind.inner = 0
	switch w.Schedule {
	case submodules.DigitTree:
		t.limbs = limbsByDigits(max(w.number, 2))
	case submodules.FanTree:
		t.limbs = limbsOf(max(w.number, 1))
	case submodules.StarTree:
		t.limbs = limbsOf(t.size)
	case submodules.ChainTree:
		t.limbs = limbsOfChains(t.size, max(w.number, 1))
		return t.chainStage(), !isParted(t.op)
	case submodules.HalvingDoubling:
		x := &exchange{group: t.group, lanes: 1, skew: 1}
		x.addRabenseifner(t.n, false)
		return x.stageOfRounds(), t.op == tasks.Reduce
	case submodules.CirculantGraph:
		return t.blockStage(w.inner), true
	default:
		return stage{}, false
	}
	return t.treeStage(), true
}

// limbsByDigits returns the limbs of a tree in digits of a radix.
func limbsByDigits(radix int) func(int) []limb {
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

// limbsOf returns the limbs of a tree with so many children of each place.
func limbsOf(children int) func(int) []limb {
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

// limbsOfChains returns the limbs of so many chains below the root of a tree.
func limbsOfChains(whole, count int) func(int) []limb {
	return func(size int) []limb {
		if size == whole {
			return limbsOf(count)(size)
		}
		return limbsOf(1)(size)
	}
}

// rises reports whether messages go to the root.
func (t *tree) rises() bool { return t.op == tasks.Reduce || t.op == tasks.Gather }

// passOn returns what it takes to pass a limb's message on, from being ready until it is there, and
// for how long the parent's wire and its processor are busy with it.
func (t *tree) passOn(b limb) (hop, busy Terms, wire float64) {
	l, n := t.link, t.n
	if t.ranks > 1 && (b.places < t.ranks || t.isInside()) {
		l = t.near
	}
	if isParted(t.op) {
		n *= float64(b.size)
	}
	hop, busy = l.oneWay(n), Terms{Processor: l.sendTime(n)}
	if n > t.n {
		hop = l.withCredit(hop, n)
	}
	if t.rises() {
		busy.Processor = l.recvTime(n)
	}
	if t.op == tasks.Reduce {
		combines := l.combineTime(n)
		hop.Work, busy.Work = combines, combines
	}
	if l != t.near {
		wire = l.wireTime(n)
	}
	return hop, busy, wire
}

// longestPath returns the longest path below a place with so many in its tree. Messages to its children
// pass its wire and its processor one after the other, in a reduce the smallest trees first.
func (t *tree) longestPath(size int) (path Terms) {
	if size <= 1 {
		return path
	}
	if path, ok := t.paths[size]; ok {
		return path
	}
	limbs := t.limbs(size)
	var before Terms
	for i := range limbs {
		b := limbs[i]
		if t.rises() {
			b = limbs[len(limbs)-1-i]
		}
		hop, busy, wire := t.passOn(b)
		way, wait := hop.plus(t.longestPath(b.size)), later(busy, Terms{Wire: wire})
		switch {
		case t.rises():
			if i > 0 {
				before = before.plus(wait)
			}
			before = later(before, way)
			path = later(path.plus(work(busy.Work)), before)
		default:
			path = later(path, before.plus(way))
			before = before.plus(wait)
		}
	}
	t.paths[size] = path
	return path
}

// loadOf returns what it takes of a place with such limbs to pass on a segment. Unless it is the
// root it hears one too, or sends one: with a part for each of so many places.
func (t *tree) loadOf(limbs []limb, own limb) (l load) {
	for _, b := range limbs {
		_, busy, wire := t.passOn(b)
		l.out, l.busy = l.out+wire, l.busy.plus(busy)
	}
	if own.size > 0 {
		_, busy, wire := t.passOn(own)
		l.in, l.busy = wire, l.busy.plus(Terms{Processor: busy.Processor})
	}
	if t.rises() {
		l.in, l.out = l.out, l.in
	}
	return l
}

// stageOfPath returns the stage of a tree with such a path from the root to the last rank. It takes no less than the
// memory of a node does for all its ranks.
func (t *tree) stageOfPath(path Terms) (s stage) {
	root := t.limbs(t.size)
	own := limb{t.size, 1} // if nobody is below the root
	if len(root) > 0 {
		own = root[0]
	}
	below := t.limbs(own.size)
	s.root, s.inner = t.loadOf(root, limb{}), t.loadOf(below, limb{t.ranks, own.size})
	carried := work(t.memoryTime(float64(t.close-1), 1))
	path, s.root.busy = later(path, carried), later(s.root.busy, carried)
	if isParted(t.op) {
		keep := work(t.copyTime(t.n))
		if len(below) > 0 { // the root packs parts that go the same way
			keep = keep.times(float64(t.size))
		}
		path, s.root.busy = path.plus(keep), s.root.busy.plus(keep)
	}
	s.first, s.lag = t.withCredit(path, t.n), t.askedTime(t.n)
	s.total = float64(t.size-1) * (t.recvTime(t.n) + t.sendTime(t.n) + s.inner.busy.Work)
	return s
}

// treeStage returns the stage of a tree. Ranks of a node have one wire to other nodes.
func (t *tree) treeStage() stage {
	t.paths = map[int]Terms{}
	s := t.stageOfPath(t.longestPath(t.size).plus(work(t.crowdTime())))
	if across := t.across(); across > 1 {
		wire := float64(float64(across) * t.wireTime(t.n))
		s.first = later(s.first, t.oneWay(t.n).plus(Terms{Wire: wire - t.wireTime(t.n)}))
		s.shareWire(wire)
	}
	return s
}

// memoryTime returns what a node's memory takes for messages to so many of its ranks. Large ones are
// copied if they come from the node, as the share near does. Reductions combine.
func (t *tree) memoryTime(ranks, near float64) float64 {
	passes := 0.0
	if t.n > t.eager {
		passes = 2 * near
	}
	if t.op == tasks.Reduce {
		passes += 3
	}
	return passes * t.memory * t.n * ranks
}

// crowdTime returns how much longer it takes to combine because ranks of a node share its memory: half
// of them in the first round, and half as many in each further one.
func (t *tree) crowdTime() (ns float64) {
	for ranks := t.close / 2; ranks > 1 && t.op == tasks.Reduce; ranks /= 2 {
		ns += max(0, float64(3*t.memory*t.n*float64(ranks))-float64(max(t.reduce, 3*t.memory)*t.n))
	}
	return ns
}

// across returns how many messages the busiest node passes on to others, or hears from them, where
// its ranks have one wire. 0: each has its own.
func (t *tree) across() int {
	if t.ranks < 2 || t.isInside() {
		return 0
	}
	if _, ok := t.known[t.kind]; !ok {
		t.known[t.kind] = t.countPassed(func(yield func(from, to int) bool) { t.walkBelow(0, t.size, yield) })
	}
	return t.known[t.kind]
}

// walkBelow goes through the messages below a place with so many in its tree, until yield reports false.
func (t *tree) walkBelow(at, size int, yield func(from, to int) bool) bool {
	for _, b := range t.limbs(size) {
		if !yield(at, at+b.places) || !t.walkBelow(at+b.places, b.size, yield) {
			return false
		}
	}
	return true
}

// chainStage returns the stage of chains. Of each node's ranks the last one passes messages on to
// another node. Each chain leaves a node once, and a node may begin the next one, too.
func (t *tree) chainStage() stage {
	chains := float64(len(t.limbs(t.size)))
	length := math.Ceil(float64(t.size-1) / chains)
	far := math.Ceil(length / float64(t.ranks))
	if t.isInside() {
		far = 0
	}
	across, _, _ := t.passOn(limb{t.ranks, 1})
	inside, busy, wire := t.passOn(limb{1, 1})
	wait := later(busy, Terms{Wire: wire}).times(chains - 1)
	s := t.stageOfPath(wait.plus(across.times(far)).plus(inside.times(length - far)))
	if across := t.across(); across > 0 { // a node's first rank and its last one use its wire
		s.shareWire(float64(across) * t.wireTime(t.n))
		s.inner.busy = later(s.inner.busy, t.loadOf([]limb{{t.ranks, 1}}, limb{1, 1}).busy)
	}
	return s
}

// blockStage returns the stage of a bcast or a reduce on a circulant graph, in blocks of so many bytes.
// The root sends one in every round, or hears one. So many ranks of a node share its wire: in each round
// as many send to another node as the round's skip is long, and no more than there are.
func (t *tree) blockStage(block float64) (s stage) {
	count, depth, far := 1.0, float64(log2(t.size)), 0.0
	if block > 0 && block < t.n {
		count, t.n = math.Ceil(t.n/block), block
	}
	for skip := t.size; skip > 1; {
		skip = (skip + 1) / 2
		far += float64(min(t.ranks, skip))
	}
	hop, root, wire := t.passOn(limb{t.ranks, 1})
	hop.Wire += float64(max(0, far/depth-1) * wire)
	wire *= far / depth
	other := Terms{Processor: t.recvTime(t.n)}
	if t.rises() {
		other.Processor = t.sendTime(t.n)
	}
	busy := root.times(float64(t.size-2) / float64(t.size-1)).plus(other) // a rank passes on all but its own ones
	each := later(later(later(root, busy), Terms{Wire: wire}), work(t.memoryTime(float64(t.close), 1-far/(depth*float64(t.ranks)))))
	turns := count - 1 + depth
	s.first = t.withCredit(hop.times(depth).plus(each.times(count-1)), t.n)
	s.root, s.inner = load{out: turns * wire, busy: root.times(turns)}, load{count * wire, count * wire, each.times(count)}
	if t.rises() {
		s.root.in, s.root.out = s.root.out, 0
	}
	s.lag, s.total = s.first.sum(), float64(t.size-1)*count*busy.sum()
	s.along = (count - 1) * wire
	return s
}
