package planner_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// randomFault is what goes wrong: once, on one rank.
type randomFault struct {
	kind  faultKind
	twist randomTwist
	rank  int // of the world
	comm  int
	op    int
	delay time.Duration // of a cancel; negative: before the call
	nth   int
	leave bool // the rank closes the world when it has met its fault
}

type faultKind uint8

const (
	_          faultKind = iota
	cancels              // a context
	closesComm           // in the middle of what it was to do
	closesAll            // the world
	twists               // calls something else
	opPanics             // a user's operation
	opExits              // its goroutine
	opCalls              // its communicator
	numFaults
)

var faultNames = [numFaults]string{cancels: "cancel", closesComm: "close", closesAll: "closeworld", twists: "mismatch", opPanics: "panic", opExits: "goexit", opCalls: "opcalls"}

// Groups of faults.
var (
	closeFaults = []faultKind{closesComm, closesAll}
	breakFaults = []faultKind{cancels, twists, opPanics} // everything that was started ends
	userFaults  = []faultKind{opPanics, opExits, opCalls}
)

// randomTwist is what a rank calls in place of what the others do.
type randomTwist uint8

const (
	_             randomTwist = iota
	twistColl                 // another collective
	twistCount                // another count
	twistOp                   // another operation
	twistNamed                // a user's operation with the name of the others' built-in one
	twistCommutes             // an operation whose operands may change places, or not
	twistSplit                // an allreduce in place of a Split
	twistPlan                 // other plans for DupWith
	numTwists
)

var twistNames = [numTwists]string{"", "collective", "count", "op", "named", "commutes", "split", "plan"}

// closesWorld tells whether the rank is gone afterwards.
func (f *randomFault) closesWorld() bool {
	return f.leave || f.kind == closesAll || f.kind == opExits || f.kind == closesComm && f.comm == 0
}

func (f *randomFault) String() string {
	return fmt.Sprintf("%s %s on rank %d, communicator %d, #%d, delay %v, nth %d, leaves %t",
		faultNames[f.kind], twistNames[f.twist], f.rank, f.comm, f.op, f.delay, f.nth, f.leave)
}

// drawFault finds a fault that fits the program; nil if none does.
func drawFault(p *randomProgram) *randomFault {
	draw := rand.New(rand.NewPCG(p.seed, 1))
	for range 50 {
		c := p.comms[draw.IntN(len(p.comms))]
		if c.size() < 2 || len(c.ops) == 0 {
			continue
		}
		o := c.ops[draw.IntN(len(c.ops))]
		f := &randomFault{
			kind: faultKind(1 + draw.IntN(int(numFaults)-1)), rank: c.members[draw.IntN(c.size())], comm: c.id, op: o.id,
			nth: draw.IntN(4), leave: draw.IntN(3) == 0, delay: []time.Duration{-1, 0, 300, 3000}[draw.IntN(4)],
		}
		if randomFaultWanted != "" && faultNames[f.kind] != randomFaultWanted {
			continue
		}
		if f.delay > 0 {
			f.delay = time.Duration(draw.IntN(int(f.delay))) * time.Microsecond
		}
		if f.fits(c, o, draw) {
			return f
		}
	}
	return nil
}

// fits tells whether the fault can happen there, and draws how.
func (f *randomFault) fits(c *randomComm, o *randomOp, draw *rand.Rand) bool {
	call, reduces := o.kind == callOp, o.kind == callOp && o.call.op != ""
	switch f.kind {
	case cancels:
		return call || o.kind == deriveOp || o.kind == recvOp && c.members[o.msg.to] == f.rank
	case twists:
		f.twist = randomTwist(1 + draw.IntN(int(numTwists)-1))
		switch f.twist {
		case twistSplit, twistPlan:
			return o.kind == deriveOp && (f.twist == twistSplit || o.derive.how != "dup" && o.derive.how != "split" && o.derive.colors[0] == 0)
		case twistOp:
			return reduces && o.call.count > 0
		case twistNamed: // between users' own operations the name is all that is compared
			return reduces && o.call.count > 0 && !randomTypes[o.call.elem].users(o.call.op)
		case twistCommutes:
			return reduces && randomTypes[o.call.elem].users(o.call.op)
		case twistCount:
			return call && o.call.coll != tasks.Barrier && o.call.counts == nil && o.call.rows == nil
		}
		return call
	case opPanics, opExits, opCalls:
		return reduces && randomTypes[o.call.elem].users(o.call.op) && o.call.count > 0
	}
	return true
}

// meets tells whether this rank meets one of these faults at an operation.
func (p *randomPlayer) meets(o *randomOp, kinds []faultKind) bool {
	return p.faultIs(o, kinds) && p.fault.rank == p.rank
}

func (p *randomPlayer) faultIs(o *randomOp, kinds []faultKind) bool {
	return p.fault != nil && p.fault.op == o.id && p.fault.comm == p.spec.id && slices.Contains(kinds, p.fault.kind)
}

// twist is how this rank's call differs from the others'; 0 if it doesn't.
func (p *randomPlayer) twist(o *randomOp) randomTwist {
	if !p.meets(o, []faultKind{twists}) {
		return 0
	}
	p.fired.Store(true)
	return p.fault.twist
}

// twistCall makes a call another one.
func twistCall[T comparable](a *activeCall[T], twist randomTwist) {
	switch twist {
	case twistColl:
		others := []tasks.Collective{tasks.Barrier, tasks.Bcast, tasks.Allgather, tasks.Gather, tasks.Scatter}
		others = slices.DeleteFunc(others, func(c tasks.Collective) bool { return c == a.r.coll })
		a.r.coll, a.r.counts, a.r.rows, a.r.op = others[a.p.fault.nth], nil, nil, ""
	case twistCount:
		a.r.count++
	case twistOp:
		for i := range a.e.ops {
			if a.e.ops[i].op != a.op.op {
				a.op = a.e.ops[i]
				break
			}
		}
	case twistNamed: // with the same input: who combines with it must not get away with that
		name := a.op.op.String()
		a.op.op = tasks.UserOp(name, a.op.op.Commutative(), func(_, b T) T { return a.e.value(mix(uint64(len(name)), 5)) })
		return
	case twistCommutes:
		a.op.op = tasks.UserOp(a.op.op.String(), !a.op.op.Commutative(), a.op.fold)
		return
	default:
		return
	}
	a.salt = 1 + a.p.p.seed
}

// errRandomCancel is the cause of a cancelled context.
var errRandomCancel = errors.New("had enough of this program")

// errRandomGivesUp is the cause when a rank gives up a wait that would never end.
var errRandomGivesUp = errors.New("gave up what was started")

// context returns the context of a call: on a rank to be cancelled one that will be,
// else one that ends after the call or with the communicator's goroutine.
func (p *randomPlayer) context(o *randomOp) (context.Context, func(error)) {
	if p.meets(o, []faultKind{cancels}) && p.fired.CompareAndSwap(false, true) {
		ctx, end := context.WithCancelCause(context.Background())
		cancel := func() {
			end(errRandomCancel)
			if o.kind == recvOp { // it ends alone, and nobody else would know
				_ = p.comm.Revoke(errRandomCancel) // of a communicator that is made
			}
		}
		if p.fault.delay >= 0 {
			time.AfterFunc(p.fault.delay, cancel)
			return ctx, func(error) {}
		}
		cancel()
		return ctx, func(err error) {
			if !errors.Is(err, errRandomCancel) && !unplanned(err) {
				p.wrong("%v with a context that was done returned %v", o, err)
			}
		}
	}
	if p.noise.IntN(2) == 0 {
		return p.ctx, func(error) {}
	}
	ctx, cancel := context.WithCancel(p.ctx)
	return ctx, func(error) { cancel() }
}

// depart closes what the fault says; calls on it are over from then on.
func (p *randomPlayer) depart(o *randomOp) {
	p.fired.Store(true)
	if p.fault.nth%2 == 0 { // else in the middle of what was started
		if err := p.settle(o.at); err != nil {
			p.wrong("%v", err)
		}
	}
	p.say("closes early")
	if p.fault.closesWorld() {
		p.closed("world", p.world.Close()) // an error if other communicators are in use
	} else if err := p.comm.Close(); err != nil && len(p.open) == 0 {
		p.wrong("close: %w", err)
	}
	p.drain()
	if err := planner.Barrier(context.Background(), p.comm); err == nil {
		p.wrong("a call after Close returned no error")
	}
}

// fail is what a rank does after an error: nothing on the communicator may hang or succeed.
func (p *randomPlayer) fail(err error) {
	breaks := p.fault != nil && p.fault.comm == p.spec.id && !p.fault.closesWorld() && slices.Contains(breakFaults, p.fault.kind)
	if !breaks {
		p.giveUp(errRandomGivesUp) // a receive from one who gave up sending, or from itself
	}
	p.drain()
	p.say("tries whether it is broken: %v", err)
	var again error
	for tries := 0; again == nil && tries < 20; tries++ { // some may meet those of one who has left since
		if again = trial(p.comm); again == nil && (breaks || tries == 19) {
			p.wrong("a call after %q returned no error", err)
		}
	}
	if again != nil {
		p.note(&randomOp{id: -1}, again)
	}
	p.ended = true
}

// trial is a call that no program makes: it can't stand in for one that others wait for.
func trial(c *planner.Comm) error {
	_, err := c.Any(context.Background(), true)
	return err
}

// drain waits for what was started, which ends somehow.
func (p *randomPlayer) drain() {
	for _, f := range p.open {
		_ = p.wait(f)
	}
	p.open = nil
}

// evil is a user's operation that goes wrong on the culprit.
func evil[T comparable](p *randomPlayer, fold func(a, b T) T) func(a, b T) T {
	if p.fault.rank != p.rank {
		return fold
	}
	var calls atomic.Int64
	return func(a, b T) T {
		if calls.Add(1) == int64(1+p.fault.nth) {
			p.fired.Store(true)
			switch p.fault.kind {
			case opPanics:
				panic("evil")
			case opExits:
				runtime.Goexit()
			case opCalls:
				_ = planner.Barrier(context.Background(), p.comm)
			}
		}
		return fold(a, b)
	}
}
