package price

// tree is a bcast or a reduce along a tree of so many ranks.
type tree struct {
	*link
	size int
	n    float64 // bytes
	lead float64 // goes without credit, bytes
	red  float64 // to combine them, ns; 0: it is a bcast
	hops Terms   // of one message, combined
	next float64 // how long after one message the next one of the same rank comes, ns
	near *tree   // the same between ranks of a node, of whom the group has several; nil: it has one
	each int     // ranks of a node; 1 without near
}

func newTree(l *link, all crowd, size int, n, lead float64, reduces bool) *tree {
	t := &tree{link: l, size: size, n: n, lead: lead, hops: l.hop(n), each: all.ranks}
	if reduces {
		t.red = l.combines(n)
		t.hops.Work += t.red
		t.next = max(l.wire(n), l.receives(n)+t.red)
	} else {
		t.next = max(l.wire(n), l.sends(n))
	}
	if all.ranks > 1 {
		t.near = newTree(all.near, crowd{ranks: 1}, size, n, all.lead, reduces)
	}
	return t
}

// gap returns the terms of a message that waits for i others.
func (t *tree) gap(i float64) Terms {
	if t.wire(t.n) >= t.next {
		return Terms{Wire: i * t.next}
	}
	return Terms{Processor: i * (t.next - t.red), Work: i * t.red}
}

// to returns the tree whose messages go so many places away.
func (t *tree) to(places int) *tree {
	if t.near != nil && (places < t.each || t.size <= t.each) {
		return t.near
	}
	return t
}

// fan is how many messages a rank passes on to other nodes, and to ranks of its own.
type fan struct{ far, near float64 }

// load returns what it takes of a rank to pass on so many messages. Unless it is the root it
// hears one too, or sends one.
func (t *tree) load(f fan, isRoot bool) (l load) {
	add := func(of *tree, count float64) {
		per := of.sends(t.n)
		if t.red > 0 {
			per = of.receives(t.n)
			l.in += count * of.wire(t.n)
		} else {
			l.out += count * of.wire(t.n)
		}
		l.busy = l.busy.plus(Terms{Processor: count * per, Work: count * t.red})
	}
	add(t, f.far)
	if t.near != nil {
		add(t.near, f.near)
	}
	switch {
	case isRoot:
	case t.red > 0:
		l.out += t.wire(t.n)
		l.busy.Processor += t.sends(t.n)
	default:
		l.in += t.wire(t.n)
		l.busy.Processor += t.receives(t.n)
	}
	return l
}

// stage returns a tree's: the path, and the most children of the root and of another rank.
func (t *tree) stage(path Terms, root, inner fan) stage {
	if t.size <= t.each && t.near != nil {
		t.near.each, t = t.each, t.near
		root, inner = fan{far: root.near}, fan{far: inner.near}
	}
	if t.n > t.lead {
		path = path.plus(t.credit())
	}
	s := stage{first: path.plus(work(t.meeting())), lag: t.trip(t.n), root: t.load(root, true), inner: t.load(inner, false)}
	if t.red > 0 {
		s.root.busy = later(s.root.busy, work(float64(t.each-1)*3*contended*3*t.memory*t.n))
	}
	s.total = float64(t.size-1) * (t.receives(t.n) + t.sends(t.n) + t.red)
	return s
}

// meeting returns what it takes more to combine because ranks of a node do so at the same
// time: in each round half as many as before.
func (t *tree) meeting() (ns float64) {
	if t.red > 0 {
		for ranks := t.each / 2; ranks > 1; ranks /= 2 {
			ns += max(0, 3*t.memory*t.n*float64(ranks)-t.red)
		}
	}
	return ns
}

// knomial returns the time of a tree in digits of a radix, which is its longest path.
func (t *tree) knomial(radix int) Terms {
	return t.below(t.size, map[int]Terms{1: {}}, radix)
}

// below returns the longest path below a rank with a tree of some size. Messages to it
// pass its wire and its processor one after the other. Known paths are by size.
func (t *tree) below(size int, known map[int]Terms, radix int) (path Terms) {
	if path, ok := known[size]; ok {
		return path
	}
	last := 1
	for last*radix < size {
		last *= radix
	}
	var before Terms
	if t.red > 0 { // the smallest trees first: each is combined after those before
		for unit := 1; unit < size; unit *= radix {
			for digit := 1; digit < radix && digit*unit < size; digit++ {
				via := t.to(digit * unit)
				if unit > 1 || digit > 1 {
					before = before.plus(via.gap(1))
				}
				before = later(before, via.hops.plus(t.below(min(unit, size-digit*unit), known, radix)))
				path = later(path.plus(work(t.red)), before)
			}
		}
	} else {
		all := t.n > turn // children take turns: each has all of it when all have
		if f := t.fans(size, radix); all {
			before = t.gap(f.far)
			if t.near != nil {
				before = before.plus(t.near.gap(f.near))
			}
		}
		for unit := last; unit >= 1; unit /= radix {
			for digit := min(radix-1, (size-1)/unit); digit >= 1; digit-- {
				via := t.to(digit * unit)
				below := t.below(min(unit, size-digit*unit), known, radix)
				if all {
					path = later(path, before.plus(via.gap(-1)).plus(via.hops).plus(below))
					continue
				}
				path = later(path, before.plus(via.hops).plus(below))
				before = before.plus(via.gap(1))
			}
		}
	}
	known[size] = path
	return path
}

// fans counts the children of a place in digits of a radix with so many places below it.
func (t *tree) fans(size, radix int) (f fan) {
	for unit := 1; unit < size; unit *= radix {
		for digit := 1; digit < radix && digit*unit < size; digit++ {
			if t.to(digit*unit) == t {
				f.far++
			} else {
				f.near++
			}
		}
	}
	return f
}

// radix returns the stage of a tree in digits of a radix.
func (t *tree) radix(radix int) stage {
	last := 1
	for last*radix < t.size {
		last *= radix
	}
	return t.stage(t.knomial(radix), t.fans(t.size, radix), t.fans(last, radix))
}

// spread returns the stage of a tree in which each rank has so many children.
func (t *tree) spread(children int) stage {
	inner := fan{far: float64(min(children, max(0, (t.size-1-children)/children)))}
	return t.stage(t.halved(t.size, children, map[int]Terms{}), fan{far: float64(min(children, t.size-1))}, inner)
}

// halved returns the longest path of a tree of ranks with so many children each.
func (t *tree) halved(size, children int, known map[int]Terms) (path Terms) {
	if size <= 1 {
		return Terms{}
	}
	if path, ok := known[size]; ok {
		return path
	}
	kids := min(children, size-1)
	for i := range kids { // the first ones lead one more than the others, or as many
		next := t.hops.plus(t.halved((size-1+kids-1-i)/kids, children, known))
		switch {
		case i == 0:
			path = next
		case t.red > 0:
			path = later(path.plus(t.gap(1)), next)
		default:
			path = later(path, t.gap(float64(i)).plus(next))
		}
	}
	known[size] = path
	return path
}

func (t *tree) kchain(chains int) stage {
	below := min(chains, t.size-1)
	path := t.gap(float64(below - 1)).plus(t.hops.times(float64((t.size - 1 + below - 1) / below)))
	return t.stage(path, fan{far: float64(below)}, fan{far: 1})
}

func (t *tree) chain() stage {
	path, inner := t.hops.times(float64(t.size-1)), fan{}
	if t.size > 2 {
		inner.far = 1
	}
	if t.near == nil {
		return t.stage(path, fan{far: 1}, inner)
	}
	across := float64((t.size+t.each-1)/t.each - 1)
	path = t.hops.times(across).plus(t.near.hops.times(float64(t.size-1) - across))
	if across == 0 {
		return t.stage(path, fan{near: 1}, fan{near: inner.far})
	}
	s := t.stage(path, fan{near: 1}, fan{near: inner.far})
	wire, far := t.wire(t.n), t.load(fan{far: inner.far}, false)
	if t.red > 0 { // the node's first rank sends to the node before
		s.root.in, s.inner.out = wire, wire
		far.busy.Processor += t.near.sends(t.n) - t.sends(t.n)
	} else {
		s.root.out, s.inner.in = wire, wire
		far.busy.Processor += t.near.receives(t.n) - t.receives(t.n)
	}
	if across > 1 {
		s.inner.in, s.inner.out = wire, wire
	}
	s.inner.busy = later(s.inner.busy, far.busy)
	return s
}

// linear has rounds in a reduce of package nbc: then each message needs credit for itself.
func (t *tree) linear(rounds bool) stage {
	path := t.hops.plus(t.gap(float64(t.size - 2)))
	if rounds && t.red > 0 && t.n > t.lead {
		path = t.hops.plus(t.credit()).times(float64(t.size - 1))
	}
	return t.stage(path, fan{far: float64(t.size - 1)}, fan{})
}
