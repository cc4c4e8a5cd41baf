package tune

import (
	"fmt"
	"math"
	"slices"

	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/tasks"
)

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
			_, ok := p.predict(w.request, table.Candidate{Plan: w.plan.String(), From: table.FromPredicted, Parsed: w.plan})
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
				rounds[round] = append(rounds[round], work{request: p.requests[at[k]], plan: q, beside: p.collective, kind: Collectives})
			}
		}
	}
	return firstOf(rounds[:])
}

// sizes picks requests to measure for a plan of one segment, and their round: the
// smallest come first, then the largest, then those between. From the smallest
// segment of a measured pipeline on none is needed.
func (p *probes) sizes(at []int, q tasks.Plan) (all []int, round int) {
	last := len(at) - 1
	told := p.told(p.requests[at[0]], q)
	known := func(k int) bool {
		w := work{request: p.requests[at[k]], plan: q}
		if _, ok := p.known[pointKey(w.request, q)]; ok {
			return true
		}
		return p.tried[w.key()] || w.request.Bytes() >= told
	}
	for round, k := range []int{0, last} {
		if !known(k) {
			return []int{k}, round
		}
	}
	hi := last // or the first that a pipeline tells
	for hi > 0 && p.requests[at[hi-1]].Bytes() >= told {
		hi--
	}
	return bisect(0, hi, known, func(lo, hi int) int {
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
		from, to := point{p.requests[at[lo]].Bytes(), a}, point{p.requests[at[hi]].Bytes(), b}
		mid := p.middle(at, lo, hi, from, to)
		if c, ok := p.candidate(at[mid], q); ok && known(mid) && agrees(c, line(from, to, p.requests[at[mid]].Bytes()).NS, onLine) {
			return -1
		}
		return mid
	}), 2
}

// told is the bytes of the smallest message that a pipeline has shown what it takes
// as a plan of one segment.
func (p *probes) told(r tasks.Request, q tasks.Plan) int64 {
	least := int64(math.MaxInt64)
	for _, one := range p.alone[planKey(r, q)] {
		if _, ok := p.table.Book().Pipeline(one.key); ok {
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
		return math.Abs(math.Log(line(from, to, p.requests[at[k]].Bytes()).NS / half))
	}
	best := lo + 1
	for k := lo + 2; k < hi; k++ {
		if off(k) < off(best) {
			best = k
		}
	}
	return best
}

// bisect lists the rungs to measure between two rungs of a ladder, lo and hi: the one
// that between picks, and once that is known, its picks on both sides. A pick of -1
// ends it.
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
