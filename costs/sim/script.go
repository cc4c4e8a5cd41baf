package sim

import "math/bits"

// Script is a step of a program on every rank. The rank computes and starts collectives. They go on
// meanwhile, one after the other, and at the end the rank waits for all of them.
//
//	compute  ████████░░████░░░░██|      ░ the processor serves a collective
//	0               ├──────┤     |      from start to end
//	1                      ├─────|──────┤
//	                             time that is not hidden
type Script struct {
	Actions []Action
	// Spare says that ranks have processors beside the computing ones, for collectives.
	Spare bool
}

// Action is a computation, or, if Start isn't nil, the start of a collective.
type Action struct {
	Compute Time // of a rank without other work
	Start   *Call
}

// Call is a collective as it was simulated by itself, see [Result].
type Call struct {
	Time Time // from its start to its end on all ranks
	Busy Time // a rank's processor is busy; at most Time
}

// Outcome is the times of a script.
type Outcome struct {
	Time     Time
	Compute  Time // of all actions
	Calls    Time // of all calls, one after the other
	Begun    []Time
	Ended    []Time // by call, in the order of starts
	Computed []Time // when each computation ended
}

// LastComputed is when the last computation ended.
func (o *Outcome) LastComputed() Time {
	if len(o.Computed) == 0 {
		return 0
	}
	return o.Computed[len(o.Computed)-1]
}

// Hidden returns the share of the calls' time hidden by computing; 1 without calls.
func (o *Outcome) Hidden() float64 {
	if o.Calls == 0 {
		return 1
	}
	return float64(o.Compute+o.Calls-o.Time) / float64(o.Calls)
}

// Run says when each call begins and ends, and how long the script takes. A call begins once it was
// started and those before it have ended. While it goes on the rank computes in the rest of its
// processor's time.
func (s *Script) Run() (o Outcome) {
	p := player{spare: s.Spare, o: &o}
	for _, a := range s.Actions {
		if a.Start != nil {
			o.Calls += a.Start.Time
			p.queue = append(p.queue, *a.Start)
			continue
		}
		o.Compute += a.Compute
		p.compute(a.Compute)
		o.Computed = append(o.Computed, p.now)
	}
	for p.begin() {
		p.now += p.left
		p.end()
	}
	o.Time = p.now
	return o
}

// player runs a script.
type player struct {
	spare bool
	now   Time
	queue []Call // still to end; the first one goes on
	left  Time   // of the first one; 0: it has not begun
	o     *Outcome
}

// begin lets the first call begin, unless it has, and reports whether there is one.
func (p *player) begin() bool {
	for len(p.queue) > 0 && p.left == 0 {
		p.o.Begun = append(p.o.Begun, p.now)
		if p.left = p.queue[0].Time; p.left == 0 {
			p.end()
		}
	}
	return len(p.queue) > 0
}

// end ends the first call.
func (p *player) end() {
	p.left, p.queue = 0, p.queue[1:]
	p.o.Ended = append(p.o.Ended, p.now)
}

// compute computes beside the calls.
func (p *player) compute(work Time) {
	for work > 0 {
		if !p.begin() {
			p.now += work
			return
		}
		c := p.queue[0]
		free := c.Time - c.Busy // for computing, while the call goes on
		if p.spare {
			free = c.Time
		}
		if room := scale(p.left, free, c.Time); room < work {
			work -= room
			p.now += p.left
			p.end()
			continue
		}
		took := p.left
		if free > 0 {
			took = min(took, scale(work, c.Time, free))
		}
		p.now += took
		if p.left -= took; p.left == 0 {
			p.end()
		}
		return
	}
}

// scale is t·of/by, cut to whole picoseconds. All are 0 or more, and by is more.
func scale(t, of, by Time) Time {
	high, low := bits.Mul64(uint64(t), uint64(of))
	if high >= uint64(by) {
		return 1<<63 - 1
	}
	quotient, _ := bits.Div64(high, low, uint64(by))
	return Time(min(quotient, 1<<63-1))
}
