package kit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

// goroutines is the job of a command line.
func goroutines(t *testing.T, line string) Goroutines {
	t.Helper()
	g, err := parse(t, line).ReadGoroutines()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Each rank gets its ends of all communicators, those of the first job before those of the second,
// in the order of plans.
func TestRunRanksOf(t *testing.T) {
	flat, tall := goroutines(t, "--topo 2x2 --link none"), goroutines(t, "--topo 2x2 --link i=10gbit,1us")
	var ranks atomic.Int64
	err := RunRanksOf(t.Context(), []Job{flat, tall}, []string{"w=2", "w=3"}, func(ctx context.Context, comms []*planner.Comm) error {
		ranks.Add(1)
		if len(comms) != 4 {
			return fmt.Errorf("%d communicators, want 4", len(comms))
		}
		one := []int64{1}
		for i, c := range comms {
			call, err := raw.Prepare(ctx, c, tasks.Request{Coll: tasks.Bcast, Count: 64, Type: tasks.Float32}, nil, make([]byte, 256))
			if err != nil {
				return err
			}
			if got := call.Plan().Window; got != 2+i%2 || c.Rank() != comms[0].Rank() {
				t.Errorf("communicator %d of rank %d: rank %d, window %d", i, comms[0].Rank(), c.Rank(), got)
			}
			if err := planner.Allreduce(ctx, c, one, one, tasks.Sum); err != nil {
				return err
			}
		}
		if one[0] != 4*4*4*4 {
			t.Errorf("four sums over four ranks make %d", one[0])
		}
		return nil
	})
	if err != nil || ranks.Load() != 4 {
		t.Errorf("%d ranks, %v", ranks.Load(), err)
	}
	if !strings.Contains(tall.String(), "4 goroutine ranks on 2 nodes; emulated: i=10gbit,1us") || tall.Links() == flat.Links() {
		t.Errorf("%v and %v", tall, flat)
	}
}

// A rank that fails keeps nobody waiting, in whichever communicator.
func TestRunRanksFails(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	broken := errors.New("broken")
	err := RunRanks(ctx, goroutines(t, "--topo 3 --link none"), []string{"", "w=2"}, func(ctx context.Context, comms []*planner.Comm) error {
		if comms[0].Rank() == 1 {
			return broken
		}
		return planner.Barrier(ctx, comms[1])
	})
	if !errors.Is(err, broken) || ctx.Err() != nil {
		t.Errorf("%v; want what was broken", err)
	}
	err = RunRanks(ctx, goroutines(t, "--topo 2 --link none"), []string{"", "i=nosuch"}, func(context.Context, []*planner.Comm) error {
		t.Error("ranks run though a plan can't be had")
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("%v; want a complaint about the plan", err)
	}
}

// A simulated job has no ranks, and goroutines no second job with TLS.
func TestOtherJobs(t *testing.T) {
	p := parse(t, "--topo 64x12")
	s, err := p.ReadSimulated("assumed")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Local(""); err == nil || !strings.HasPrefix(s.String(), "64x12: 768 ranks, simulated on a machine") {
		t.Errorf("%v, ranks: %v", s, err)
	}
	if _, err := parse(t, "--link none").ReadSimulated("assumed"); err == nil || !strings.HasPrefix(err.Error(), "--link: ") {
		t.Errorf("--link with --simulate: %v", err)
	}
	if err := p.RunSealed(t.Context(), "job", nil, nil, nil); err == nil || !strings.HasPrefix(err.Error(), "--tls: ") {
		t.Errorf("--tls of goroutines: %v", err)
	}
	t.Setenv("TIERFLOW_RANK", "0")
	if _, err := p.ReadSimulated("assumed"); err == nil || !strings.Contains(err.Error(), "launched job") {
		t.Errorf("a simulation by a rank: %v", err)
	}
}
