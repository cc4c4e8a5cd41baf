//go:build linux

package executor_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/internal/faulty"
	"github.com/tierflow/tierflow/executor/proc"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// sealComm seals a communicator with a barrier by a plan.
func sealComm(t failer, c *executor.Comm, h *levels.Topology, plan string) {
	t.Helper()
	sub, err := h.Sub(c.Ranks())
	if err != nil {
		t.Fatal(err)
	}
	b, err := job{topology: sub, request: tasks.Request{Coll: tasks.Barrier}, plan: tasktest.Plan(t, plan)}.compile(c.Rank())
	if err == nil {
		err = c.Seal(b.Rest)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// endings are how calls have ended on each rank of the world: true is well.
type endings struct {
	mu    sync.Mutex
	calls map[call]map[levels.Rank]bool
}

// call is one on a communicator.
type call struct {
	comm executor.CommID
	n    int
}

func (o *endings) note(c *executor.Comm, n int, r levels.Rank, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := call{c.ID(), n}
	if o.calls[at] == nil {
		o.calls[at] = map[levels.Rank]bool{}
	}
	o.calls[at][r] = err == nil
}

// compare returns the calls that have not ended alike on all who live. Who has not made a call has failed in it.
func (o *endings) compare(living []levels.Rank) (different []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for at, ended := range o.calls {
		well := 0
		for _, r := range living {
			if ended[r] {
				well++
			}
		}
		if well != 0 && well != len(living) {
			different = append(different, fmt.Sprintf("call %d on %v ended well on %d of %v: %v", at.n, at.comm, well, living, ended))
		}
	}
	return different
}

// sealedLife is what a rank does in a test of sealed calls: it starts some, waits for them in an order of its own, and goes
// on with those who live when one has failed.
type sealedLife struct {
	*casualties
	ends   endings
	h      *levels.Topology
	plan   string
	count  int
	after  int // calls on a communicator before a rank is to die
	seal   bool
	failed atomic.Int64 // communicators on which a call has failed, on each rank
}

// onTheirWay is how many calls are on their way at most.
const onTheirWay = 3

func (l *sealedLife) live(ctx context.Context, t testing.TB, me levels.Rank, seed uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.mu.Lock()
	l.ended[me] = cancel
	l.mu.Unlock()
	order := rand.New(rand.NewPCG(seed, uint64(me))) // its own
	comm := l.p.Endpoint(me).Comm(0)
	for !l.isDead(me) {
		if l.seal {
			sealComm(t, comm, l.h, l.plan)
		}
		done, err := l.callUntil(ctx, t, comm, me, order)
		switch {
		case l.isDead(me):
			return nil
		case done:
			return err
		case !names(err, everyone(l.p.World)...) && !errors.Is(err, executor.ErrRevoked):
			return err
		}
		l.failed.Add(1)
		l.strike(2*time.Millisecond, true)
		s, err := comm.Shrink(ctx)
		if l.isDead(me) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("shrink of %d: %w", comm.Size(), err)
		}
		comm = s.Comm
	}
	return nil
}

// callUntil calls until something fails, or enough have died: all numbers say so then.
func (l *sealedLife) callUntil(ctx context.Context, t testing.TB, comm *executor.Comm, me levels.Rank, order *rand.Rand) (done bool, err error) {
	var runs [onTheirWay]*executor.Run
	var numbers [onTheirWay][]int64
	for i := range runs {
		numbers[i] = make([]int64, l.count)
		runs[i] = sumOn(t, comm, l.h, l.plan, numbers[i])
	}
	for n := 0; ; n += onTheirWay {
		if n >= l.after {
			l.strike(2*time.Millisecond, false)
		}
		started := 0
		for i := range runs {
			fillNumbers(numbers[i], me, l.enough())
			if failed := runs[i].Start(ctx); failed != nil {
				l.ends.note(comm, n+i, me, failed)
				err = failed
				break
			}
			started++
		}
		for _, i := range order.Perm(started) {
			failed := runs[i].Wait(ctx)
			if !l.isDead(me) {
				l.ends.note(comm, n+i, me, failed)
			}
			if failed != nil {
				err = failed
			} else if wrong := l.check(comm, numbers[i]); wrong != nil && !l.isDead(me) {
				return true, fmt.Errorf("call %d: %w", n+i, wrong)
			}
		}
		if err != nil || numbers[0][1] == int64(comm.Size()) {
			return err == nil, err
		}
	}
}

// runSealed lets ranks live and die, and returns the calls that have ended differently on survivors.
func runSealed(t testing.TB, seed uint64, seal bool) (l *sealedLife, different []string) {
	draw := rand.New(rand.NewPCG(seed, 0))
	topo := []string{"2x2", "1x4", "3x2", "1x3", "4x1", "2x3"}[draw.IntN(6)]
	h, _ := parse(t, topo, "")
	p := openProcesses(t, h, proc.Config{}, nil)
	executor.Disturb(p.World, faulty.Faults{Seed: seed})
	defer func() {
		if err := p.Close(); err != nil && !errors.Is(err, executor.ErrClosed) {
			t.Logf("close: %v", err)
		}
	}()
	l = &sealedLife{
		casualties: newCasualties(p, draw), h: h, plan: shrinkPlans[draw.IntN(len(shrinkPlans))], count: 2 + draw.IntN(3000),
		after: draw.IntN(30), seal: seal,
	}
	l.ends.calls = map[call]map[levels.Rank]bool{}
	for r, err := range ranks(t, p.World, func(ctx context.Context, r int) error { return l.live(ctx, t, levels.Rank(r), seed) }) {
		if err != nil {
			t.Errorf("%s, %s, %d numbers, kills of %v: rank %d: %v", topo, l.plan, l.count, l.order[:l.next], r, err)
		}
	}
	var living []levels.Rank
	for r := range levels.Rank(p.Size()) {
		if !l.isDead(r) {
			living = append(living, r)
		}
	}
	return l, l.ends.compare(living)
}

// A call on a sealed communicator ends well on all survivors or on none, whenever ranks die.
func TestSealedKills(t *testing.T) {
	kills := killsOf(t)
	var done, inside, failed atomic.Int64
	for done.Load() < kills && !t.Failed() {
		seeds(t, 12, func(t testing.TB, seed uint64) {
			l, different := runSealed(t, seed, true)
			for _, text := range different {
				t.Error(text)
			}
			done.Add(int64(l.next))
			inside.Add(l.inside.Load())
			failed.Add(l.failed.Load())
		})
	}
	t.Logf("%d kills, %d of them while others agreed; %d times a call failed on a rank", done.Load(), inside.Load(), failed.Load())
}

// Without a seal calls end differently on survivors: the test before this can fail.
func TestUnsealedKills(t *testing.T) {
	for range 50 {
		_, different := runSealed(seeded{t, 0}, rand.Uint64(), false)
		if len(different) > 0 {
			return
		}
	}
	t.Error("no call of 50 jobs without seals has ended differently on survivors")
}
