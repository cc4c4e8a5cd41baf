package join

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
)

// TestMonitor: a rank meets the others and then dies, or hangs, before it is part of the tree. All others name it, and of
// a death they hear at once. Rank 2 is the parent of rank 3, rank 0 of 1 and 2.
func TestMonitor(t *testing.T) {
	t.Parallel()
	for _, victim := range []levels.Rank{0, 2, 3} {
		t.Run(fmt.Sprint("rank ", victim, " dies"), func(t *testing.T) {
			t.Parallel()
			for rank, err := range withVictim(t, victim, true, 2*time.Minute) {
				if namedBy(err) != victim || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("rank %d: %v", rank, err)
				}
			}
		})
		t.Run(fmt.Sprint("rank ", victim, " hangs"), func(t *testing.T) {
			t.Parallel()
			for rank, err := range withVictim(t, victim, false, 10*time.Second) {
				if namedBy(err) != victim {
					t.Errorf("rank %d: %v", rank, err)
				}
			}
		})
	}
}

// withVictim joins four ranks, two on each node, and returns the errors of all but the victim.
func withVictim(t *testing.T, victim levels.Rank, dies bool, limit time.Duration) map[levels.Rank]error {
	cs := configs(t, 4)
	var others []Config
	for r := range cs {
		cs[r].Node = fmt.Sprint(r / 2)
		if levels.Rank(r) != victim {
			others = append(others, cs[r])
		}
	}
	end := make(chan struct{})
	met := make(chan error, 1)
	go func() { met <- meetOnly(t.Context(), cs[victim], dies, end) }()
	_, errs := joinAll(t, others, limit)
	close(end)
	if err := <-met; err != nil {
		t.Fatal(err)
	}
	byRank := map[levels.Rank]error{}
	for i, c := range others {
		byRank[c.Rank] = errs[i]
	}
	return byRank
}

// meetOnly is a rank that gets as far as the table. Its listeners and connections close at once if it dies, else at the
// end.
func meetOnly(ctx context.Context, cfg Config, dies bool, end <-chan struct{}) error {
	j := &Job{Rank: cfg.Rank, Size: cfg.Size}
	self, listeners, err := j.introduce(&cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var leave func()
	if cfg.Rank == 0 {
		var h *host
		_, _, h, err = runHost(ctx, &cfg, nil, self, &refusals{log: slog.New(slog.DiscardHandler)})
		leave = func() { h.dismiss() }
	} else {
		var c net.Conn
		_, c, err = register(ctx, &cfg, nil, self)
		leave = func() { c.Close() }
	}
	if err != nil {
		return err
	}
	if !dies {
		<-end
	}
	leave()
	for _, l := range listeners {
		l.Close()
	}
	return nil
}

// namedBy is the rank that an error names first, -1 if none.
func namedBy(err error) levels.Rank {
	if j, ok := errors.AsType[*JoinError](err); ok && len(j.Ranks) > 0 {
		return j.Ranks[0]
	}
	if p, ok := errors.AsType[*PeerError](err); ok {
		return p.Rank
	}
	return -1
}

// Of ranks that blame each other the dead one is named, in any order of the news: rank 3 has lost rank 2, and rank 2 left
// because it had lost rank 1.
func TestBlameFollowsWords(t *testing.T) {
	peers := make([]*Peer, 4)
	for r := range peers {
		peers[r] = &Peer{Rank: levels.Rank(r)}
	}
	blames := func(from, who levels.Rank) event {
		return event{from: from, why: &JoinError{Ranks: []levels.Rank{who}, Reason: fmt.Sprintf("rank %d: was lost", who)}}
	}
	events := [][]event{
		{{gone: peers[1]}},
		{blames(2, 1), {gone: peers[2]}},
		{blames(3, 2), {gone: peers[3]}},
	}
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		v := &hostMonitor{host: &host{
			size: 4, events: make(chan event), done: make(chan struct{}), conns: make([]net.Conn, 4),
			door: &gate{},
		}}
		ctx, fail := context.WithCancelCause(t.Context())
		v.watch(fail)
		for _, n := range order {
			for _, e := range events[n] {
				v.tell(e)
			}
		}
		err := v.end(ctx, &PeerError{3, ErrLost}) // as rank 0 has found
		fail(nil)
		if namedBy(err) != 1 {
			t.Errorf("events of ranks %v: %v", order, err)
		}
	}
}

// Rank 0 names the one that died when that ends its wait for others.
func TestVerdictEndsWait(t *testing.T) {
	v := &hostMonitor{host: &host{
		size: 4, events: make(chan event), done: make(chan struct{}), conns: make([]net.Conn, 4), door: &gate{},
	}}
	watched, fail := context.WithCancelCause(t.Context())
	defer fail(nil)
	v.watch(fail)
	v.tell(event{gone: &Peer{Rank: 3}})
	<-watched.Done()
	err := v.end(t.Context(), &PeerError{1, fmt.Errorf("ranks 1-3 joined but did not connect to rank 0: %w", context.Cause(watched))})
	if p, ok := errors.AsType[*PeerError](err); ok || namedBy(err) != 3 {
		t.Errorf("%v, want one that names rank 3 alone and not %v", err, p)
	}
}

// Rank 0 says that all have joined to rank 2 alone, and dies for rank 3, which is below rank 2 in the tree. Rank 3 leaves; rank 2
// must hear why.
func TestLeavesWithReason(t *testing.T) {
	t.Parallel() // it mostly waits
	cs := configs(t, 4)
	for r := range cs {
		cs[r].Node = fmt.Sprint(r / 2)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	end, met := make(chan struct{}), make(chan error, 1)
	go func() { met <- leaveOne(ctx, cs[0], 2, 3, end) }()
	_, errs := joinAll(t, cs[1:], 2*time.Minute)
	close(end)
	if err := <-met; err != nil {
		t.Fatal(err)
	}
	for i, err := range errs[1:] { // rank 1 knows rank 0 alone
		if namedBy(err) != 0 {
			t.Errorf("rank %d: %v, want one that names rank 0", i+2, err)
		}
	}
}

// leaveOne is a rank 0 that makes the tree and passes nothing on. It says to one rank that all have joined, and ends its
// connection to another one; the rest ends at the end.
func leaveOne(ctx context.Context, cfg Config, joined, left levels.Rank, end <-chan struct{}) error {
	j := &Job{Rank: 0, Size: cfg.Size, Peers: make([]*Peer, cfg.Size), absent: make([]error, cfg.Size)}
	self, listeners, err := j.introduce(&cfg)
	if err != nil {
		return err
	}
	log := &refusals{log: slog.New(slog.DiscardHandler)}
	j.door = &gate{self: 0, size: j.Size, log: log, admit: j.admit, listeners: listeners}
	p, table, h, err := runHost(ctx, &cfg, nil, self, log)
	if err != nil {
		return err
	}
	defer h.dismiss()
	j.Peers[0], j.key, j.building = self, jobKey(cfg.Secret, p.Job), make(chan arrival, j.Size)
	j.door.key = j.key
	j.door.open()
	defer j.door.close()
	if err := j.growTree(ctx, p); err != nil {
		return err
	}
	for _, e := range j.edges {
		defer e.conn.Close()
	}
	if err := j.learn(ctx, p, table); err != nil {
		return err
	}
	for r, c := range h.conns {
		switch levels.Rank(r) {
		case joined:
			f := frame{kind: frameGoodbye, to: everyone}
			deliver(c, f.encode(), time.Now().Add(reasonTime))
		case left:
			clocktest.Pause(ctx, 100*time.Millisecond) // it is in the exchange by now
			c.Close()
		}
	}
	select {
	case <-end:
	case <-time.After(time.Second): // who knows nobody else
	}
	return nil
}
