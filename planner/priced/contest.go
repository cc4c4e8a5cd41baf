package priced

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/costs/price"
	"github.com/tierflow/tierflow/tasks"
)

// candidate is a plan to choose from.
type candidate struct {
	Priced
	family string
	outer  string // its algorithms between nodes, see [rehearsal.outer]
	known  bool   // it has a price; else the cheapest price stands for it
	isPart bool   // it was simulated in part
}

// seen returns the plan, without another one's price.
func (c *candidate) seen() Priced {
	p := c.Priced
	if !c.known {
		p.Price = price.Price{}
	}
	return p
}

// Least time of a plan like one that was simulated, as a share of its corrected price.
const (
	cousin    = 0.8 // the same between nodes, or the same family with segments of another size
	neighbour = 0.9 // the same family with segments of about the same size
)

// Prior on log(simulated/price) of a family or shape. The least time of a plan is two deviations below its price:
// e^(-2*0.25), six tenths of it, before any simulation.
const (
	priorDeviation = 0.25 // standard deviation
	priorCount     = 2    // weight, in simulations
)

// contest is competing plans, and their simulations so far.
type contest struct {
	*rehearsal
	left   []candidate       // not simulated yet, sorted by price
	missed []candidate       // too large to be simulated
	seen   []candidate       // simulated
	best   float64           // of seen, ns
	ratios map[string]ratios // of a simulated time to a price, by family, and by outer
	shapes []shape           // simulated, in that order
}

// shape is the simulated families of a shape that have a price.
type shape struct {
	tasks.Shape
	spread
}

// spread is of logarithms of ratios.
type spread struct {
	sum, squares float64
	count        float64
}

func (s spread) with(x float64) spread {
	return spread{s.sum + x, s.squares + float64(x*x), s.count + 1}
}

// mean returns the mean with one more, x.
func (s spread) mean(x float64) float64 { return (s.sum + x) / (s.count + 1) }

// deviation returns how far they are apart, as far as is known.
func (s spread) deviation() float64 {
	apart := priorCount * priorDeviation * priorDeviation
	if s.count > 0 {
		apart += max(0, s.squares-float64(s.sum*s.sum)/s.count)
	}
	return math.Sqrt(apart / (priorCount + s.count))
}

// ratios are those of a family: the last one, and the least and the most of all.
type ratios struct {
	last, least, most float64
	piece             int64 // of the last, bytes
}

// lowest is the least next ratio: as far below the others as these are apart, and by such a share
// anyway.
func (r *ratios) lowest(share float64) float64 { return min(share*r.last, r.least*r.least/r.most) }

// compete simulates plans, the most promising first, until the budget is spent or none promises
// to be better than the best one. all are sorted by price. It returns all, the fastest first:
// those without a simulation by their expected times.
func (s *rehearsal) compete(all []candidate) []Priced {
	for i := range all {
		all[i].family, all[i].outer = s.family(all[i].Plan), s.outer(all[i].Plan)
	}
	t := &contest{rehearsal: s, left: all, best: math.Inf(1), ratios: map[string]ratios{}}
	if s.own > 0 {
		t.begin()
	}
	t.try()
	t.rehearsal.left += t.spare
	t.confirm()
	t.try() // with the rest of the spare part
	t.confirm()
	for _, c := range slices.Concat(t.left, t.missed) {
		ns, least, known := t.expectedTime(&c)
		switch {
		case !c.known:
			continue
		case !math.IsInf(t.best, 1): // some were simulated
			ns *= math.Sqrt(ns / least) // as much more as it promises less
		case known:
			ns *= 1 + Exact
		default:
			ns *= 1 + doubt
		}
		c.Expected = ns
		t.seen = append(t.seen, c)
	}
	t.sort()
	var fit []Priced
	for i := range t.seen {
		if len(fit) >= maxPlans || t.seen[i].Simulated > 0 || s.fits(t.seen[i].Plan) {
			fit = append(fit, t.seen[i].seen())
		}
	}
	return fit
}

// begin begins with the rule's plan and its simulated time.
func (t *contest) begin() {
	at := slices.IndexFunc(t.left, func(c candidate) bool { return c.Plan.Equal(t.ruled) })
	c := t.left[at]
	t.left = slices.Delete(t.left, at, at+1)
	c.Simulated, t.best = t.own, t.own
	t.seen = append(t.seen, c)
	t.learn(&c, t.own)
}

// try simulates plans until the budget is spent, or none promises to be better.
func (t *contest) try() {
	futile := 0 // plans in a row that were no better
	for at := t.next(); at >= 0 && t.rehearsal.left > 0 && len(t.missed) < mostMissed && futile < maxFutile; at = t.next() {
		c := t.left[at]
		t.left = slices.Delete(t.left, at, at+1)
		if !t.fits(c.Plan) {
			continue
		}
		ns, isPart, ok := t.time(c.Plan, giveUpRatio*t.best)
		switch {
		case !ok:
			t.missed = append(t.missed, c)
			continue
		case math.IsInf(ns, 1):
			ns = max(giveUpRatio*t.best, t.ratios[c.family].last*c.Price.NS)
			c.Expected = ns
		default:
			c.Simulated, c.isPart = ns, isPart
			if ns < t.best*(1-better) {
				futile = -1
			}
			t.best = min(t.best, ns)
		}
		futile++
		t.seen = append(t.seen, c)
		t.learn(&c, ns)
	}
}

// sort sorts the simulated plans, the fastest first.
func (t *contest) sort() {
	slices.SortStableFunc(t.seen, func(a, b candidate) int { return cmp.Compare(a.Time(), b.Time()) })
}

// confirm simulates the best plan whole if it was simulated in part, and then the new best one, until
// the best was whole or the rest of the budget is spent. Plans alike between nodes are corrected by the
// same ratio.
func (t *contest) confirm() {
	t.noneStands = true
	defer func() { t.noneStands = false }()
	for t.rehearsal.left > 0 {
		t.sort()
		if len(t.seen) == 0 || !t.seen[0].isPart {
			return
		}
		c := &t.seen[0]
		r, p := t.withEqualShards(c.Plan)
		ns, ok := t.whole(r, t.asked.Request().Bytes(), p, 0)
		if !ok {
			return
		}
		off := ns / c.Simulated
		c.Simulated, c.isPart = ns, false
		t.best = math.Inf(1)
		for i := range t.seen {
			o := &t.seen[i]
			if o.isPart && o.outer == c.outer {
				o.Simulated *= off
			}
			if o.Simulated > 0 {
				t.best = min(t.best, o.Simulated)
			}
		}
	}
}

// fits reports whether a plan can be compiled.
func (s *rehearsal) fits(p tasks.Plan) bool {
	_, err := s.asked.Fits(p, s.reg)
	return err == nil
}

// expectedTime returns a plan's probable time, its least time, ns, and whether its family is known.
func (t *contest) expectedTime(c *candidate) (ns, least float64, known bool) {
	if of, known := t.ratios[c.family]; known {
		share := neighbour
		if p := piece(c.Plan); p/2 >= of.piece || of.piece/2 >= p {
			share = cousin
		}
		return c.Price.NS * of.last, c.Price.NS * of.lowest(share), true
	}
	if of, known := t.ratios[c.outer]; known {
		return c.Price.NS * of.last, c.Price.NS * of.lowest(cousin), false
	}
	of, others := t.of(c.Plan.Shape)
	ratio, apart := others.mean(0), others.deviation()
	if of != nil {
		ratio, apart = of.mean(ratio), of.deviation()
	}
	ns = c.Price.NS * exp(ratio)
	return ns, ns * exp(-2*apart), false
}

// of returns the spread of a shape, nil: none was simulated, and the spread of all shapes.
func (t *contest) of(s tasks.Shape) (of *spread, all spread) {
	for i := range t.shapes {
		one := &t.shapes[i]
		if one.Shape == s {
			of = &one.spread
		}
		all = all.with(one.sum / one.count)
	}
	return of, all
}

// learn keeps a plan's time for others of its family, and if it has a price for all.
func (t *contest) learn(c *candidate, ns float64) {
	ratio := ns / c.Price.NS
	if _, known := t.ratios[c.family]; !known && c.known {
		of, _ := t.of(c.Plan.Shape)
		if of == nil {
			t.shapes = append(t.shapes, shape{Shape: c.Plan.Shape})
			of = &t.shapes[len(t.shapes)-1].spread
		}
		*of = of.with(log(ratio))
	}
	for _, name := range []string{c.family, c.outer} {
		of, known := t.ratios[name]
		if !known {
			of = ratios{least: ratio, most: ratio}
		}
		t.ratios[name] = ratios{ratio, min(of.least, ratio), max(of.most, ratio), piece(c.Plan)}
	}
}

// next returns the index of the plan with the least promise, -1: none is worth a simulation.
// A promise lies between the expected time and the least possible one.
func (t *contest) next() int {
	at, most := -1, math.Inf(1)
	for i := range t.left {
		ns, least, _ := t.expectedTime(&t.left[i])
		if promise := math.Sqrt(least * ns); least < t.best && promise < most {
			at, most = i, promise
		}
	}
	return at
}

const (
	// giveUpRatio is how many times as long as the best one a plan may take to be simulated to its end.
	giveUpRatio = 1.25
	// maxFutile is how many plans in a row may turn out to be no better than the best by this share
	// of its time.
	maxFutile, better = 12, 0.01
	// mostMissed is how many plans may turn out to be too large.
	mostMissed = 50
	// doubt is the share added to a plan's price if none of its family was simulated.
	doubt = 0.1
)

// family names a plan but for sizes: shape, whether it is cut, algorithms, and whether its pieces go
// without credit.
func (s *rehearsal) family(p tasks.Plan) string { return nameLevels(p, "") + s.way(p) }

// outer names the part of a plan between nodes, but for sizes.
func (s *rehearsal) outer(p tasks.Plan) string {
	return "between nodes " + nameLevels(p, string(s.asked.On.Level(s.asked.On.Depth()-1).Symbol)) + s.way(p)
}

// way says how a plan's pieces go: short ones may come before they are expected, and are copied.
func (s *rehearsal) way(p tasks.Plan) string {
	if min(piece(p), s.asked.Request().Bytes()) <= s.eager {
		return " eagerly"
	}
	return ""
}

// piece returns how long a plan's shortest pieces are, bytes.
func piece(p tasks.Plan) int64 {
	n := p.Segment
	for _, key := range p.Keys() {
		if c, _ := p.Choice(key); c.Inner > 0 {
			n = min(n, c.Inner)
		}
	}
	return n
}

// nameLevels names shape and algorithms of the levels, or kinds, with a prefix.
func nameLevels(p tasks.Plan, prefix string) string {
	text := p.Shape.String()
	if p.Segment != tasks.Whole {
		text += " cut"
	}
	for _, key := range p.Keys() {
		if c, _ := p.Choice(key); strings.HasPrefix(key, prefix) {
			c.Inner = 0
			text += "," + key + "=" + c.String()
		}
	}
	return text
}
