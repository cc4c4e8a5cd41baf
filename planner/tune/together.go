package tune

import (
	"maps"
	"math"
	"slices"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/tasks"
)

// jointRatios compares the times of a collective's tasks with a shape in place with their times
// by themselves: a rank waiting for one task wakes once for the next one too, and levels share
// processors. One plan shows it for all of the shape.
type jointRatios struct {
	by   *composed
	cuts bool // some plan of the shape cuts messages
	coll tasks.Collective
	one  ratios // of one segment
	many ratios // of each further segment
}

// ratios are times of tasks in place divided by their times alone, by bytes of a segment, the
// smallest first.
type ratios []fix

// ratioAt returns the ratio for some bytes: between two sizes in proportion to the logarithm.
func (all ratios) ratioAt(bytes int64) float64 {
	if len(all) == 0 {
		return 1
	}
	at := slices.IndexFunc(all, func(f fix) bool { return f.bytes >= bytes })
	switch {
	case at < 0:
		return all[len(all)-1].ratio
	case at == 0:
		return all[0].ratio
	}
	low, high := all[at-1], all[at]
	part := math.Log(float64(bytes)/float64(max(low.bytes, 1))) / math.Log(float64(high.bytes)/float64(max(low.bytes, 1)))
	return float64((1-part)*low.ratio) + float64(part*high.ratio)
}

// Segments for tasks in place, bytes: of one, and of each of many.
var (
	togetherOne  = []int64{1, 256, 4 << 10, 32 << 10, 256 << 10}
	togetherMany = []int64{30 << 10, 256 << 10}
)

// togetherBlocks bounds the bytes of blocks in a segment measured in place as one of many: beyond it
// transfers are all of the time.
const togetherBlocks = 4 << 20

// inPlace lists measurements of tasks together, of each shape with the best-looking plan for a message of
// middle size.
func (p *predictor) inPlace() (all []work) {
	if p.joints == nil {
		p.chooseJoints()
	}
	for _, k := range slices.Sorted(maps.Keys(p.joints)) { // all ranks measure in one order
		j := p.joints[k]
		m := j.by.made.priced.Makeup()
		if len(m.Singles) < 2 {
			continue
		}
		for _, n := range togetherOne {
			all = append(all, p.measureJoint(j, m.One, n)...)
		}
		for _, n := range togetherMany {
			if j.cuts {
				all = append(all, p.measureJoint(j, m.Many, n)...)
			}
		}
	}
	return all
}

// middleSize is the size of message for the choice of a shape's plan, bytes.
const middleSize = 16 << 10

// chooseJoints picks a plan of each collective and shape.
func (p *predictor) chooseJoints() {
	p.joints = map[int32]*jointRatios{}
	type mark struct{ off, ns float64 }
	marks, cuts := map[int32]mark{}, map[int32]bool{}
	for i, r := range p.requests {
		off := sizeFactor(r.Bytes(), middleSize)
		for k := range p.plans[i] {
			c := &p.plans[i][k]
			cuts[c.shape] = cuts[c.shape] || c.cut.Segments > 1
			ns, known := c.made.priced.NS(c.cut)
			if old, has := marks[c.shape]; !known || has && (off > old.off || off == old.off && ns >= old.ns) {
				continue
			}
			marks[c.shape] = mark{off, ns}
			p.joints[c.shape] = &jointRatios{by: c, coll: r.Coll}
		}
	}
	for shape, j := range p.joints {
		j.cuts = cuts[shape]
	}
}

// measureJoint lists the measurement of tasks together with a segment of some bytes.
func (p *predictor) measureJoint(j *jointRatios, u costs.Unit, bytes int64) []work {
	at := -1 // the smallest request of at least so many bytes
	largest := int64(0)
	for i, r := range p.requests {
		if r.Coll == j.coll {
			largest = max(largest, r.Bytes())
		}
		if r.Coll == j.coll && (at < 0 || p.requests[at].Bytes() < bytes || r.Bytes() >= bytes && r.Bytes() < p.requests[at].Bytes()) {
			at = i
		}
	}
	r := p.requests[at]
	bytes = min(bytes, r.Bytes())
	if size := int64(r.Type.Size()); size > 0 && r.Coll.HasData() {
		bytes = max(bytes/size, 1) * size
	}
	u.Key.Segment = bytes
	if _, known := p.table.Book().Pipeline(u.Key); known {
		return nil
	}
	if u.Key.Window > 0 && u.Blocks > 1 && (largest <= bytes || u.Blocks*bytes > togetherBlocks) {
		return nil // no message is cut like that, or nobody notices a wake
	}
	q := j.by.plan
	q.Segment = max(bytes, 1)
	return p.unitWork(r, q, u, u.Segments(0))
}

// findRatios finds the ratios from the measurements.
func (p *predictor) findRatios() {
	for _, j := range p.joints {
		x := j.by.made.priced
		m := x.Makeup()
		j.one, j.many = nil, nil
		if len(m.Singles) < 2 {
			continue
		}
		one, many := p.table.Book().Curve(m.One.Key), p.table.Book().Curve(m.Many.Key)
		for _, n := range one.Sizes() {
			is, _ := one.Alone(n)
			if fill, known := x.Fill(n); known && fill > 0 && is > 0 {
				j.one = append(j.one, fix{n, is / fill})
			}
		}
		for _, n := range many.Sizes() {
			fill, _ := x.Fill(n)
			each, known := x.Each(n)
			if is := many.Pace(n, fill*j.one.ratioAt(n)); known && each > 0 && is > 0 {
				j.many = append(j.many, fix{n, is / each})
			}
		}
	}
}
