package executor

import "slices"

// Tally returns the counter of a collective and a plan, for [Binding.Tally].
func (e *Endpoint) Tally(collective, plan string) *Tally {
	e.enter()
	defer e.mu.Unlock()
	find := func() *Tally {
		i := slices.IndexFunc(e.tallies, func(t *Tally) bool { return t.Collective == collective && t.Plan == plan })
		if i < 0 {
			return nil
		}
		return e.tallies[i]
	}
	t := find()
	if t == nil && len(e.tallies) >= maxTallies {
		plan = OtherPlans
		t = find()
	}
	if t == nil {
		t = &Tally{Calls{Collective: collective, Plan: plan}}
		e.tallies = append(e.tallies, t)
	}
	return t
}

// count counts a call that begins, and begins to time it if it is one that is timed.
func (r *Run) count() {
	r.weight = 0
	if r.b.Tally == nil {
		return
	}
	r.b.Tally.Count++
	e := r.comm.e
	switch {
	case max(r.needed[0], r.needed[1]) >= timedBytes:
		r.weight = 1
	case e.untimed > 0:
		e.untimed--
		return
	default:
		e.untimed = drawUntimed()
		r.weight = timedEvery
	}
	r.timing.since = e.traceTime()
}

// endTiming notes how long the call has taken, if it is timed.
func (r *Run) endTiming(err error) {
	if r.weight == 0 || err != nil {
		return
	}
	took := max(1, r.comm.e.traceTime()-r.timing.since)
	t := r.b.Tally
	t.Took.add(took, r.weight, &TookBounds)
	if bytes := r.b.Trips * float64(max(r.needed[0], r.needed[1])); bytes > 0 {
		t.Rate.add(int64(bytes*1e9/float64(took)), r.weight, &RateBounds)
	}
}
