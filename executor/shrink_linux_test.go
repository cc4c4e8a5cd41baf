//go:build linux

package executor_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/internal/faulty"
	"github.com/tierflow/tierflow/executor/proc"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// sumOn is an in-place sum of a rank's numbers on one of its communicators.
func sumOn(t failer, c *executor.Comm, h *levels.Topology, plan string, numbers []int64) *executor.Run {
	t.Helper()
	sub, err := h.Sub(c.Ranks())
	if err != nil {
		t.Fatal(err)
	}
	r := tasks.Request{Coll: tasks.Allreduce, Count: int64(len(numbers)), Type: tasks.Int64, Op: tasks.Sum, InPlace: true}
	return job{topology: sub, request: r, plan: tasktest.Plan(t, plan)}.bindOne(t, c, nil, raw(numbers))
}

// fillNumbers fills in a rank's part of a sum: one bit for the rank, 1 if it has enough, and multiples.
func fillNumbers(numbers []int64, me levels.Rank, enough bool) {
	for i := range numbers {
		numbers[i] = int64(me) * int64(i)
	}
	numbers[0], numbers[1] = 1<<me, 0
	if enough {
		numbers[1] = 1
	}
}

// membersSum is what a sum of 1 << the rank of the world must be.
func membersSum(c *executor.Comm) (sum int64) {
	for _, r := range c.Ranks() {
		sum += 1 << r
	}
	return sum
}

// shrinkPlans are plans for any layout.
var shrinkPlans = []string{
	"shape=flat,fs=8KiB,w=2,s=adapt/binomial,i=adapt/binomial",
	"shape=han,fs=1KiB,w=2,s=sm,i=adapt/chain",
	"shape=han,fs=4KiB,w=2,s=solo,i=nbc",
	"shape=han,fs=4KiB,w=2,s=adapt/chain,i=adapt/binary",
}

// killsOf is how many ranks a test of kills lets die: few, unless the environment says otherwise.
func killsOf(t *testing.T) int64 {
	t.Helper()
	text := os.Getenv("TIERFLOW_TEST_KILLS")
	if text == "" {
		return 30
	}
	kills, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("TIERFLOW_TEST_KILLS: %v", err)
	}
	return kills
}

// Survivors of random kills, between calls, in calls and while they agree, go on with right sums.
func TestShrinkKills(t *testing.T) {
	kills := killsOf(t)
	var done, shrinks, inside atomic.Int64
	for done.Load() < kills {
		seeds(t, 4, func(t testing.TB, seed uint64) {
			draw := rand.New(rand.NewPCG(seed, 0))
			topo := []string{"2x2", "1x4", "3x2", "1x2", "2x1", "4x1", "2x3"}[draw.IntN(7)]
			h, _ := parse(t, topo, "")
			p := openProcesses(t, h, proc.Config{}, nil)
			executor.Disturb(p.World, faulty.Faults{Seed: seed})
			defer func() {
				if err := p.Close(); err != nil && !errors.Is(err, executor.ErrClosed) {
					t.Logf("close: %v", err)
				}
			}()
			c := newCasualties(p, draw)
			plan, count := shrinkPlans[draw.IntN(len(shrinkPlans))], 2+draw.IntN(3000)
			for r, err := range ranks(t, p.World, func(ctx context.Context, r int) error {
				return c.live(ctx, t, h, levels.Rank(r), plan, count)
			}) {
				if err != nil {
					t.Errorf("%s, %s, %d numbers, kills of %v: rank %d: %v", topo, plan, count, c.order[:c.next], r, err)
				}
			}
			done.Add(int64(c.next))
			shrinks.Add(c.shrinks.Load())
			inside.Add(c.inside.Load())
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d kills, %d of them while others agreed, %d shrinks", done.Load(), inside.Load(), shrinks.Load())
}

// casualties are ranks that die one after the other.
type casualties struct {
	p       *Processes
	order   []levels.Rank // who dies
	shrinks atomic.Int64
	inside  atomic.Int64
	mu      sync.Mutex
	draw    *rand.Rand
	next    int // of order
	ended   map[levels.Rank]context.CancelFunc
	waiting bool // a death is due
}

func newCasualties(p *Processes, draw *rand.Rand) *casualties {
	c := &casualties{p: p, draw: draw, ended: map[levels.Rank]context.CancelFunc{}}
	for _, r := range draw.Perm(p.Size())[:1+draw.IntN(p.Size()-1)] {
		c.order = append(c.order, levels.Rank(r))
	}
	return c
}

// strike kills the next one after a short while, unless a death is due already.
func (c *casualties) strike(most time.Duration, inside bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting || c.next == len(c.order) {
		return
	}
	c.waiting = true
	time.AfterFunc(time.Duration(c.draw.Int64N(int64(most))), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		r := c.order[c.next]
		c.p.Kill(r)
		if inside {
			c.inside.Add(1)
		}
		c.next, c.waiting = c.next+1, false
		if end := c.ended[r]; end != nil { // else it hasn't begun to live
			end()
		}
	})
}

func (c *casualties) enough() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next == len(c.order)
}

func (c *casualties) isDead(r levels.Rank) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.order[:c.next], r)
}

// live sums with those who live, until all have died who must.
func (c *casualties) live(ctx context.Context, t testing.TB, h *levels.Topology, me levels.Rank, plan string, count int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.mu.Lock()
	c.ended[me] = cancel
	c.mu.Unlock()
	comm := c.p.Endpoint(me).Comm(0)
	numbers := make([]int64, count)
	sum := sumOn(t, comm, h, plan, numbers)
	for round := 0; ; round++ {
		fillNumbers(numbers, me, c.enough())
		if round == 3 {
			c.strike(2*time.Millisecond, false)
		}
		err := sum.Do(ctx)
		switch {
		case c.isDead(me):
			return nil
		case err == nil:
			if err := c.check(comm, numbers); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
			if numbers[1] == int64(comm.Size()) {
				return nil
			}
			continue
		case !names(err, everyone(c.p.World)...):
			return fmt.Errorf("round %d: %w", round, err)
		}
		c.strike(3*time.Millisecond, true)
		s, err := comm.Shrink(ctx)
		switch {
		case c.isDead(me):
			return nil
		case err != nil:
			return fmt.Errorf("round %d, shrink of %d: %w", round, comm.Size(), err)
		}
		c.shrinks.Add(1)
		if again, err := comm.Shrink(ctx); !c.isDead(me) && (err != nil || again.Comm != s.Comm) {
			return fmt.Errorf("a second shrink: %v, %w", again, err)
		}
		if c.isDead(me) {
			return nil
		}
		comm = s.Comm
		sum = sumOn(t, comm, h, plan, numbers)
		round = 2 // and another death soon
	}
}

// check looks at each number of a sum.
func (c *casualties) check(comm *executor.Comm, numbers []int64) error {
	if want := membersSum(comm); numbers[0] != want {
		return fmt.Errorf("%w: ranks %b, want %b", errWrong, numbers[0], want)
	}
	all := int64(0)
	for _, r := range comm.Ranks() {
		all += int64(r)
	}
	for i := 2; i < len(numbers); i++ {
		if numbers[i] != all*int64(i) {
			return fmt.Errorf("%w: number %d is %d, want %d", errWrong, i, numbers[i], all*int64(i))
		}
	}
	return nil
}

// A communicator that is whole shrinks to itself: it is given up on all ranks, though only one has asked.
func TestShrinkOfWhole(t *testing.T) {
	onBoth(t, []string{"1x1", "1x3", "2x2"}, executor.Config{}, func(t *testing.T, w *executor.World, h *levels.Topology) {
		succeed(t, w, func(ctx context.Context, r int) error {
			c := w.Endpoint(levels.Rank(r)).Comm(0)
			if r > 0 {
				if err := barrierOn(t, c).Do(ctx); !errors.Is(err, executor.ErrRevoked) {
					return fmt.Errorf("error %w, want that it was given up", err)
				}
			}
			s, err := c.Shrink(ctx)
			if err != nil {
				return err
			}
			if len(s.Lost) > 0 || len(s.Old) != w.Size() || s.Comm.Size() != w.Size() {
				return fmt.Errorf("%d ranks, lost %v", s.Comm.Size(), s.Lost)
			}
			return barrierOn(t, s.Comm).Do(ctx)
		})
	})
}

// Who has closed a communicator is not in the next one, although it lives.
func TestShrinkWithoutThoseWhoLeft(t *testing.T) {
	onBoth(t, []string{"1x3", "2x2"}, executor.Config{}, func(t *testing.T, w *executor.World, h *levels.Topology) {
		bars := worldBarriers(t, w)
		succeed(t, w, func(ctx context.Context, r int) error {
			c := makeComm(t, w.Endpoint(levels.Rank(r)), 1, everyone(w))
			if r == 1 {
				return c.Close()
			}
			var old *executor.Comm
			for c.Size() == w.Size() { // the goodbye may come after the decision
				s, err := c.Shrink(ctx)
				if err != nil {
					return err
				}
				if old != nil {
					_ = old.Close()
				}
				old, c = c, s.Comm
			}
			if slices.Contains(c.Ranks(), 1) {
				return fmt.Errorf("ranks %v", c.Ranks())
			}
			if err := barrierOn(t, c).Do(ctx); err != nil {
				return err
			}
			return errors.Join(old.Close(), c.Close())
		})
		do(t, w, bars) // rank 1 is still one of all
		nothingLeft(t, w, bars)
	})
}

// Who is to go on, but leaves everything before its program knows, is waited for in no later decision.
func TestShrinkWithoutThoseWhoGaveUp(t *testing.T) {
	onBoth(t, []string{"1x3", "2x2"}, executor.Config{}, func(t *testing.T, w *executor.World, h *levels.Topology) {
		left := make(chan struct{})
		succeed(t, w, func(ctx context.Context, r int) error {
			e := w.Endpoint(levels.Rank(r))
			c := e.Comm(0)
			if r == 1 {
				defer close(left)
				c.Revoke(errEnough)
				if err := clocktest.Await(ctx, e.GoesOn); err != nil {
					return err
				}
				return e.Close()
			}
			s, err := c.Shrink(ctx)
			if err != nil {
				return err
			}
			<-left
			if s.Comm.Size() != w.Size() {
				return fmt.Errorf("goes on with %v, want all", s.Comm.Ranks())
			}
			s, err = s.Comm.Shrink(ctx)
			if err != nil {
				return err
			}
			if s.Comm.Size() != w.Size()-1 || slices.Contains(s.Comm.Ranks(), 1) {
				return fmt.Errorf("goes on with %v, want all but rank 1", s.Comm.Ranks())
			}
			return barrierOn(t, s.Comm).Do(ctx)
		})
	})
}

// Ranks agree on what all say, on whole and on broken communicators.
func TestAgree(t *testing.T) {
	onBoth(t, []string{"1x3", "2x2"}, executor.Config{}, func(t *testing.T, w *executor.World, h *levels.Topology) {
		succeed(t, w, func(ctx context.Context, r int) error {
			c := w.Endpoint(levels.Rank(r)).Comm(0)
			for round := range 12 {
				if round == 8 && r == 0 {
					c.Revoke(errEnough)
				}
				no := round%4 == 3 && r == round%w.Size()
				all, err := c.Agree(ctx, !no)
				if err != nil || all == (round%4 == 3) {
					return fmt.Errorf("round %d: %t, %w", round, all, err)
				}
			}
			_, err := c.Shrink(ctx)
			return err
		})
	})
}

// Who has gone on with another communicator says no on the one before: others that still ask there need not wait.
func TestAgreeWithThoseWhoHaveShrunk(t *testing.T) {
	onBoth(t, []string{"1x3", "2x2"}, executor.Config{}, func(t *testing.T, w *executor.World, h *levels.Topology) {
		for _, id := range []executor.CommID{0, 1} {
			var shrunk sync.WaitGroup
			shrunk.Add(w.Size() - 1)
			succeed(t, w, func(ctx context.Context, r int) error {
				c := w.Endpoint(levels.Rank(r)).Comm(0)
				if id != 0 {
					c = makeComm(t, w.Endpoint(levels.Rank(r)), id, everyone(w))
				}
				if r != 1 {
					_, err := c.Shrink(ctx)
					if err == nil && id != 0 {
						err = c.Close()
					}
					shrunk.Done()
					return err
				}
				if id == 0 {
					shrunk.Wait()
				}
				if all, err := c.Agree(ctx, true); err != nil || all {
					return fmt.Errorf("communicator %d: %t, %w", id, all, err)
				}
				_, err := c.Shrink(ctx)
				return err
			})
		}
	})
}

// A rank that dies says nothing any more; those who wait for its word go on.
func TestAgreeWithoutTheDead(t *testing.T) {
	onBoth(t, []string{"2x2"}, executor.Config{}, func(t *testing.T, w *executor.World, h *levels.Topology) {
		succeed(t, w, func(ctx context.Context, r int) error {
			c := w.Endpoint(levels.Rank(r)).Comm(0)
			if r == 0 {
				return c.Close()
			}
			for round := range 3 {
				if all, err := c.Agree(ctx, true); err != nil || !all {
					return fmt.Errorf("round %d: %t, %w", round, all, err)
				}
			}
			return nil
		})
	})
}

// A rank that the others count as lost, although it lives, soon hears so, and they go on.
func TestShrinkExcludes(t *testing.T) {
	for _, topo := range []string{"1x3", "3x1"} {
		h, _ := parse(t, topo, "")
		p := openProcesses(t, h, proc.Config{Config: executor.Config{CloseTimeout: 100 * time.Millisecond}}, nil)
		defer func() { _ = p.Close() }() // rank 2 is waited for in vain
		beside := makeComm(t, p.Endpoint(1), 1, []levels.Rank{1, 2})
		p.Lose(0, 2, errEnough)
		succeed(t, p.World, func(ctx context.Context, r int) error {
			c := p.Endpoint(levels.Rank(r)).Comm(0)
			s, err := c.Shrink(ctx)
			if r == 1 && !beside.Failed() {
				t.Error("rank 1 goes on beside with the one that is excluded")
			}
			switch {
			case r == 2 && errors.Is(err, executor.ErrExcluded):
				return nil
			case r == 2:
				return fmt.Errorf("error %w, want that it is excluded", err)
			case err != nil:
				return err
			case s.Comm.Size() != 2 || len(s.Lost) != 1 || s.Lost[0].Rank != 2 || s.Lost[0].Proven:
				return fmt.Errorf("ranks %v, lost %v", s.Comm.Ranks(), s.Lost)
			}
			return barrierOn(t, s.Comm).Do(ctx)
		})
	}
}
