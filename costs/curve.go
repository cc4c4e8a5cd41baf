package costs

import (
	"cmp"
	"math"
	"slices"
)

// Curve is a [Book]'s knowledge of a unit for segments of any size. It grows with the book.
type Curve struct {
	points []point // the smallest first
}

// point is a measurement of a unit.
type point struct {
	bytes int64   // of a segment
	alone float64 // one segment, ns
	end   float64 // until all segments were complete, ns
	count int     // segments
}

// Curve returns the curve of a unit. The segment of the key doesn't matter. The curve has no points
// until the book gets some.
func (b *Book) Curve(k Key) *Curve {
	k.Segment = 0
	c := b.curves[k]
	if c == nil {
		if b.curves == nil {
			b.curves = map[Key]*Curve{}
		}
		c = &Curve{}
		b.curves[k] = c
	}
	return c
}

// addGroup enters a pipeline of one group of ranks.
func (c *Curve) addGroup(k Key, p Pipeline) {
	if len(p.Leaders) != 1 {
		return // of a plan, not of a unit
	}
	l := p.Leaders[0]
	one := point{bytes: k.Segment, alone: l.Alone, end: l.lastEnd(), count: len(l.Done)}
	at, known := c.findPoint(k.Segment)
	if !known {
		c.points = slices.Insert(c.points, at, one)
	}
	c.points[at] = one
}

func (c *Curve) findPoint(bytes int64) (at int, known bool) {
	return slices.BinarySearchFunc(c.points, bytes, func(p point, n int64) int { return cmp.Compare(p.bytes, n) })
}

// Sizes lists the measured segments, the smallest first, bytes.
func (c *Curve) Sizes() (all []int64) {
	for _, p := range c.points {
		all = append(all, p.bytes)
	}
	return all
}

// Around returns the measured sizes next to some bytes, from below and above: both are
// bytes if that was measured. 0 from below or above: there is none.
func (c *Curve) Around(bytes int64) (below, above int64) {
	at, known := c.findPoint(bytes)
	if known {
		return bytes, bytes
	}
	if at > 0 {
		below = c.points[at-1].bytes
	}
	if at < len(c.points) {
		above = c.points[at].bytes
	}
	return below, above
}

// valueAt returns a number for some bytes: on the line through the nearest two points, beyond
// the last through the last two. Of below the first it is the first's. It is false without
// any point. of must be positive.
func (c *Curve) valueAt(bytes int64, of func(p *point) float64) (float64, bool) {
	at, known := c.findPoint(bytes)
	n := len(c.points)
	switch {
	case n == 0:
		return 0, false
	case known || at == 0:
		return of(&c.points[at]), true
	case at == n && n == 1:
		return of(&c.points[0]), true
	}
	at = min(at, n-1)
	low, high := &c.points[at-1], &c.points[at]
	from, to := of(low), of(high)
	part := float64(bytes-low.bytes) / float64(high.bytes-low.bytes)
	return max(float64((1-part)*from)+float64(part*to), min(from, to)/2), true
}

// Alone returns the time of one segment, ns. Beyond a single measured size it grows with the bytes:
// rather too much than too little.
func (c *Curve) Alone(bytes int64) (float64, bool) {
	ns, known := c.valueAt(bytes, func(p *point) float64 { return p.alone })
	if len(c.points) == 1 {
		ns *= max(1, float64(bytes)/float64(max(c.points[0].bytes, 1)))
	}
	return ns, known
}

// Bend returns by how much a point is off the line through its neighbours, as a part of it:
// for one segment, and for many. A point at an end has no bend.
func (c *Curve) Bend(bytes int64) float64 {
	at, known := c.findPoint(bytes)
	if !known || at == 0 || at == len(c.points)-1 {
		return 0
	}
	rest := Curve{points: append(slices.Clone(c.points[:at]), c.points[at+1:]...)}
	of := func(p *point) float64 {
		if p.count < 2 {
			return p.alone
		}
		return p.end / float64(p.count)
	}
	is := of(&c.points[at])
	line, _ := rest.valueAt(bytes, of)
	return math.Abs(line-is) / max(is, 1)
}

// Pace returns the time that a further segment of some bytes added in their measurement, less fill
// for the first one, ns; 0: they were not measured.
func (c *Curve) Pace(bytes int64, fill float64) float64 {
	at, known := c.findPoint(bytes)
	if !known || c.points[at].count < 2 {
		return 0
	}
	return c.points[at].meanPace(fill)
}

// meanPace returns the mean over all segments but the first. That one took fill.
func (p *point) meanPace(fill float64) float64 {
	return max(p.end-fill, p.end/float64(2*p.count)) / float64(max(p.count-1, 1))
}
