package tune

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/tasks"
)

// predictor chooses the measurements of the tasks methods. It measures tasks by themselves
// ([costs.Makeup]), and prices all plans and sizes by them:
//
//   - Blocks that differ are measured as they are, all plans, and the fastest then in turns: their
//     flat exchanges have one task only.
//   - First each task on two sizes of segments, and the pace of each level on one, for the
//     largest window and without inner segments. Other windows and inner segments follow
//     if these are not far from the best plan of some request.
//   - Then all tasks of a plan together, one plan of each shape: they wake each other
//     and share processors. This corrects all plans of the shape.
//   - Then the sizes between, if a plan with the task is near the best of a request: the
//     middle of two measured ones, until a middle lies on the line between them.
//   - Then races, unless there are none: of requests with plans of different kinds and
//     about equal predictions. A race corrects the predictions of all plans of its kinds,
//     also for sizes around.
//
// All ranks decide alike, as a meter gives them the same results.
type predictor struct {
	*knowledge
	thrift
	plans   [][]composed // by request
	units   []*unit      // in the order of the plans
	byKey   map[costs.Key]*unit
	numbers map[string]int32       // of classes and families
	fixes   map[int32][]fix        // by class or family
	joints  map[int32]*jointRatios // by collective and shape
	best    []float64              // predicted, by request, ns
}

// thrift limits the measurements of a method.
type thrift struct {
	far    float64 // times the best is not worth looking around
	racers int     // of each request, at most
	close  float64 // times the best predicted: its tasks are measured closely
}

// fix is the outcome of a race for a class of plans.
type fix struct {
	bytes int64
	ratio float64 // measured / predicted
}

// Sizes of the first measurements, bytes.
const (
	firstSingle = 64 << 10
	firstFlow   = 128 << 10
)

// curveTolerance is the largest distance of a time from the line between its neighbours, as a share.
const curveTolerance = 0.05

var _ fastest = (*predictor)(nil)

func newPredictor(k *knowledge, t thrift) *predictor {
	p := &predictor{knowledge: k, thrift: t, byKey: map[costs.Key]*unit{}, numbers: map[string]int32{}}
	p.composeAll()
	for i := range p.requests {
		if c := p.find(i, p.rules[i]); c != nil {
			for _, u := range c.unitsInUse() {
				u.usual = true
			}
		}
	}
	return p
}

// next lists the next measurements; none: it is the end.
func (p *predictor) next() []work {
	for _, stage := range []func() []work{p.unevenBlocks, p.unevenRaces, p.firstSizes, p.otherSizes, p.inPlace, p.sizesBetween, p.uncertainRaces} {
		if all := stage(); len(all) > 0 {
			return all
		}
	}
	return nil
}

// unevenRaces lists, for each request with blocks that differ, a race of the fastest plans near the best
// with the built-in rule's.
func (p *predictor) unevenRaces() (all []work) {
	for i, r := range p.requests {
		if !r.Differ() || p.raceWhen == RacesNever {
			continue
		}
		first := estimates(p.knowledge, exhaustive{p.knowledge}, i)
		if slices.ContainsFunc(first, func(c table.Candidate) bool { return p.wasRaced(i, c.Parsed) }) || len(first) < 2 {
			continue
		}
		w := work{request: r, plan: first[0].Parsed, run: p.racePlans, kind: Races}
		for at, c := range first[1:] {
			if at < p.racers && c.NS <= p.close*first[0].NS || c.Parsed.Equal(p.rules[i]) {
				w.rivals = append(w.rivals, c.Parsed)
			}
		}
		if len(w.rivals) > 0 && !p.tried[w.keyOf()] {
			all = append(all, w)
		}
	}
	return all
}

// firstSizes lists the first sizes of the rule's units, and of base units.
func (p *predictor) firstSizes() (all []work) {
	for _, u := range p.units {
		if u.base == nil || u.usual {
			all = append(all, p.startSizes(u)...)
		}
	}
	return all
}

// otherSizes lists the first sizes of units with a base not far from the best.
func (p *predictor) otherSizes() (all []work) {
	p.predictAll()
	for _, u := range p.units {
		if u.base != nil && u.base.near > 0 && u.base.near <= p.far {
			all = append(all, p.startSizes(u)...)
		}
	}
	return all
}

// startSizes lists the first sizes of a unit.
func (p *predictor) startSizes(u *unit) (all []work) {
	if len(u.sizes) == 0 || len(u.curve.Sizes()) > 0 {
		return nil
	}
	sizes := []int64{u.nearestSize(firstFlow)}
	if u.Key.Window == 0 {
		sizes = slices.Compact([]int64{u.sizes[0], u.nearestSize(firstSingle)})
	}
	for _, n := range sizes {
		all = append(all, p.measureUnit(u, n)...)
	}
	return all
}

// measureUnit lists the measurement of a unit with some segment, unless it was made.
func (p *predictor) measureUnit(u *unit, bytes int64) []work {
	if u.asked[bytes] {
		return nil
	}
	u.asked[bytes] = true
	by := u.users[bytes]
	one := u.Unit
	one.Phases, one.Key.Segment = by.phases, bytes
	if _, known := p.table.Book().Pipeline(one.Key); known {
		return nil
	}
	segments := one.Segments(by.cut)
	if one.Blocks > 1 { // these take long: more than in any message tell nothing
		segments = min(segments, by.cut)
	}
	all := p.unitWork(p.requests[by.request], by.plan, one, segments)
	all[0].usual = u.usual
	return all
}

// unitWork is the measurement of so many segments of a unit of a plan for a request.
func (p *predictor) unitWork(r tasks.Request, q tasks.Plan, one costs.Unit, segments int64) []work {
	sizes := one.Key
	sizes.Segment = 0
	return []work{{
		request: r, plan: q, kind: Units, part: one.Key.String(), group: sizes.String(),
		beside: func(ctx context.Context, m Meter, w *work) (func(), error) {
			pipe, err := m.Task(ctx, w.request, one.Plan(w.plan), one.Phases, segments, p.stop)
			return func() { p.table.Book().AddPipeline(one.Key, pipe) }, err
		},
	}}
}

// predictAll predicts all plans, and notes the best times and how near to them units are.
func (p *predictor) predictAll() {
	p.findRatios()
	p.learnFromRaces()
	p.best = make([]float64, len(p.requests))
	for _, u := range p.units {
		u.near = 0
	}
	for i := range p.requests {
		p.best[i] = math.Inf(1)
		times := make([]float64, len(p.plans[i]))
		for k := range p.plans[i] {
			if ns, known := p.priceCorrected(i, &p.plans[i][k]); known {
				times[k] = ns
				p.best[i] = min(p.best[i], ns)
			}
		}
		for k := range p.plans[i] {
			if times[k] == 0 {
				continue
			}
			ratio := times[k] / p.best[i]
			for _, u := range p.plans[i][k].unitsInUse() {
				if u.near == 0 || ratio < u.near {
					u.near = ratio
				}
			}
		}
	}
}

// priceCorrected predicts the time of a plan with request i.
func (p *predictor) priceCorrected(i int, c *composed) (float64, bool) {
	ns, known := p.priceByUnits(c)
	return ns * p.classCorrection(i, c), known && ns > 0
}

// priceByUnits is priceCorrected without the corrections of races.
func (p *predictor) priceByUnits(c *composed) (float64, bool) {
	x, each := c.made.priced, 0.0
	fill, known := x.Fill(c.cut.Bytes)
	if known && c.cut.Segments > 1 {
		each, known = x.Each(c.cut.Bytes)
	}
	if j := p.joints[c.shape]; j != nil {
		fill *= p.ratioFor(j, c, j.one.ratioAt(c.cut.Bytes))
		each *= p.ratioFor(j, c, j.many.ratioAt(c.cut.Bytes))
	}
	return c.cut.Time(fill, each), known
}

// ratioFor returns a ratio as it holds for a plan. Tasks hinder each other with all algorithms. On a
// known machine they overlap only with those that ran; for tables of several machines all overlap
// alike, as times are compared between machines.
func (p *predictor) ratioFor(j *jointRatios, c *composed, ratio float64) float64 {
	if p.space.Machine != nil && c.outer != j.by.outer {
		return max(ratio, 1)
	}
	return ratio
}

// sizesBetween lists sizes to measure of units in good plans.
func (p *predictor) sizesBetween() (all []work) {
	p.predictAll()
	for i := range p.requests {
		for k := range p.plans[i] {
			c := &p.plans[i][k]
			if ns, known := p.priceCorrected(i, c); !known || ns > p.closeMargin(c)*p.best[i] {
				continue
			}
			for _, u := range c.unitsInUse() {
				if n, want := u.sizeWanted(c.cut.Bytes); want {
					all = append(all, p.measureUnit(u, n)...)
				}
			}
		}
	}
	return all
}

// roughClose replaces [thrift.close] if segments of a single size were measured: they tell little
// of other sizes.
const roughClose = 1.5

// closeMargin times the best prediction is the most for a close measurement of a plan.
func (p *predictor) closeMargin(c *composed) float64 {
	if c.cut.Segments > 1 {
		for _, u := range c.made.flows {
			if sizes := u.curve.Sizes(); len(sizes) == 1 && sizes[0] != c.cut.Bytes {
				return max(p.close, roughClose)
			}
		}
	}
	return p.close
}

// sizeWanted returns the size to measure next for a unit's time with some bytes; none if the time is known
// well enough.
func (u *unit) sizeWanted(bytes int64) (n int64, want bool) {
	below, above := u.curve.Around(bytes)
	switch {
	case below == bytes && above == bytes || len(u.curve.Sizes()) == 0:
		return 0, false
	case below == 0 && above > 0 && u.sizes[0] < above:
		return u.sizes[0], !u.asked[u.sizes[0]]
	case above == 0:
		return bytes, !u.asked[bytes]
	case u.isStraight(below, above):
		return 0, false
	}
	middle := math.Sqrt(float64(max(below, 1)) * float64(above))
	for _, s := range u.sizes {
		if s > below && s < above && (n == 0 || math.Abs(math.Log(float64(s)/middle)) < math.Abs(math.Log(float64(n)/middle))) {
			n = s
		}
	}
	return n, n > 0 && !u.asked[n]
}

// isStraight reports whether a unit needs no sizes between two: a point on either side lies
// on the line through its neighbours.
func (u *unit) isStraight(below, above int64) bool {
	all := u.curve.Sizes()
	at := slices.Index(all, below)
	for _, k := range []int{at, at + 1} {
		if k > 0 && k+1 < len(all) && u.curve.Bend(all[k]) <= curveTolerance {
			return true
		}
	}
	return false
}

// estimate returns the time of a plan for request i, measured or predicted.
func (p *predictor) estimate(i int, q tasks.Plan) (table.Candidate, bool) {
	if c, known := p.measuredTime(i, q); known {
		return c, true
	}
	if c := p.find(i, q); c != nil {
		return p.candidate(i, c)
	}
	return table.Candidate{}, false
}

// Largest errors of predictions, as shares.
const (
	doubt     = 0.08
	corrected = 0.03 // after a race with plans of the class
)

func (p *predictor) candidate(i int, c *composed) (one table.Candidate, known bool) {
	one = table.Candidate{Plan: c.plan.String(), Parsed: c.plan, From: table.FromPredicted}
	one.NS, known = p.priceCorrected(i, c)
	off := p.doubtShare(i, c)
	one.Low, one.High = one.NS*(1-off), one.NS*(1+off)
	return one, known
}

// maxListed bounds the predicted plans of a request in [predictor.fastestPlans].
const maxListed = 32

// fastestPlans returns the measured plans of request i and the best predicted ones, the fastest
// first. Among them is the best one without regard to nodes.
func (p *predictor) fastestPlans(i int) (all []table.Candidate) {
	type timed struct {
		ns float64
		at int
	}
	var times []timed
	for k := range p.plans[i] {
		if ns, known := p.priceCorrected(i, &p.plans[i][k]); known {
			times = append(times, timed{ns, k})
		}
	}
	slices.SortStableFunc(times, func(a, b timed) int { return cmp.Compare(a.ns, b.ns) })
	flat := false
	for n, t := range times {
		c := &p.plans[i][t.at]
		first := c.plan.Shape.IsFlat() && !flat
		flat = flat || first
		if _, measured := p.known[c.key]; measured {
			one, _ := p.measuredTime(i, c.plan)
			all = append(all, one)
		} else if (n < maxListed || first) && !p.refused[c.key] {
			one, _ := p.candidate(i, c)
			all = append(all, one)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(p.wantedPlans(i))) {
		q, err := tasks.ParsePlan(text)
		if err != nil || slices.ContainsFunc(all, func(c table.Candidate) bool { return c.Plan == text }) {
			continue
		}
		if c := p.find(i, q); c != nil {
			if one, known := p.candidate(i, c); known {
				all = append(all, one)
			}
		}
	}
	slices.SortStableFunc(all, byTime)
	return all
}
