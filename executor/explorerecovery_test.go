package executor_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules/check/casegen"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// recovery is what ranks do after their calls have ended: they agree who goes on, and those call an allreduce. Agreements
// have goroutines and timers: all is in a bubble, and time passes when the adversary lets it, or when nothing else can happen.
type recovery struct {
	t      failer
	ctx    context.Context
	cancel context.CancelFunc
	asked  []*question   // by rank; nil: not yet. Nil without recoveries
	slept  time.Duration // while something else could happen
	idled  time.Duration // while nothing else could, since anything did
}

// question is a rank's part of the agreement.
type question struct {
	gaveUp   bool // the communicator, which was whole
	answered bool
	shrunk   *executor.Shrunk
	err      error
	run      *executor.Run // nil: not begun
	sum      []int32
	done     bool
}

// An agreement may be kept waiting for longestSleep. One in which nothing happens for longestIdle hangs.
const (
	longestSleep = 3 * time.Second
	longestIdle  = time.Minute
)

func (p *play) beginRecovery(t failer) {
	if !p.stage.isInBubble() {
		return
	}
	p.recovery = recovery{t: t, asked: make([]*question, len(p.links))}
	p.ctx, p.cancel = context.WithCancel(context.Background())
}

func (p *play) endRecovery() {
	if p.cancel != nil {
		p.cancel()
		time.Sleep(time.Minute) // connections for notes end by themselves
	}
}

// sleepTime is how much time passes at once.
const sleepTime = 10 * time.Millisecond

// settle returns when a rank's process has done what a note or a loss makes it do.
func (p *play) settle(e *executor.Endpoint) {
	if p.stage.isInBubble() {
		synctest.Wait()
	} else {
		executor.AwaitApart(e)
	}
}

// listRecovery lists the moves of a recovery.
func (p *play) listRecovery() {
	if !p.stage.isInBubble() {
		return
	}
	waits := false
	for r, q := range p.asked {
		switch {
		case p.stage.odd != nil:
			waits = waits || p.open[r] > 0
		case p.isDead(levels.Rank(r)), levels.Rank(r) == p.gone:
		case q == nil && p.next[r] == len(p.acts) && p.open[r]+p.besides[r] == 0 && p.mustAsk(levels.Rank(r)):
			p.moves = append(p.moves, move{shrinkMove, levels.Rank(r), 0})
		case q == nil:
		case !q.answered:
			waits = true
		case q.err == nil && q.run == nil && !q.done:
			p.moves = append(p.moves, move{goOnMove, levels.Rank(r), 0})
		}
	}
	if p.stage.odd != nil && slices.ContainsFunc(p.moves, func(m move) bool { return m.kind != startMove }) {
		waits = false // what is on its way comes within a second; only programs may take their time
	}
	if waits && (len(p.moves) > 0 && p.slept < longestSleep || len(p.moves) == 0 && p.idled < longestIdle) {
		p.moves = append(p.moves, move{sleepMove, 0, 0})
	}
}

// mustAsk reports whether a rank has met a failure on the first communicator.
func (p *play) mustAsk(r levels.Rank) bool {
	return p.comm(r, false).Failed() || slices.ContainsFunc(p.acts, func(acts []*act) bool {
		return acts[r].err != nil && !acts[r].call.beside && !errors.Is(acts[r].err, executor.ErrTruncated)
	})
}

// recover does a move of a recovery.
func (p *play) recover(m move) error {
	switch m.kind {
	case shrinkMove:
		c := p.comm(m.rank, false)
		q := &question{gaveUp: !c.Failed() && !c.Limited()}
		p.asked[m.rank] = q
		go func() {
			q.shrunk, q.err = c.Shrink(p.ctx)
			q.answered = true
		}()
	case goOnMove:
		q := p.asked[m.rank]
		n := len(q.shrunk.Old)
		if n == 1 {
			q.done = true // there is nobody to call anything with
			return nil
		}
		c := casegen.Case{
			Topology: tasktest.Topology(p.t, fmt.Sprintf("1x%d", n)), Plan: tasktest.Plan(p.t, "shape=flat-ar,fs=all,w=1,sar=nbc/recdoubling,iar=nbc/recdoubling"),
			Request: tasks.Request{Coll: tasks.Allreduce, Count: 3, Type: tasks.Int32, Op: tasks.Sum},
		}
		q.sum = make([]int32, 3)
		mine := []int32{1 << m.rank, 1 << m.rank, 1 << m.rank}
		q.run = job{p.world, c.Topology, c.Request, c.Plan}.bindOne(p.t, q.shrunk.Comm, raw(mine), raw(q.sum))
		if err := q.run.Start(context.Background()); err != nil {
			q.done = true // as a member has died
			var peer *executor.PeerError
			if !errors.As(err, &peer) || !p.isOut(q.shrunk.Old[peer.Rank]) {
				return err
			}
		}
	case sleepMove:
		if len(p.moves) == 1 {
			p.idled += sleepTime
		} else {
			p.slept += sleepTime
		}
		time.Sleep(sleepTime)
		if p.stage.odd != nil {
			time.Sleep(wire.Tick)
			for r := range p.links {
				executor.LookAround(p.world.Endpoint(levels.Rank(r)))
			}
		}
	}
	return nil
}

// collectRecovery looks at answers and results: all get the same answer, and the sum of those that go on, unless one of them
// has died since.
func (p *play) collectRecovery() error {
	var first *executor.Shrunk
	for r, q := range p.asked {
		if q == nil || !q.answered || p.isOut(levels.Rank(r)) {
			continue
		}
		if q.err != nil {
			return fmt.Errorf("rank %d can't go on: %w", r, q.err)
		}
		if first == nil {
			first = q.shrunk
		}
		if !slices.Equal(first.Old, q.shrunk.Old) {
			return fmt.Errorf("ranks %d go on for one, ranks %d for rank %d", first.Old, q.shrunk.Old, r)
		}
		if q.done || q.run == nil || !q.run.Done() {
			continue
		}
		q.done = true
		want := int32(0)
		for _, old := range q.shrunk.Old {
			want += 1 << old
		}
		var peer *executor.PeerError
		switch err := q.run.Wait(context.Background()); {
		case err == nil && slices.Equal(q.sum, []int32{want, want, want}):
		case err == nil:
			return fmt.Errorf("rank %d has the sum %d of ranks %d; want %d", r, q.sum, q.shrunk.Old, want)
		case !errors.As(err, &peer) || !p.isOut(q.shrunk.Old[peer.Rank]):
			return fmt.Errorf("rank %d goes on: %w", r, err)
		}
	}
	return nil
}

// gaveUp reports whether a rank has given up the communicator by itself, after an error of its own message.
func (p *play) gaveUp(r levels.Rank) bool {
	return p.stage.recovers && p.asked[r] != nil && p.asked[r].gaveUp
}

// isGivenUp reports whether any rank has asked who goes on: then all calls fail.
func (p *play) isGivenUp() bool {
	return slices.ContainsFunc(p.asked, func(q *question) bool { return q != nil })
}

// isOut reports whether a rank has died or left.
func (p *play) isOut(r levels.Rank) bool { return p.isDead(r) || r == p.gone }

// endOfRecovery looks at a state in which nothing more can happen.
func (p *play) endOfRecovery() error {
	for r, q := range p.asked {
		if !p.isOut(levels.Rank(r)) && (q == nil || !q.done) && (q != nil || p.mustAsk(levels.Rank(r))) {
			return fmt.Errorf("rank %d never goes on: %+v", r, q)
		}
	}
	return nil
}

// After one or two deaths the others agree who goes on, and go on, in whatever order they hear of them and of each other.
// TIERFLOW_TEST_EXPLORE=10m plays other jobs for that long.
func TestExploreRecovery(t *testing.T) {
	walkStages(t, 1, 60, 10, func(r *rand.Rand) *stage {
		s := drawStage(r, 3+r.IntN(3), 1+r.IntN(3))
		s.separate, s.isolated, s.direct, s.recovers = true, true, false, true
		s.deaths = r.IntN(3)
		s.cancels, s.leaves = s.deaths == 0 || r.IntN(3) == 0, r.IntN(3) == 0
		s.waitForNobody()
		if s.topology.Size() < 3 {
			return nil
		}
		return s
	})
}

// A rank may hear of an agreement before it hears of what has happened. It blames the rank that has died or left, not the one that
// asks.
func TestGivenUpBecauseOf(t *testing.T) {
	c := casegen.Case{
		Topology: tasktest.Topology(t, "4"), Plan: tasktest.Plan(t, "shape=flat,fs=all,w=1,s=adapt/ring"),
		Request: tasks.Request{Coll: tasks.Allgather, Count: 1, Type: tasks.Int32},
	}
	s := stage{topology: c.Topology, calls: []played{{Case: c}}, ahead: 1, isolated: true, whole: true, separate: true, recovers: true}
	for _, test := range []struct {
		what   string
		script []move
		via    levels.Rank // from whom rank 3 hears of the agreement
	}{
		{"a death", []move{{dieMove, 2, 0}, {lossMove, 1, 2}}, 0},
		{"a leave", []move{{leaveMove, 2, 0}, {hearMove, 1, 2}, {failMove, 1, 0}}, 1},
		{"a leave during a call", []move{{startMove, 2, 0}, {leaveMove, 2, 0}, {noteMove, 1, 2}}, 0},
		{"a cancel", []move{{startMove, 2, 0}, {cancelMove, 2, 0}, {noteMove, 1, 2}}, 0},
	} {
		s.deaths, s.leaves, s.cancels = 1, true, true
		script := slices.Concat([]move{{startMove, 0, 0}, {startMove, 1, 0}, {startMove, 3, 0}}, test.script,
			[]move{{shrinkMove, 1, 0}, {noteMove, 0, 1}, {noteMove, 3, test.via}})
		t.Run(test.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlay(t, &s)
				p.begin(t)
				defer p.close(t)
				for _, m := range script {
					if !slices.Contains(p.moves, m) {
						t.Fatalf("%v is none of %v", m, p.moves)
					}
					if err := p.do(m); err != nil {
						t.Fatal(err)
					}
				}
				for _, r := range []int{0, 3} {
					if a := p.acts[0][r]; !names(a.err, 2) {
						t.Errorf("rank %d: %v", r, a.err)
					}
				}
			})
		})
	}
}
