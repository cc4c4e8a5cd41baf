package executor

import "slices"

// Tally returns the counter of a collective and a plan, for [Binding.Tally].
func (e *Endpoint) Tally(collective, plan string) *Tally {
	e.mu.Lock()
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

// countCall counts a call with so many bytes in its larger buffer. It returns for how many calls
// the time of this one counts, 0 if it isn't to be measured.
func (a *accounts) countCall(t *Tally, bytes int64) (weight int64) {
	if t == nil {
		return 0
	}
	t.Count++
	switch {
	case bytes >= timedBytes:
		return 1
	case a.callsUntimed > 0:
		a.callsUntimed--
		return 0
	}
	a.callsUntimed = drawUntimed()
	return timedEvery
}

// endTiming notes the time of the call, if it is timed.
func (r *Run) endTiming(err error) {
	if r.weight == 0 || err != nil {
		return
	}
	took := max(1, r.comm.e.world.config.traceTime()-r.timing.since)
	t := r.b.Tally
	t.Took.add(took, r.weight, &TookBounds)
	if bytes := r.b.Trips * float64(max(r.leastSend, r.leastRecv)); bytes > 0 {
		t.Rate.add(int64(bytes*1e9/float64(took)), r.weight, &RateBounds)
	}
}
