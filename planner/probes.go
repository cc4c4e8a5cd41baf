package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/tasks"
)

// probes decides what the tasks methods measure, from what is known so far: first
// pipelines, then plans of one segment, then in turns what looks best ([probes.races]). All
// of these rules are here, in [frame] and in [probes.races]:
//
//   - Of plans that differ in several levels' algorithms, only those that differ from
//     a base in one are measured, and times of the others put together ([frame]).
//   - A pipeline is measured once for all sizes; what it shows of one segment by
//     itself is a point of the plan of one segment.
//   - Of segment sizes the middle one comes first, and for plans that are not far
//     from the best with it those at the ends; of message sizes, for plans of one
//     segment, the ends; then the middle between two that are known ([bisect]).
//     Where a plan is far from the best at both, nothing between is measured.
//   - Where the middle of a plan of one segment lies on the line between its
//     neighbours, within its interval or a tenth, nothing else between is measured:
//     latency plus bytes by bandwidth is a line. Where a race shows that it isn't,
//     all that are not far are measured.
//
// All ranks decide alike, as a meter gives them the same results.
type probes struct {
	*Search
	thrift
	frames []*frame
	of     map[string]*frame    // by planKey
	keys   map[string]costs.Key // of pipelines, by planKey
	priced map[string]Candidate // by pipelines, by pointKey
	alone  map[string][]segment // that a plan of one segment is, by planKey
	limit  []float64            // what takes longer is far from the best, by request
	rough  []bool               // where lines are not believed, by request
}

// thrift is how much is left out.
type thrift struct {
	far    float64 // times the best is not worth looking around
	few    int     // of the best are; 0: any number
	racers int     // of each request, the rule's plan among them
	near   float64 // times the best predicted: races along
}

// The heuristic method believes what it has seen sooner.
var thrifts = map[Method]thrift{
	Tasks:       {far: 1.5, racers: 4, near: 1.1},
	TasksPruned: {far: 1.25, few: 2, racers: 2, near: 1},
}

// onLine is how far from the line between its neighbours a time may be, as a part
// of it, whatever its interval.
const onLine = 0.1

// offLine is how far off it shows that lines say nothing about a size.
const offLine = 0.3

// segment is one of a pipeline, which all messages of its size are.
type segment struct {
	bytes int64
	key   costs.Key // of the pipeline
}

func newProbes(s *Search) *probes {
	p := &probes{
		Search: s, thrift: thrifts[s.Method], of: map[string]*frame{}, alone: map[string][]segment{},
		keys: map[string]costs.Key{}, priced: map[string]Candidate{},
	}
	p.frames = newFrames(s, p.of)
	for _, f := range p.frames {
		for _, q := range f.members {
			p.single(f, q)
		}
	}
	return p
}

// single notes which plan of one segment a pipeline tells about.
func (p *probes) single(f *frame, q tasks.Plan) {
	if f.segment == tasks.Whole || f.shape == tasks.HanLockstep {
		return
	}
	r := p.largest(f.coll, q)
	key, err := costs.PipelineKey(r, p.Topology, q)
	if err != nil {
		return
	}
	p.keys[planKey(r, q)] = key
	one := segment{costs.SegmentBytes(r, q), key}
	whole := planKey(r, canonical(q, one.bytes))
	p.alone[whole] = append(p.alone[whole], one)
}

// largest is the largest request that a plan is a candidate for.
func (p *probes) largest(coll tasks.Collective, q tasks.Plan) tasks.Request {
	all := p.where[planKey(tasks.Request{Coll: coll}, q)]
	return p.Requests[all[len(all)-1]]
}

// next lists what to measure next; nothing is the end.
func (p *probes) next() []work {
	p.limit, p.rough = make([]float64, len(p.Requests)), make([]bool, len(p.Requests))
	for i := range p.Requests {
		p.limit[i], p.rough[i] = p.far(i), p.isRough(i)
	}
	for _, stage := range []func() []work{p.pipelines, p.wholes, p.races} {
		all := slices.DeleteFunc(stage(), func(w work) bool { return p.tried[w.key()] })
		if len(all) > 0 {
			return all
		}
	}
	return nil
}

// far is the time from which on a plan for request i isn't worth looking around.
func (p *probes) far(i int) float64 {
	var times []float64
	for _, c := range p.candidates[i] {
		if one, ok := p.candidate(i, c.Plan); ok && c.Rejected == "" {
			times = append(times, one.NS)
		}
	}
	if len(times) == 0 {
		return math.Inf(1)
	}
	slices.Sort(times)
	limit := p.thrift.far * times[0]
	if p.few > 0 {
		limit = min(limit, times[min(p.few, len(times))-1])
	}
	return limit
}

// ladder is pipelines that differ only in the size of segments, the smallest first.
type ladder struct {
	coll  tasks.Collective
	rungs []tasks.Plan
}

// ladders lists the pipelines that frames measure.
func (p *probes) ladders() (all []*ladder) {
	by := map[string]*ladder{}
	for _, f := range p.frames { // the smallest segments first
		if f.segment == tasks.Whole {
			continue
		}
		for _, q := range f.members {
			key := fmt.Sprint(f.coll, f.shape, q.Order, factors(q))
			if by[key] == nil {
				by[key] = &ladder{coll: f.coll}
				all = append(all, by[key])
			}
			by[key].rungs = append(by[key].rungs, q)
		}
	}
	return all
}

// pipelines lists those to measure next.
func (p *probes) pipelines() []work {
	var rounds [climbRounds][]work
	for _, l := range p.ladders() {
		known := func(k int) bool {
			w := p.pipelineWork(l.coll, l.rungs[k])
			_, ok := p.predict(w.request, Candidate{Plan: w.plan.String(), From: FromPredicted, plan: w.plan})
			return ok || p.tried[w.key()]
		}
		far := func(k int) bool { return p.farPipeline(l.coll, l.rungs[k]) }
		wanted, round := climb(len(l.rungs), known, far)
		for _, k := range wanted {
			rounds[round] = append(rounds[round], p.pipelineWork(l.coll, l.rungs[k]))
		}
	}
	return firstOf(rounds[:])
}

// firstOf is the first round in which there is something to do: what is far from the
// best is known when all ladders have come as far.
func firstOf(rounds [][]work) []work {
	for _, all := range rounds {
		if len(all) > 0 {
			return all
		}
	}
	return nil
}

// climbRounds is how many there are.
const climbRounds = 3

// climb picks the rungs of a ladder to measure next, and in which round: the
// middle, the ends, and what is between.
func climb(rungs int, known, far func(k int) bool) (all []int, round int) {
	mid, last := rungs/2, rungs-1
	if !known(mid) {
		return []int{mid}, 0
	}
	if far(mid) {
		return nil, 0
	}
	for _, k := range slices.Compact([]int{0, last}) {
		if !known(k) {
			all = append(all, k)
		}
	}
	if len(all) > 0 {
		return all, 1
	}
	between := func(lo, hi int) int {
		if far(lo) && far(hi) {
			return -1
		}
		return (lo + hi) / 2
	}
	return append(bisect(0, mid, known, between), bisect(mid, last, known, between)...), 2
}

// pipelineWork measures a plan that cuts, for the largest message that it may serve.
func (p *probes) pipelineWork(coll tasks.Collective, q tasks.Plan) work {
	w := work{request: p.largest(coll, q), plan: q, run: p.pipeline, kind: Pipelines}
	if q.Shape == tasks.HanLockstep {
		w.run, w.kind = p.stages, Stages
	}
	return w
}

// farPipeline reports whether a pipeline is far from the best with every size.
func (p *probes) farPipeline(coll tasks.Collective, q tasks.Plan) bool {
	for _, i := range p.where[planKey(tasks.Request{Coll: coll}, q)] {
		if !p.isFar(i, q) {
			return false
		}
	}
	return true
}

// isFar reports whether it is known that a plan is far from the best.
func (p *probes) isFar(i int, q tasks.Plan) bool {
	c, ok := p.candidate(i, q)
	return ok && c.NS > p.limit[i]
}

// wholes lists the plans of one segment, and the sizes, to measure next.
func (p *probes) wholes() []work {
	var rounds [climbRounds][]work
	for _, f := range p.frames {
		if f.segment != tasks.Whole {
			continue
		}
		for _, q := range f.members {
			at := p.where[planKey(tasks.Request{Coll: f.coll}, q)]
			wanted, round := p.sizes(at, q)
			for _, k := range wanted {
				rounds[round] = append(rounds[round], work{request: p.Requests[at[k]], plan: q, run: p.collective, kind: Collectives})
			}
		}
	}
	return firstOf(rounds[:])
}

// sizes picks from the requests that a plan of one segment is a candidate for, and
// says in which round: the smallest, the largest, and what is between.
// From the smallest segment on that a pipeline has told about none is needed.
func (p *probes) sizes(at []int, q tasks.Plan) (all []int, round int) {
	last := len(at) - 1
	told := p.told(p.Requests[at[0]], q)
	known := func(k int) bool {
		w := work{request: p.Requests[at[k]], plan: q}
		if _, ok := p.known[pointKey(w.request, q)]; ok {
			return true
		}
		return p.tried[w.key()] || messageBytes(w.request) >= told
	}
	for round, k := range []int{0, last} {
		if !known(k) {
			return []int{k}, round
		}
	}
	return bisect(0, last, known, func(lo, hi int) int {
		if p.isFar(at[lo], q) && p.isFar(at[hi], q) {
			return -1
		}
		for k := lo + 1; k < hi; k++ {
			if p.rough[at[k]] {
				return k
			}
		}
		a, aOK := p.candidate(at[lo], q)
		b, bOK := p.candidate(at[hi], q)
		if !aOK || !bOK {
			return (lo + hi) / 2
		}
		from, to := point{messageBytes(p.Requests[at[lo]]), a}, point{messageBytes(p.Requests[at[hi]]), b}
		mid := p.middle(at, lo, hi, from, to)
		if c, ok := p.candidate(at[mid], q); ok && known(mid) && agrees(c, line(from, to, messageBytes(p.Requests[at[mid]])).NS, onLine) {
			return -1
		}
		return mid
	}), 2
}

// isRough reports whether what won at request i took another time than its line
// had said: then no line is believed there. Machines change protocols with the size.
func (p *probes) isRough(i int) bool {
	bytes := messageBytes(p.Requests[i])
	for _, c := range p.candidates[i] {
		if !p.raced(i, c.Plan) || c.Plan.Segment < bytes {
			continue
		}
		others := slices.DeleteFunc(p.points(p.Requests[i], c.Plan), func(a point) bool { return a.bytes == bytes })
		at, _ := slices.BinarySearchFunc(others, bytes, func(a point, n int64) int { return cmp.Compare(a.bytes, n) })
		if at == 0 || at == len(others) {
			continue
		}
		if one, ok := p.candidate(i, c.Plan); ok && !agrees(one, line(others[at-1], others[at], bytes).NS, offLine) {
			return true
		}
	}
	return false
}

// told is the bytes of the smallest message that a pipeline has shown what it takes
// as a plan of one segment.
func (p *probes) told(r tasks.Request, q tasks.Plan) int64 {
	least := int64(math.MaxInt64)
	for _, one := range p.alone[planKey(r, q)] {
		if _, ok := p.Table.book().Pipeline(one.key); ok {
			least = min(least, one.bytes)
		}
	}
	return least
}

// middle is the size at which a line between two is halfway in time, by factors:
// there it is most likely to be wrong.
func (p *probes) middle(at []int, lo, hi int, from, to point) int {
	half := math.Sqrt(from.NS * to.NS)
	off := func(k int) float64 {
		return math.Abs(math.Log(line(from, to, messageBytes(p.Requests[at[k]])).NS / half))
	}
	best := lo + 1
	for k := lo + 2; k < hi; k++ {
		if off(k) < off(best) {
			best = k
		}
	}
	return best
}

// agrees reports whether a measured time is what a line says.
func agrees(c Candidate, ns, tolerance float64) bool {
	low, high := c.interval()
	return math.Abs(ns-c.NS) <= tolerance*c.NS || low <= ns && ns <= high
}

// bisect lists what to measure between two rungs of a ladder, lo and hi: what
// between picks, and once that is known, what it picks on both sides; -1 is enough.
func bisect(lo, hi int, known func(k int) bool, between func(lo, hi int) int) []int {
	if hi-lo < 2 {
		return nil
	}
	switch mid := between(lo, hi); {
	case mid < 0:
		return nil
	case !known(mid):
		return []int{mid}
	default:
		return append(bisect(lo, mid, known, between), bisect(mid, hi, known, between)...)
	}
}

// point is a candidate's time for messages of some bytes.
type point struct {
	bytes int64
	Candidate
}

// line is the time at some bytes on the straight line through two points.
func line(a, b point, bytes int64) (c Candidate) {
	part := float64(bytes-a.bytes) / float64(b.bytes-a.bytes)
	on := func(a, b float64) float64 { return float64((1-part)*a) + float64(part*b) }
	c.NS, c.Low, c.High = on(a.NS, b.NS), on(a.Low, b.Low), on(a.High, b.High)
	return c
}

// predict prices a plan that cuts by its pipeline or its stages.
func (p *probes) predict(r tasks.Request, c Candidate) (Candidate, bool) {
	at := pointKey(r, c.plan)
	if old, ok := p.priced[at]; ok {
		return old, true
	}
	key, flows := p.keys[planKey(r, c.plan)]
	run, ok := p.Table.book().Pipeline(key)
	if !ok && (flows || c.plan.Shape != tasks.HanLockstep) {
		return c, false
	}
	predicted, err := costs.Predict(r, p.Topology, c.plan, p.Table.book())
	if err != nil || !(predicted.NS > 0) {
		return c, false
	}
	c.NS = predicted.NS
	if ok && run.Whole.Mean > 0 {
		part := min(run.Whole.Half/run.Whole.Mean, 1)
		c.Low, c.High = c.NS*(1-part), c.NS*(1+part)
		p.priced[at] = c
	}
	return c, true
}

// curve predicts a plan of one segment from what is known of other sizes: on the
// line between the next smaller and the next larger one, or through the last two.
func (p *probes) curve(i int, c Candidate) (Candidate, bool) {
	bytes := messageBytes(p.Requests[i])
	all := p.points(p.Requests[i], c.plan)
	at, exact := slices.BinarySearchFunc(all, bytes, func(a point, n int64) int { return cmp.Compare(a.bytes, n) })
	var on Candidate
	switch {
	case exact:
		on = all[at].Candidate
	case at == 0 || len(all) < 2:
		return c, false
	default:
		at = min(at, len(all)-1)
		on = line(all[at-1], all[at], bytes)
	}
	c.NS, c.Low, c.High = on.NS, max(0, min(on.Low, on.NS)), max(on.High, on.NS) // beyond the last point they may cross
	return c, c.NS > 0
}

// points is what is known of a plan of one segment, by bytes.
func (p *probes) points(r tasks.Request, q tasks.Plan) (all []point) {
	for _, i := range p.where[planKey(r, q)] {
		if m, ok := p.known[pointKey(p.Requests[i], q)]; ok {
			all = append(all, point{m.Bytes, Candidate{NS: m.NS, Low: m.Low, High: m.High}})
		}
	}
	for _, one := range p.alone[planKey(r, q)] {
		run, ok := p.Table.book().Pipeline(one.key)
		if !ok {
			continue
		}
		ns := 0.0
		for _, l := range run.Leaders {
			ns = max(ns, l.Alone)
		}
		all = append(all, point{one.bytes, Candidate{NS: ns, Low: ns, High: ns}})
	}
	slices.SortStableFunc(all, func(a, b point) int { return cmp.Compare(a.bytes, b.bytes) })
	return slices.CompactFunc(all, func(a, b point) bool { return a.bytes == b.bytes })
}
