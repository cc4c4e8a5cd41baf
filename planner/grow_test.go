package planner_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor/door"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/levels/join/launcher"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

// hall stands in for a launcher: it passes on who waits, and invitations.
type hall struct {
	mu      sync.Mutex
	desks   map[int]net.Conn // by number
	waiting []launcher.Newcomer
	perNode int
	running sync.WaitGroup
}

func newHall(t *testing.T, perNode int) *hall {
	h := &hall{desks: map[int]net.Conn{}, perNode: perNode}
	t.Cleanup(func() {
		h.mu.Lock()
		for _, c := range h.desks {
			c.Close()
		}
		h.mu.Unlock()
		h.running.Wait()
	})
	return h
}

// lobby returns a process's end.
func (h *hall) lobby(t *testing.T, slot int, newcomer bool) *launcher.Lobby {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	theirs, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ours, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	if before := h.desks[slot]; before != nil {
		before.Close() // that process has ended
	}
	h.desks[slot] = ours
	h.mu.Unlock()
	h.running.Go(func() {
		for lines := bufio.NewScanner(ours); lines.Scan(); {
			var n launcher.LobbyNote
			_ = json.Unmarshal(lines.Bytes(), &n)
			h.take(slot, n)
		}
	})
	return launcher.NewLobby(theirs, slot, newcomer)
}

func (h *hall) take(slot int, n launcher.LobbyNote) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n.Wait {
		var beside []int
		for s := range 32 {
			if s/h.perNode == slot/h.perNode {
				beside = append(beside, s)
			}
		}
		h.waiting = append(h.waiting, launcher.Newcomer{Slot: slot, Beside: beside})
	}
	for _, p := range n.Invite {
		h.waiting = slices.DeleteFunc(h.waiting, func(n launcher.Newcomer) bool { return n.Slot == p.Slot })
		h.tell(p.Slot, launcher.LobbyNote{Invite: []launcher.Place{p}})
	}
	for s := range h.desks {
		h.tell(s, launcher.LobbyNote{Waiting: &h.waiting})
	}
}

// end says that a process has ended.
func (h *hall) end(slot int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting = slices.DeleteFunc(h.waiting, func(n launcher.Newcomer) bool { return n.Slot == slot })
	for s := range h.desks {
		h.tell(s, launcher.LobbyNote{Ended: &slot})
		h.tell(s, launcher.LobbyNote{Waiting: &h.waiting})
	}
}

func (h *hall) tell(slot int, n launcher.LobbyNote) { _ = json.NewEncoder(h.desks[slot]).Encode(n) }

// start makes n ranks of a job that takes others in.
func (h *hall) start(t *testing.T, n int) []*planner.Comm {
	t.Helper()
	return joinPlaced(t, n, nil, func(r int, cfg *join.Config) {
		cfg.Node, cfg.Lobby = fmt.Sprintf("node%d", r/h.perNode), h.lobby(t, r, false)
	})
}

// come lets a newcomer join; its communicator comes over the channel.
func (h *hall) come(ctx context.Context, t *testing.T, slot int) chan *planner.Comm {
	t.Helper()
	return h.comeBy(ctx, t, slot, join.Config{Lobby: h.lobby(t, slot, true), Size: 2})
}

// comeBy is come by a configuration.
func (h *hall) comeBy(ctx context.Context, t *testing.T, slot int, cfg join.Config) chan *planner.Comm {
	t.Helper()
	cfg.Node, cfg.Secret = fmt.Sprintf("node%d", slot/h.perNode), "the secret of a test, which is long enough"
	came := make(chan *planner.Comm, 1)
	h.running.Go(func() {
		c, err := raw.JoinAs(ctx, cfg, nil)
		if err != nil && ctx.Err() == nil {
			t.Errorf("newcomer %d: %v", slot, err)
		}
		came <- c
	})
	return came
}

// turnUntil calls Turn on all ranks until newcomers wait.
func turnUntil(t *testing.T, comms []*planner.Comm) {
	t.Helper()
	noErrors(t, each(comms, func(ctx context.Context, c *planner.Comm) error {
		var err error
		if hangs := clocktest.Await(ctx, func() bool {
			err = c.Turn(ctx)
			return err != nil
		}); hangs != nil {
			return hangs
		}
		if !errors.Is(err, planner.ErrChange) {
			return err
		}
		return nil
	}))
}

// growAll grows all communicators, and wants a sum of all ranks afterwards.
func growAll(t *testing.T, comms []*planner.Comm, most int, came ...chan *planner.Comm) (grown []*planner.Comm, change planner.Change) {
	t.Helper()
	grown = make([]*planner.Comm, len(comms))
	noErrors(t, each(comms, func(ctx context.Context, c *planner.Comm) (err error) {
		i := slices.Index(comms, c)
		became, err := c.Grow(ctx, most)
		if grown[i] = became.Comm; i == 0 {
			change = became
		}
		return err
	}))
	for _, ch := range came {
		grown = append(grown, <-ch)
	}
	slices.SortFunc(grown, func(a, b *planner.Comm) int { return a.Rank() - b.Rank() })
	noErrors(t, each(grown, func(ctx context.Context, c *planner.Comm) error {
		said := []int64{1 << c.Rank()}
		if err := planner.Allreduce(ctx, c, said, said, tasks.Sum); err != nil || said[0] != 1<<len(grown)-1 {
			return fmt.Errorf("sum %b of %d ranks, %w", said[0], len(grown), err)
		}
		return nil
	}))
	return grown, change
}

// shrinkWithout lets a rank leave. The others shrink when first has shown them that it is gone.
func (h *hall) shrinkWithout(t *testing.T, comms []*planner.Comm, leaver int, first func(ctx context.Context, c *planner.Comm) error) []*planner.Comm {
	t.Helper()
	rest := make([]*planner.Comm, len(comms))
	noErrors(t, each(comms, func(ctx context.Context, c *planner.Comm) (err error) {
		if c.Rank() == leaver {
			h.running.Go(func() { _ = c.Close() }) // it waits for the others
			return nil
		}
		if err := first(ctx, c); err != nil {
			return err
		}
		change, err := c.Shrink(ctx)
		rest[c.Rank()] = change.Comm
		return err
	}))
	return slices.Delete(rest, leaver, leaver+1)
}

// A process in the place of one that has died before anybody was known to have joined joins as one of the first does, in vain. Once
// another one has joined, it waits to be let in.
func TestGrowByLateFirst(t *testing.T) {
	t.Parallel()
	h := newHall(t, 2)
	comms := h.start(t, 2)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	nobody, err := net.Listen("tcp", "127.0.0.1:0") // where the first ones have met
	if err != nil {
		t.Fatal(err)
	}
	defer nobody.Close()
	late := h.comeBy(ctx, t, 2, join.Config{Lobby: h.lobby(t, 2, false), Rank: 2, Size: 3, Rendezvous: []string{nobody.Addr().String()}})
	h.mu.Lock()
	h.tell(2, launcher.LobbyNote{Runs: true})
	h.mu.Unlock()
	turnUntil(t, comms)
	grown, _ := growAll(t, comms, 1, late)
	closeAll(t, grown)
}

// A newcomer comes behind the ranks of its node, one of a new node behind all; ranks that are gone have left their places.
// The job has one name and beginning for those who ask its ranks.
func TestGrow(t *testing.T) {
	doors, err := os.MkdirTemp("", "grow") // a socket's name is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(doors)
	t.Setenv(env.Door, doors)
	var asked door.Job
	ask := func(size int) {
		t.Helper()
		jobs, err := door.Jobs(doors)
		if err != nil || len(jobs) != 1 || len(jobs[0].Ranks) != size {
			t.Fatalf("%+v, %v; want a job of %d ranks", jobs, err, size)
		}
		if asked.Name != "" && (jobs[0].Name != asked.Name || !jobs[0].Ranks[size-1].JobBegan().Equal(asked.Ranks[0].JobBegan())) {
			t.Errorf("job %s, was %s, from %v, was from %v", jobs[0].Name, asked.Name, jobs[0].Ranks[size-1].JobBegan(), asked.Ranks[0].JobBegan())
		}
		asked = jobs[0]
	}
	h := newHall(t, 2)
	comms := h.start(t, 4)
	ask(4)
	rest := h.shrinkWithout(t, comms, 1, func(ctx context.Context, c *planner.Comm) error {
		_ = sum(ctx, c)
		return nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	first := h.come(ctx, t, 1)
	turnUntil(t, rest)
	grown, change := growAll(t, rest, 5, first)
	if want := []int{0, -1, 1, 2}; !slices.Equal(change.Old, want) || !slices.Equal(change.Joined, []int{1}) {
		t.Errorf("ranks %v, joined %v; want %v", change.Old, change.Joined, want)
	}
	if got := grown[0].Topology().String(); got != "2x2" && grown[0].Topology().Nodes() != 2 {
		t.Errorf("topology %v", got)
	}
	ask(4)
	second, third := h.come(ctx, t, 4), h.come(ctx, t, 5)
	turnUntil(t, grown)
	clocktest.Until(t, "two newcomers wait", func() bool { return grown[0].Waiting() >= 2 })
	grown, change = growAll(t, grown, 1000, second, third)
	if len(grown) != 6 || !slices.Equal(change.Joined, []int{4, 5}) {
		t.Errorf("%d ranks, joined %v", len(grown), change.Joined)
	}
	ask(6)
	closeAll(t, grown)
}

// A newcomer that dies meanwhile costs nothing but time, and the next one is let in.
func TestGrowWithoutNewcomer(t *testing.T) {
	h := newHall(t, 1)
	comms := h.start(t, 3)
	noErrors(t, each(comms, func(ctx context.Context, c *planner.Comm) error {
		if _, err := c.Grow(ctx, 1); err == nil || planner.Recoverable(err) {
			return fmt.Errorf("grown by nobody: %w", err)
		}
		return nil
	}))
	l := h.lobby(t, 7, true) // of a process that never joins
	go func() { _, _ = l.Await(t.Context()) }()
	turnUntil(t, comms)
	ended := time.AfterFunc(50*time.Millisecond, func() { h.end(7) })
	defer ended.Stop()
	noErrors(t, each(comms, func(ctx context.Context, c *planner.Comm) error {
		if _, err := c.Grow(ctx, 1); err == nil || planner.Recoverable(err) {
			return fmt.Errorf("grown by a process that has ended: %w", err)
		}
		return sum(ctx, c)
	}))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	came := h.come(ctx, t, 8)
	turnUntil(t, comms)
	grown, _ := growAll(t, comms, 1, came)
	closeAll(t, grown)
}

// A rank that dies while the others take somebody in is as any death: those who are left shrink, and try again.
func TestGrowWithDeath(t *testing.T) {
	h := newHall(t, 2)
	comms := h.start(t, 4)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	came := h.come(ctx, t, 4)
	turnUntil(t, comms)
	rest := h.shrinkWithout(t, comms, 2, func(ctx context.Context, c *planner.Comm) error {
		if _, err := c.Grow(ctx, 1); !planner.Recoverable(err) {
			return fmt.Errorf("grown without a rank: %w", err)
		}
		return nil
	})
	turnUntil(t, rest)
	grown, _ := growAll(t, rest, 1, came)
	if len(grown) != 4 {
		t.Errorf("%d ranks; want 4", len(grown))
	}
	closeAll(t, grown)
}

// Goroutine ranks, and communicators that others were made from, take nobody in.
func TestGrowNowhere(t *testing.T) {
	comms := localComms(t, "2", nil)
	noErrors(t, each(comms, func(ctx context.Context, c *planner.Comm) error {
		if _, err := c.Grow(ctx, 1); err == nil || c.Waiting() != 0 {
			return fmt.Errorf("grown: %w, %d wait", err, c.Waiting())
		}
		for range 3 {
			if err := c.Turn(ctx); err != nil {
				return err
			}
		}
		return c.Close()
	}))
}
