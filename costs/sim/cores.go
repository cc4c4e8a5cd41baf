package sim

// pool is the processors of some ranks.
type pool struct {
	free  int
	queue []int32 // ranks waiting for one, first come, first served
}

// acquireCore gives a rank a processor, or lets it wait for one. It reports whether it has
// one.
func (e *engine) acquireCore(r *rank) bool {
	p := e.poolOf(r)
	switch {
	case p == nil || r.hasCore:
		return true
	case p.free == 0:
		p.queue = append(p.queue, r.id)
		r.state = queued
		return false
	}
	p.free--
	e.giveCore(r)
	return true
}

// giveCore lets a rank have a processor.
func (e *engine) giveCore(r *rank) {
	r.hasCore, r.isNew = true, true
	r.clock = max(r.clock, e.now) + e.prices.swap
}

// releaseCore takes a rank's processor away. The first waiting rank gets it.
func (e *engine) releaseCore(r *rank) {
	p := e.poolOf(r)
	if p == nil || !r.hasCore {
		return
	}
	r.hasCore = false
	p.free++
	if len(p.queue) > 0 {
		next := &e.ranks[p.queue[0]]
		p.queue = p.queue[1:]
		p.free--
		e.giveCore(next)
		e.scheduleRank(next)
	}
}

// mustYield reports whether a rank gives its processor to another one after a burst.
func (e *engine) mustYield(r *rank) bool {
	p := e.poolOf(r)
	return p != nil && r.hasCore && !r.isNew && !r.looking && r.burst == 0 && len(p.queue) > 0
}

// poolOf returns the processors that a rank shares. nil: it has its own.
func (e *engine) poolOf(r *rank) *pool {
	switch len(e.pools) {
	case 0:
		return nil
	case 1:
		return &e.pools[0]
	}
	return &e.pools[e.nodes[r.id]]
}
