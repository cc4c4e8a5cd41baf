package planner_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// randomPlayer plays what happens on one communicator on one rank.
type randomPlayer struct {
	*randomRank
	spec  *randomComm
	comm  *planner.Comm
	me    int        // in the communicator
	noise *rand.Rand // what differs between ranks
	kept  map[int]*keptCall
	open  []flying
	stage atomic.Pointer[string] // for reports of what hangs
	ended bool

	ctx    context.Context // ends with play
	giveUp context.CancelCauseFunc
}

// keptCall is a collective that may run again.
type keptCall struct {
	call randomCall
	last error
}

// flying is what was started. Waiting for it is safe once the communicator's list is
// beyond ready.
type flying struct {
	what  string
	o     *randomOp
	ready int
	wait  func() error
}

func (p *randomPlayer) size() int { return p.spec.size() }

func (p *randomPlayer) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	p.stage.Store(&text)
}

// play is the life of a communicator's goroutine.
func (p *randomPlayer) play() {
	p.ctx, p.giveUp = context.WithCancelCause(context.Background())
	defer p.giveUp(nil)
	defer p.leave()
	for _, o := range p.spec.ops {
		p.pauseAtRandom()
		p.say("%v", o)
		if p.meets(o, closeFaults) {
			p.depart(o)
			p.ended = true
			return
		}
		if err := p.settleSome(o.at); err != nil {
			p.fail(err)
			return
		}
		p.calls.Add(1)
		if err := p.do(o); err != nil {
			p.note(o, err)
			p.fail(err)
			return
		}
	}
	if err := p.settle(1 << 30); err != nil {
		p.fail(err)
		return
	}
	p.ended = true
}

// leave closes the communicator at once, after some time, or with the world; and looks
// once more at what collectives have left in the buffers.
func (p *randomPlayer) leave() {
	if r := recover(); r != nil {
		buf := make([]byte, 32<<10)
		p.wrong("%s: panic: %v\n%s", *p.stage.Load(), r, buf[:runtime.Stack(buf, false)])
	} else if !p.ended && (p.fault == nil || p.fault.kind != opExits) {
		p.wrong("%s: the goroutine ended", *p.stage.Load())
	}
	defer func() { // of a goroutine that ended in a call the buffers are not its own before it has closed
		for _, k := range p.kept {
			k.call.over(k.last, true)
		}
	}()
	leaves := !p.ended || p.fault != nil && p.fault.leave && p.fault.rank == p.rank && p.fault.comm == p.spec.id && p.fired.Load()
	p.say("closes")
	switch when := p.noise.IntN(4); {
	case leaves:
		p.closed("world", p.world.Close())
	case p.spec.id == 0:
	case when == 0:
		clocktest.Pause(context.Background(), time.Duration(p.noise.IntN(2000))*time.Microsecond)
		fallthrough
	case when == 1:
		p.closed("communicator", p.comm.Close())
	}
	p.say("has left")
}

// pauseAtRandom lets the ranks come at different times.
func (p *randomPlayer) pauseAtRandom() {
	switch k := p.noise.IntN(40); {
	case k == 0:
		clocktest.Pause(context.Background(), time.Duration(p.noise.IntN(2000))*time.Microsecond)
	case k < 6:
		for range p.noise.IntN(20) {
			runtime.Gosched()
		}
	}
}

// do makes an operation; an error is one that nobody expects without a fault.
func (p *randomPlayer) do(o *randomOp) error {
	switch o.kind {
	case callOp:
		return p.doCall(o)
	case againOp:
		if k := p.kept[o.again]; k != nil {
			return p.runOnce(o, k)
		}
		return nil // no plan is good for it
	case deriveOp:
		return p.derive(o)
	case sendOp, recvOp:
		return p.doTransfer(o)
	}
	return p.settle(o.at)
}

// unplanned tells errors of calls that the forced plans can't do, on all ranks alike.
func unplanned(err error) bool {
	return errors.Is(err, submodules.ErrUnsupported) || errors.Is(err, tasks.ErrPlan)
}

func (p *randomPlayer) doCall(o *randomOp) error {
	twist := p.twist(o)
	if twist != 0 && p.impossible(o) { // then the others don't call it: theirs could be the next
		p.fired.Store(false)
		if o.call.rows == nil || o.call.told {
			return nil
		}
		twist = 0 // they tell each other their counts before they find out
	}
	err := p.callAs(o, twist)
	if unplanned(err) && twist != 0 { // what the others call may be possible all the same
		p.fired.Store(false)
		err = p.callAs(o, 0)
	}
	if unplanned(err) {
		return nil
	}
	return err
}

// impossible tells whether the forced plans can't do a call.
func (p *randomPlayer) impossible(o *randomOp) bool {
	tried, prepared := *o, *o.call
	prepared.way, prepared.told = wayRuns, true // which is local
	tried.call = &prepared
	call := randomTypes[o.call.elem].call(p, &tried, 0)
	err := call.create()
	call.drop()
	return unplanned(err)
}

// callAs makes a call, or another one in its place.
func (p *randomPlayer) callAs(o *randomOp, twist randomTwist) error {
	call := randomTypes[o.call.elem].call(p, o, twist)
	if err := call.create(); err != nil {
		call.drop()
		return err
	}
	switch o.call.way {
	case wayNow:
		ctx, done := p.context(o)
		err := call.now(ctx)
		done(err)
		if unplanned(err) {
			call.drop()
			return err
		}
		call.over(err, true)
		return err
	case wayRuns:
		k := &keptCall{call: call}
		p.kept[o.id] = k
		for range o.call.runs {
			if err := p.runOnce(o, k); err != nil {
				return err
			}
		}
		return nil
	}
	ctx, done := p.context(o)
	wait, err := call.start(ctx)
	if err != nil {
		done(err)
		call.over(err, true)
		return err
	}
	p.open = append(p.open, flying{fmt.Sprint(o), o, -1, func() error {
		err := wait()
		done(err)
		call.over(err, true)
		return err
	}})
	return nil
}

func (p *randomPlayer) runOnce(o *randomOp, k *keptCall) error {
	ctx, done := p.context(o)
	k.last = k.call.run(ctx)
	done(k.last)
	k.call.over(k.last, false)
	return k.last
}

func (p *randomPlayer) doTransfer(o *randomOp) error {
	m := o.msg
	now := m.sendNow
	if o.kind == recvOp {
		now = m.recvNow
	}
	if mine := map[randomKind]int{sendOp: m.from, recvOp: m.to}[o.kind]; mine != p.me {
		return nil
	}
	t := randomTypes[m.elem].transfer(p, o)
	ctx, done := p.context(o)
	after := func(err error) error {
		done(err)
		t.over(err)
		switch {
		case o.kind == recvOp && m.truncated && errors.Is(err, planner.ErrTruncated):
			return nil
		case !m.received && errors.Is(err, planner.ErrClosed) && errors.As(err, new(*planner.PeerError)):
			return nil // the receiver has left without it
		}
		return err
	}
	if now {
		return after(t.now(ctx))
	}
	wait, err := t.start(ctx)
	if err != nil {
		return after(err)
	}
	ready := m.ready()
	if !m.received {
		ready = 1 << 29
	}
	p.open = append(p.open, flying{fmt.Sprint(o), o, ready, func() error { return after(wait()) }})
	return nil
}

// derive makes communicators and lets goroutines play them.
func (p *randomPlayer) derive(o *randomOp) error {
	d := o.derive
	ctx, done := p.context(o)
	made, err := p.deriveBy(ctx, o)
	done(err)
	if err != nil || p.twist(o) == twistSplit {
		return err
	}
	if p.fault != nil && p.fault.op == o.id && p.fault.twist == twistSplit {
		p.wrong("%v returned without an error, but rank %d called something else", o, p.fault.rank)
		return nil
	}
	color := d.colors[p.me]
	if color < 0 {
		if made != nil {
			p.wrong("%v: a communicator for a rank that wants none", o)
		}
		return nil
	}
	at := slices.Index(d.made(), color)
	i := slices.IndexFunc(p.p.comms, func(c *randomComm) bool { return c.id == d.children[at] })
	if i < 0 { // cut out
		p.closed("communicator", made.Close())
		return nil
	}
	spec := p.p.comms[i]
	me := slices.Index(spec.members, p.rank)
	if made.Rank() != me || made.Size() != spec.size() {
		p.wrong("%v: made rank %d of %d, want %d of %d", o, made.Rank(), made.Size(), me, spec.size())
		return nil
	}
	p.begin(spec, made)
	return nil
}

// anyWindow is in most plans.
var anyWindow = regexp.MustCompile(`w=\d+`)

func (p *randomPlayer) deriveBy(ctx context.Context, o *randomOp) (*planner.Comm, error) {
	d := o.derive
	switch {
	case p.twist(o) == twistSplit: // what Split is made of, as of now
		table := make([]int64, 3*p.size())
		err := planner.Allreduce(ctx, p.comm, table, table, tasks.Sum)
		if unplanned(err) { // then another call that is no Split
			_, err = p.comm.Any(ctx, true)
		}
		return nil, err
	case d.how == "split":
		return p.comm.Split(ctx, d.colors[p.me], d.keys[p.me])
	case d.how == "dup":
		return p.comm.Dup(ctx)
	case p.twist(o) == twistPlan:
		plan := anyWindow.ReplaceAllString(d.plan, "w=6") // can do what the others' can
		if plan == d.plan {
			p.fired.Store(false)
		}
		return p.comm.DupWith(ctx, plan)
	}
	return p.comm.DupWith(ctx, d.plan)
}

// settleSome waits for some of what was started, here and there.
func (p *randomPlayer) settleSome(at int) error {
	for i := 0; i < len(p.open) && p.noise.IntN(4) == 0; i++ {
		if f := p.open[i]; f.ready < at {
			p.open = slices.Delete(p.open, i, i+1)
			if err := p.wait(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// settle waits for all that can end, in any order.
func (p *randomPlayer) settle(at int) error {
	var can []flying
	p.open = slices.DeleteFunc(p.open, func(f flying) bool {
		if f.ready < at {
			can = append(can, f)
		}
		return f.ready < at
	})
	var first error
	for _, i := range p.noise.Perm(len(can)) {
		if err := p.wait(can[i]); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (p *randomPlayer) wait(f flying) error {
	p.say("waits for %s", f.what)
	err := f.wait()
	if err != nil {
		p.note(f.o, err)
	}
	return err
}
