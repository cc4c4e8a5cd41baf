package planner

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/launcher"
)

var (
	errNoLobby = errors.New("this job takes nobody in: start it by tierflow run --max-restarts, and grow the communicator of all ranks")
	errNobody  = errors.New("nobody waits to join")
	errOthers  = errors.New("another rank could not take them in")
)

// Waiting returns how many processes wait to join the job, as far as this rank has heard. It sends no
// message. [Comm.Turn] lets all ranks see the same.
func (c *Comm) Waiting() int {
	c.mustBeMade()
	if l := c.world.lobby(); l != nil {
		return len(l.Waiting())
	}
	return 0
}

// Grow returns a communicator of c's ranks and of at most so many processes waiting to join, the
// longest waiting first. All ranks of c call it; c is the communicator of all ranks, or its successor.
// The newcomers' [Join] returns their end of it. Ranks keep their order, and a newcomer comes behind
// the ranks of its node, or behind all; so rank 0 stays. Change.Joined has the new ranks.
//
// The next communicator is a job of its own: plans and tables are rank 0's again. c, and communicators made
// from it, are closed then. On an error none of this happens on any rank, and c is as it was: if the
// error is [Recoverable], [Comm.Shrink] can be called. The death of a newcomer meanwhile is such an error, and
// so are 30 s without all of them, unless ctx or TIERFLOW_JOIN_TIMEOUT says otherwise.
func (c *Comm) Grow(ctx context.Context, most int) (Change, error) {
	if err := c.checkCall(ctx); err != nil {
		return Change{}, fmt.Errorf("grow: %w", err)
	}
	if c.derived || c.world.lobby() == nil {
		return Change{}, fmt.Errorf("grow: %w", errNoLobby)
	}
	if most < 1 {
		return Change{}, fmt.Errorf("grow by at most %d; allowed are numbers from 1 on", most)
	}
	g, err := c.planGrowth(ctx, most)
	if err != nil {
		return Change{}, fmt.Errorf("grow: %w", err)
	}
	next, err := g.join(ctx)
	if err != nil && !g.shared { // the others wait for rank 0's text
		_, _ = g.tell(ctx, "")
	}
	all, unsaid := c.comm.Agree(ctx, err == nil)
	if unsaid == nil && all {
		change := g.change(next)
		c.moveTo(ctx, change)
		return change, nil
	}
	if next != nil {
		c.world.before.Go(func() { _ = next.close() }) // the others do so too
	}
	return Change{}, fmt.Errorf("grow: %w", cmp.Or(unsaid, c.comm.Err(), err, errOthers))
}

// growth is the plan of the next communicator's ranks.
type growth struct {
	c         *Comm
	places    []int64 // by rank of the next one: its rank in c, or -1 and below: a newcomer
	newcomers []int   // their numbers at the launcher; on rank 0 only
	shared    bool    // this rank has taken part in telling rank 0's text
}

// planGrowth returns rank 0's choice of newcomers, on all ranks.
func (c *Comm) planGrowth(ctx context.Context, most int) (*growth, error) {
	g := &growth{c: c}
	var slots []int64
	if c.Rank() == 0 {
		slots = make([]int64, c.Size())
	}
	if err := Gather(ctx, c, []int64{int64(c.world.lobby().Slot())}, slots, 0); err != nil {
		return nil, err
	}
	if c.Rank() == 0 {
		waiting := c.world.lobby().Waiting()
		g.seat(slots, waiting[:min(most, len(waiting))])
	}
	size := []int64{int64(len(g.places))}
	if err := Bcast(ctx, c, size, 0); err != nil {
		return nil, err
	}
	if int(size[0]) == c.Size() {
		return nil, errNobody
	}
	if c.Rank() != 0 {
		g.places = make([]int64, size[0])
	}
	return g, Bcast(ctx, c, g.places, 0)
}

// seat puts newcomers behind the ranks of their nodes. slots are the ranks' numbers at the launcher.
func (g *growth) seat(slots []int64, newcomers []launcher.Newcomer) {
	at := slices.Clone(slots) // by place, as g.places
	for r := range slots {
		g.places = append(g.places, int64(r))
	}
	for i, n := range newcomers {
		behind := len(at)
		for j, slot := range at {
			if slices.Contains(n.Beside, int(slot)) {
				behind = j + 1
			}
		}
		at = slices.Insert(at, behind, int64(n.Slot))
		g.places = slices.Insert(g.places, behind, int64(-1-i))
		g.newcomers = append(g.newcomers, n.Slot)
	}
}

// change returns the [Change] from c's ranks to the next.
func (g *growth) change(next *Comm) Change {
	change := Change{Comm: next}
	for r, old := range g.places {
		if old < 0 {
			old = -1
			change.Joined = append(change.Joined, r)
		}
		change.Old = append(change.Old, int(old))
	}
	return change
}

// join joins the next job. It gives up when c breaks, or when a newcomer ends.
func (g *growth) join(ctx context.Context) (*Comm, error) {
	c := g.c
	ctx, stop := whileWhole(ctx, c.comm)
	defer stop()
	ctx, leave := c.world.lobby().Follow(ctx, g.newcomers)
	defer leave()
	cfg := c.world.settings.config
	cfg.Rank, cfg.Size = levels.Rank(slices.Index(g.places, int64(c.Rank()))), len(g.places)
	cfg.Rendezvous, cfg.Listener = nil, nil
	cfg.Share = g.share
	return joinOnce(ctx, cfg, c.world.settings.options, c.world.name)
}

// share gives rank 0's text to all.
func (g *growth) share(ctx context.Context, text string) (string, error) {
	if g.c.Rank() == 0 {
		var places []launcher.Place
		for r, old := range g.places {
			if old < 0 {
				places = append(places, launcher.Place{Slot: g.newcomers[-1-old], Rank: levels.Rank(r), Size: len(g.places), Text: text})
			}
		}
		if err := g.c.world.lobby().Invite(places); err != nil {
			return "", err
		}
	}
	text, err := g.tell(ctx, text)
	if err == nil && text == "" {
		err = errOthers
	}
	return text, err
}

// tell sends rank 0's text to all ranks. It is empty if rank 0 could not begin to join.
func (g *growth) tell(ctx context.Context, text string) (string, error) {
	g.shared = true
	shared := make([]byte, launcher.MaxText)
	copy(shared, text)
	err := Bcast(ctx, g.c, shared, 0)
	return string(bytes.TrimRight(shared, "\x00")), err
}

const (
	// wholeLook is the time between two looks, while joining, whether the communicator before is whole.
	wholeLook = 20 * time.Millisecond
	// lingerTime is how long ranks still answer on a communicator after Grow, until all are known to have gone on.
	lingerTime = 10 * time.Second
)

// whileWhole returns a context with an end when c breaks.
func whileWhole(ctx context.Context, c *executor.Comm) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	var looking sync.WaitGroup
	looking.Go(func() {
		look := time.NewTicker(wholeLook)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
				if err := c.Err(); err != nil {
					cancel(err)
				}
			}
		}
	})
	return ctx, func() {
		cancel(nil)
		looking.Wait()
	}
}

// moveTo closes c after a Grow.
func (c *Comm) moveTo(ctx context.Context, change Change) {
	next := change.Comm
	sure := Barrier(ctx, next) == nil // then all know of the end of Grow
	c.succession.set(change)
	if !c.refuseCalls() {
		return
	}
	next.world.before.Go(func() {
		look := time.NewTicker(wholeLook)
		defer look.Stop()
		for end := time.Now().Add(lingerTime); !sure && !next.world.whole.Load() && time.Now().Before(end); {
			<-look.C
		}
		_ = c.leave() // deaths since then are no news
	})
}
