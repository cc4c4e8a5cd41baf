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
)

// TestVigil: a rank meets the others and then dies, or hangs, before it is part of the tree. All others name it, and of
// a death they hear at once. Rank 2 is the parent of rank 3, rank 0 of 1 and 2.
func TestVigil(t *testing.T) {
	for _, victim := range []levels.Rank{0, 2, 3} {
		t.Run(fmt.Sprint("rank ", victim, " dies"), func(t *testing.T) {
			t.Parallel()
			for rank, err := range withVictim(t, victim, true, 30*time.Second) {
				if namedBy(err) != victim || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("rank %d: %v", rank, err)
				}
			}
		})
		t.Run(fmt.Sprint("rank ", victim, " hangs"), func(t *testing.T) {
			t.Parallel()
			for rank, err := range withVictim(t, victim, false, 3*time.Second) {
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
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var leave func()
	if cfg.Rank == 0 {
		var h *host
		_, _, h, err = runHost(ctx, &cfg, self, &refusals{log: slog.New(slog.DiscardHandler)})
		leave = func() { h.dismiss() }
	} else {
		var c net.Conn
		_, c, err = register(ctx, &cfg, self)
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
