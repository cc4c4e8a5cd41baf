package sim

import "github.com/tierflow/tierflow/executor/flow"

// deliverMessage puts a message into its receiver's inbox, and wakes the receiver.
func (e *engine) deliverMessage(i int32) {
	r := &e.ranks[e.messages[i].to]
	e.messages[i].came = e.now
	e.appendMessage(&r.inbox, i)
	switch {
	case r.state != resting:
	case r.clock > e.now:
		e.scheduleRank(r)
	default:
		idle := e.now - r.clock
		if e.acquireCore(r) {
			r.idle = idle
			e.goOn(r)
		}
	}
}

// wakeRank lets a scheduled rank go on.
func (e *engine) wakeRank(r *rank) {
	switch {
	case !e.acquireCore(r):
		return
	case r.pass < 0:
		r.clock = max(r.clock, e.now)
		e.beginPass(r)
	case e.mustYield(r):
		e.releaseCore(r)
		if !r.hasWork() {
			r.state = resting
		} else {
			e.acquireCore(r) // behind the waiting ones
		}
		return
	}
	e.goOn(r)
}

// hasWork reports whether the rank has anything to do now.
func (r *rank) hasWork() bool { return r.inbox.first >= 0 || r.hasSteps() }

// hasSteps reports whether a step is ready, or the next pass.
func (r *rank) hasSteps() bool { return len(r.ready) > 0 || r.left == 0 && r.end < 0 }

// goOn lets a rank run, by bursts, until other ranks matter: until its clock is ahead and it has to
// look for messages, or it needs the memory of its node.
func (e *engine) goOn(r *rank) {
	r.clock, r.isNew = max(r.clock, e.now), false
	for {
		if r.burst == 0 {
			if !e.takeInbox(r) {
				e.scheduleRank(r)
				return
			}
			r.burst = flow.Burst
		}
		for r.burst > 0 && r.hasSteps() {
			if r.left == 0 {
				e.beginPass(r)
				continue
			}
			top := len(r.ready) - 1
			id := r.ready[top]
			if r.clock > e.now && e.needsMemory(r, id, &r.form.steps[id]) {
				e.scheduleRank(r)
				return
			}
			r.ready = r.ready[:top]
			r.burst--
			if e.log != nil {
				e.log.openStep(r, id)
			}
			e.executeStep(r, id)
			if e.log != nil {
				e.log.closeAct(r)
			}
		}
		r.burst = 0
		switch work := r.hasWork(); {
		case r.clock > e.now && (work || e.pools != nil):
			e.scheduleRank(r)
			return
		case !work:
			r.state, r.idle = resting, 0
			e.releaseCore(r)
			return
		}
	}
}

// takeInbox takes all messages in the inbox. It reports false if one of them needs the node's memory, and others may
// need that before: then the look goes on later.
func (e *engine) takeInbox(r *rank) bool {
	if !r.looking {
		r.looks++
		r.looking, r.heard = true, -1
	}
	for r.inbox.first >= 0 {
		i := r.inbox.first
		if r.clock > e.now && e.isKept(r, &e.messages[i]) {
			return false
		}
		r.inbox.first = e.messages[i].next
		if e.log != nil {
			e.log.openMessage(r, &e.messages[i], &e.prices)
		}
		r.heard = e.takeMessage(r, i, r.heard)
		if e.log != nil {
			e.log.closeAct(r)
		}
	}
	r.looking, r.fresh = false, 0
	return true
}
