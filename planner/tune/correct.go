package tune

import (
	"cmp"
	"math"
	"slices"

	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/tasks"
)

// learnFromRaces makes corrections of all races so far. The table has both measurements and predictions,
// so an interrupted search has them again.
func (p *predictor) learnFromRaces() {
	p.fixes = map[int32][]fix{}
	for i, r := range p.requests {
		for k := range p.plans[i] {
			c := &p.plans[i][k]
			m := p.known[c.key]
			if m.Turns == 0 || c.plan.Equal(p.rules[i]) { // the rule's is in every race, however far from the others
				continue
			}
			ns, known := p.priceByUnits(c)
			if !known || !(ns > 0) {
				continue
			}
			one := fix{r.Bytes(), m.NS / ns}
			p.fixes[c.class] = append(p.fixes[c.class], one)
			p.fixes[c.family] = append(p.fixes[c.family], one)
		}
	}
	for _, all := range p.fixes {
		slices.SortFunc(all, func(a, b fix) int { return cmp.Or(cmp.Compare(a.bytes, b.bytes), cmp.Compare(a.ratio, b.ratio)) })
	}
}

// classCorrection returns measured over predicted time of a plan's class, or else of its family, from the races of the
// nearest size.
func (p *predictor) classCorrection(i int, c *composed) float64 {
	for _, of := range []int32{c.class, c.family} {
		if ratio, _ := meanRatioNear(p.fixes[of], p.requests[i].Bytes()); ratio > 0 {
			return ratio
		}
	}
	return 1
}

// meanRatioNear returns the mean ratio of the plans in races of the nearest size. far is the factor
// between that size and bytes. 0: nothing ran.
func meanRatioNear(all []fix, bytes int64) (ratio, far float64) {
	n := 0.0
	for _, f := range all {
		switch by := sizeFactor(f.bytes, bytes); {
		case n == 0 || by < far:
			far, ratio, n = by, math.Log(f.ratio), 1
		case by == far:
			ratio, n = ratio+math.Log(f.ratio), n+1
		}
	}
	if n == 0 {
		return 0, 0
	}
	return math.Exp(ratio / n), far
}

// nearFactor is the largest factor between a measured size and another one under its influence.
const nearFactor = 6

// doubtShare is the largest error of a prediction, as a share.
func (p *predictor) doubtShare(i int, c *composed) float64 {
	if ratio, far := meanRatioNear(p.fixes[c.class], p.requests[i].Bytes()); ratio > 0 && far <= nearFactor {
		return corrected
	}
	return doubt
}

// uncertainRaces lists races: of each collective one request at a time, as each race may answer
// for others. In the end the plan chosen for each request has run, beside the built-in rule's.
func (p *predictor) uncertainRaces() (all []work) {
	p.predictAll()
	done := map[tasks.Collective]bool{}
	for _, i := range spreadOver(len(p.requests)) {
		if done[p.requests[i].Coll] {
			continue
		}
		rivals := p.rivalPlans(i)
		if len(rivals) == 0 {
			continue
		}
		w := work{request: p.requests[i], plan: rivals[0], rivals: rivals[1:], run: p.racePlans, kind: Races}
		if !p.tried[w.keyOf()] {
			done[w.request.Coll] = true
			all = append(all, w)
		}
	}
	return all
}

// spreadOver lists the numbers below n. Each beginning of the list is spread over all:
// the middle, the quarters, and so on.
func spreadOver(n int) (all []int) {
	seen := make([]bool, n)
	for parts := 2; len(all) < n; parts *= 2 {
		for k := 1; k < parts; k += 2 {
			if at := k * n / parts; !seen[at] {
				seen[at] = true
				all = append(all, at)
			}
		}
		if parts > 2*n {
			for at := range n {
				if !seen[at] {
					all, seen[at] = append(all, at), true
				}
			}
		}
	}
	return all
}

// rivalPlans lists plans with predictions that overlap the best one's, one of each class, and the built-in
// rule's plan. Without races the best one and the rule's are enough. After a race it is the fastest one there,
// with those predicted to be faster now.
func (p *predictor) rivalPlans(i int) (rivals []tasks.Plan) {
	all := p.fastestPlans(i)
	if len(all) == 0 {
		return nil
	}
	isRaced := func(c table.Candidate) bool { return p.wasRaced(i, c.Parsed) }
	if n := count(all, isRaced); n > 0 {
		at := slices.IndexFunc(all, isRaced)
		if at > 0 && n < p.racers && all[0].NS*tieRatio < all[at].NS {
			return []tasks.Plan{all[at].Parsed, all[0].Parsed}
		}
		return nil
	}
	classes := map[int32]bool{}
	for _, one := range all {
		low, _ := one.Interval()
		_, high := all[0].Interval()
		c := p.find(i, one.Parsed)
		if c == nil || low > high || classes[c.class] || len(rivals) >= p.racers || len(rivals) > 0 && p.raceWhen == RacesNever {
			continue
		}
		classes[c.class] = true
		rivals = append(rivals, one.Parsed)
	}
	isRule := func(c table.Candidate) bool { return c.Parsed.Equal(p.rules[i]) }
	if slices.ContainsFunc(all, isRule) && !slices.ContainsFunc(rivals, p.rules[i].Equal) {
		rivals = append(rivals, p.rules[i])
	}
	return rivals
}

func (p *predictor) find(i int, q tasks.Plan) *composed {
	for k := range p.plans[i] {
		if p.plans[i][k].plan.Equal(q) {
			return &p.plans[i][k]
		}
	}
	return nil
}

func count[T any](all []T, is func(T) bool) (n int) {
	for _, one := range all {
		n += b2i(is(one))
	}
	return n
}
