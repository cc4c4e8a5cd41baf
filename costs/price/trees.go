package price

// tree is a bcast or a reduce along a tree of so many ranks.
type tree struct {
	*link
	n    float64 // bytes
	red  float64 // to combine them, ns; 0: it is a bcast
	hops Terms   // of one message, combined
	next float64 // how long after one message the next one of the same rank comes, ns
}

func newTree(l *link, n float64, reduces bool) tree {
	t := tree{link: l, n: n, hops: l.hop(n)}
	if reduces {
		t.red = l.combines(n)
		t.hops.Work += t.red
		t.next = max(l.wire(n), l.receives(n)+t.red)
	} else {
		t.next = max(l.wire(n), l.sends(n))
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

// stage returns a tree's: the path, and the most children of the root and of another rank.
func (t *tree) stage(path Terms, root, inner, size float64, lead float64) stage {
	if t.n > lead {
		path = path.plus(t.credit())
	}
	s := stage{first: path, lag: t.trip(t.n)}
	wire, up, down := t.wire(t.n), t.receives(t.n), t.sends(t.n)
	if t.red > 0 {
		up, down = down, up
		s.root.in, s.inner.in, s.inner.out = root*wire, inner*wire, wire
	} else {
		s.root.out, s.inner.out, s.inner.in = root*wire, inner*wire, wire
	}
	s.root.busy = Terms{Processor: root * down, Work: root * t.red}
	s.inner.busy = Terms{Processor: up + inner*down, Work: inner * t.red}
	s.total = (size - 1) * (up + down + t.red)
	return s
}

// knomial returns the time of a tree in digits of a radix: the longest path.
func (t *tree) knomial(size, radix int) Terms {
	if size <= 1 {
		return Terms{}
	}
	return t.knomialBelow(size, map[int]Terms{}, radix)
}

// over returns the longest path below a rank whose children have trees of some sizes.
// Messages to it pass its wire and its processor one after the other.
func (t *tree) over(kids []int, known map[int]Terms, radix int) (path Terms) {
	var come Terms
	for i, size := range kids {
		below, ok := known[size]
		if !ok && size > 1 {
			below = t.knomialBelow(size, known, radix)
		}
		if t.red > 0 { // it is combined after those before
			if i > 0 {
				come = come.plus(t.gap(1))
			}
			come = later(come, t.hops.plus(below))
			path = later(path.plus(work(t.red)), come)
			continue
		}
		path = later(path, t.gap(float64(len(kids)-1-i)).plus(t.hops).plus(below))
	}
	return path
}

// knomialBelow is knomial with the paths that are known, by size.
func (t *tree) knomialBelow(size int, known map[int]Terms, radix int) Terms {
	var kids []int // sizes of their trees, the smallest first
	for unit := 1; unit < size; unit *= radix {
		for digit := 1; digit < radix && digit*unit < size; digit++ {
			kids = append(kids, min(unit, size-digit*unit))
		}
	}
	known[size] = t.over(kids, known, radix)
	return known[size]
}

// binomial, binary, kchain, chain and linear return the stages of trees.
func (t *tree) binomial(size int, lead float64) stage {
	d := float64(log2(size))
	return t.stage(t.knomial(size, 2), d, max(0, d-1), float64(size), lead)
}

func (t *tree) radix(size, radix int, lead float64) stage {
	kids := 0.0
	for unit := 1; unit < size; unit *= radix {
		kids += float64(min(radix-1, (size-1)/unit))
	}
	return t.stage(t.knomial(size, radix), kids, max(0, kids-float64(radix-1)), float64(size), lead)
}

func (t *tree) binary(size int, lead float64) stage {
	return t.stage(t.halved(size, map[int]Terms{}), min(2, float64(size-1)), min(2, float64((size-1)/2)), float64(size), lead)
}

// halved returns the longest path of a binary tree.
func (t *tree) halved(size int, known map[int]Terms) Terms {
	if size <= 1 {
		return Terms{}
	}
	path, ok := known[size]
	if ok {
		return path
	}
	path = t.hops.plus(t.halved(size/2, known)) // the first child leads one more than the second, or as many
	if size > 2 {
		second := t.hops.plus(t.halved((size-1)/2, known))
		if t.red > 0 {
			path = later(path.plus(t.gap(1)), second)
		} else {
			path = later(path, t.gap(1).plus(second))
		}
	}
	known[size] = path
	return path
}

// chains are how many chains there are below the root of a kchain.
const chains = 4

func (t *tree) kchain(size int, lead float64) stage {
	below := min(chains, size-1)
	path := t.gap(float64(below - 1)).plus(t.hops.times(float64((size - 1 + below - 1) / below)))
	return t.stage(path, float64(below), 1, float64(size), lead)
}

func (t *tree) chain(size int, lead float64) stage {
	inner := 0.0
	if size > 2 {
		inner = 1
	}
	return t.stage(t.hops.times(float64(size-1)), 1, inner, float64(size), lead)
}

// linear has rounds in a reduce: then each message needs credit for itself.
func (t *tree) linear(size int, lead float64) stage {
	path := t.hops.plus(t.gap(float64(size - 2)))
	if t.red > 0 && t.n > lead {
		path = t.hops.plus(t.credit()).times(float64(size - 1))
	}
	return t.stage(path, float64(size-1), 0, float64(size), lead)
}
