package sim

// arrive puts a message into its receiver's inbox, and wakes the receiver.
func (e *engine) arrive(i int32) {
	r := &e.ranks[e.messages[i].to]
	e.messages[i].came = e.now
	e.append(&r.inbox, i)
	switch {
	case r.state != resting:
	case r.clock > e.now:
		e.schedule(r)
	default:
		idle := e.now - r.clock
		if e.acquire(r) {
			r.idle = idle
			e.goOn(r)
		}
	}
}

// wake lets a rank go on that was scheduled.
func (e *engine) wake(r *rank) {
	switch {
	case !e.acquire(r):
		return
	case r.pass < 0:
		r.clock = max(r.clock, e.now)
		e.beginPass(r)
	case e.mustYield(r):
		e.release(r)
		if !r.hasWork() {
			r.state = resting
		} else {
			e.acquire(r) // behind those that wait
		}
		return
	}
	e.goOn(r)
}

// hasWork reports whether there is anything that the rank could do now.
func (r *rank) hasWork() bool { return r.inbox.first >= 0 || r.hasSteps() }

// hasSteps reports whether a step is ready, or the next pass.
func (r *rank) hasSteps() bool { return len(r.ready) > 0 || r.left == 0 && r.end < 0 }

// goOn lets a rank run, by bursts, until others must be heard of: until its clock is
// ahead and it has to look for messages, or it needs what other ranks share.
func (e *engine) goOn(r *rank) {
	r.clock, r.isNew = max(r.clock, e.now), false
	for {
		if r.burst == 0 {
			e.look(r)
			r.burst = burst
		}
		for r.burst > 0 && r.hasSteps() {
			if r.left == 0 {
				e.beginPass(r)
				continue
			}
			top := len(r.ready) - 1
			id := r.ready[top]
			if r.clock > e.now && e.crowds(r, &r.form.steps[id]) {
				e.schedule(r)
				return
			}
			r.ready = r.ready[:top]
			r.burst--
			if e.log != nil {
				e.log.execute(r, id)
			}
			e.execute(r, id)
			if e.log != nil {
				e.log.close(r)
			}
		}
		r.burst = 0
		switch work := r.hasWork(); {
		case r.clock > e.now && (work || e.pools != nil):
			e.schedule(r)
			return
		case !work:
			r.state, r.idle = resting, 0
			e.release(r)
			return
		}
	}
}

// look takes all messages that have come.
func (e *engine) look(r *rank) {
	r.looks++
	from := int32(-1) // the conn of the message before
	for r.inbox.first >= 0 {
		i := r.inbox.first
		r.inbox.first = e.messages[i].next
		if e.log != nil {
			e.log.hear(r, &e.messages[i], &e.prices)
		}
		from = e.hear(r, i, from)
		if e.log != nil {
			e.log.close(r)
		}
	}
	r.fresh = 0
}

// burst is how many steps a rank executes between two looks at its inbox, as package
// executor does.
const burst = 32
