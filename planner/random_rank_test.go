package planner_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/planner"
)

// randomShared is what ranks of one process know of each other.
type randomShared struct {
	entered []atomic.Int32 // by operation: ranks that have begun a run
}

// randomRank is one rank of a program.
type randomRank struct {
	p      *randomProgram
	fault  *randomFault
	rank   int
	world  *planner.Comm
	shared *randomShared // nil: a process of its own
	all    sync.WaitGroup
	calls  atomic.Int64
	fired  atomic.Bool // the fault has come over this rank

	mu      sync.Mutex
	report  randomReport
	after   []func() error
	end     []func()
	players []*randomPlayer
}

// randomReport is what a rank has to say.
type randomReport struct {
	Rank   int
	Calls  int64
	Fired  bool
	Made   []int    // communicators
	Wrong  []string // what can't be right, whatever went wrong before
	Errors []randomError
}

// randomError is an error that a call returned.
type randomError struct {
	Comm, Op int
	Kinds    errorKinds
	Text     string
}

// errorKinds says what an error is.
type errorKinds uint16

const (
	isBroken errorKinds = 1 << iota
	isClosed
	isMismatch
	isPeer
	isStep
	isCancel
	gaveUp
)

func kindsOf(err error) (k errorKinds) {
	for kind, is := range map[errorKinds]bool{
		isBroken: errors.Is(err, planner.ErrBroken), isClosed: errors.Is(err, planner.ErrClosed),
		isMismatch: errors.Is(err, planner.ErrMismatch), isPeer: errors.As(err, new(*planner.PeerError)),
		isStep: errors.As(err, new(*planner.StepError)), isCancel: errors.Is(err, errRandomCancel),
		gaveUp: errors.Is(err, errRandomGivesUp),
	} {
		if is {
			k |= kind
		}
	}
	return k
}

// wrong notes a failure of the program under test.
func (r *randomRank) wrong(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Wrong = append(r.report.Wrong, fmt.Errorf(format, args...).Error())
}

// note keeps an error, which may or may not be one that was to come.
func (p *randomPlayer) note(o *randomOp, err error) {
	if different := (*planner.MismatchError)(nil); errors.As(err, &different) && different.Request == different.PeerWants {
		p.wrong("%v: a mismatch that says twice the same: %w", o, err)
	}
	text := err.Error()
	if p.shared == nil {
		text = fmt.Sprint("in a process: ", text)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report.Errors = append(p.report.Errors, randomError{p.spec.id, o.id, kindsOf(err), text})
}

// later has something looked at when all goroutines of the rank have ended.
func (r *randomRank) later(check func() error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.after = append(r.after, check)
}

// atEnd has something done after that.
func (r *randomRank) atEnd(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end = append(r.end, f)
}

// closed looks at what Close returned: an error only if something went wrong before.
func (r *randomRank) closed(what string, err error) {
	if err != nil && (r.fault == nil || kindsOf(err) == 0) {
		r.wrong("close %s: %w", what, err)
	}
}

// begin lets a goroutine play a communicator.
func (r *randomRank) begin(spec *randomComm, comm *planner.Comm) {
	p := &randomPlayer{
		randomRank: r, spec: spec, comm: comm, me: comm.Rank(), kept: map[int]*keptCall{},
		noise: rand.New(rand.NewPCG(r.p.seed, mix(uint64(r.rank), uint64(spec.id)))),
	}
	p.say("begins")
	r.mu.Lock()
	r.report.Made = append(r.report.Made, spec.id)
	r.players = append(r.players, p)
	r.mu.Unlock()
	r.all.Go(p.play)
}

// live plays the rank.
func (r *randomRank) live() randomReport {
	r.begin(r.p.comms[0], r.world)
	r.all.Wait()
	r.closed("world", r.world.Close())
	if len(r.after) > 0 {
		clocktest.Pause(context.Background(), 2*time.Millisecond) // who would still write
	}
	for _, check := range r.after {
		if err := check(); err != nil {
			r.wrong("%w", err)
		}
	}
	for _, f := range r.end {
		f()
	}
	r.report.Rank, r.report.Calls, r.report.Fired = r.rank, r.calls.Load(), r.fired.Load()
	return r.report
}

// where says what the rank's goroutines do.
func (r *randomRank) where() (text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.players {
		text += fmt.Sprintf("rank %d, communicator %d: %s\n", r.rank, p.spec.id, *p.stage.Load())
	}
	for _, w := range r.report.Wrong {
		text += fmt.Sprintf("rank %d: wrong: %s\n", r.rank, w)
	}
	return text
}

// judge lists what is wrong in the ranks' reports.
func (p *randomProgram) judge(reports []randomReport) (wrong []string) {
	made, fired := map[int]int{}, false
	for _, r := range reports {
		fired = fired || r.Fired
		for _, c := range r.Made {
			made[c]++
		}
		for _, w := range r.Wrong {
			wrong = append(wrong, fmt.Sprintf("rank %d: %s", r.Rank, w))
		}
	}
	for _, r := range reports {
		for _, e := range r.Errors {
			if why := p.unexpected(e, made[e.Comm], fired); why != "" {
				wrong = append(wrong, fmt.Sprintf("rank %d, communicator %d, #%d: %s: %s", r.Rank, e.Comm, e.Op, why, e.Text))
			}
		}
	}
	return wrong
}

// descends tells whether a communicator is one of these, or made of one.
func (p *randomProgram) descends(c *randomComm, from []int) bool {
	for !slices.Contains(from, c.id) {
		if c.parent < 0 {
			return false
		}
		c = p.comm(c.parent)
	}
	return true
}

// unexpected says why an error can't be, "" if it can.
func (p *randomProgram) unexpected(e randomError, made int, fired bool) string {
	c, f := p.comm(e.Comm), p.fault
	switch {
	case f == nil || !fired:
		return "nothing has gone wrong before"
	case e.Kinds == 0:
		return "an error of no known kind"
	// A mismatch can always be: a rank that has failed tries a barrier, maybe before
	// others have heard of it.
	case e.Kinds&isCancel != 0 && f.kind != cancels, e.Kinds&isStep != 0 && f.kind < opPanics:
		return "it has another reason"
	case e.Comm == f.comm, made < c.size():
		return ""
	case f.twist == twistPlan && p.descends(c, p.find(f.op).derive.children):
		return "" // what is made of a communicator inherits its plans
	}
	for _, rank := range c.members {
		if rank == f.rank && f.closesWorld() {
			return ""
		}
	}
	return "this communicator was all right"
}
