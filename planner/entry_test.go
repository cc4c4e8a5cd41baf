package planner_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
)

// enterAll joins four ranks on two nodes, each with options and a context of its own, and returns their errors.
func enterAll(t *testing.T, prepare func(rank int, ctx context.Context) (context.Context, *planner.Options)) []error {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, errHangs)
	defer cancel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	errs := make([]error, 4)
	var all sync.WaitGroup
	for r := range errs {
		cfg := join.Config{Rank: levels.Rank(r), Size: len(errs), Rendezvous: []string{l.Addr().String()}, Secret: "a test", Node: fmt.Sprint("n", r/2)}
		if r == 0 {
			cfg.Listener = l
		}
		own, o := prepare(r, ctx)
		all.Go(func() {
			var c *planner.Comm
			if c, errs[r] = raw.JoinAs(own, cfg, o); errs[r] == nil {
				errs[r] = errors.New("this rank entered")
				_ = c.Close()
			}
		})
	}
	all.Wait()
	return errs
}

// Whichever step of joining fails, and on whichever rank: no rank enters, and all say whose fault it is and why.
func TestNoRankEntersWithoutAll(t *testing.T) {
	nowhere := "/dev/null/nowhere"
	for _, step := range []struct {
		name  string
		fail  func(o *planner.Options)
		why   string
		ranks int // of which each can fail so
	}{
		{"data plane", func(o *planner.Options) { o.Congestion = "none-of-that-name" }, "none-of-that-name", 4},
		{"trace", func(o *planner.Options) { o.Trace = nowhere }, "Options.Trace: mkdir /dev/null: not a directory", 4},
		{"recorder", func(o *planner.Options) { o.Recorder = nowhere + "/%r" }, "Options.Recorder: recorder file: ", 4},
		{"dumps", func(o *planner.Options) { o.DumpDir = nowhere }, "Options.DumpDir: mkdir /dev/null: not a directory", 4},
		{"profile", func(o *planner.Options) { o.Profile = "/dev" }, "Options.Profile: /dev is a folder; allowed are names of files", 1},
		{"plan", func(o *planner.Options) { o.Plan = "shape=round" }, "shape=round", 1},
		{"table", func(o *planner.Options) { o.Table = nowhere }, "Options.Table: open " + nowhere, 1},
		{"rules", func(o *planner.Options) { o.Rules = nowhere }, "Options.Rules: open " + nowhere, 1},
		{"machine", func(o *planner.Options) { o.Machine = nowhere }, "Options.Machine: open " + nowhere, 1},
	} {
		for culprit := range step.ranks {
			errs := enterAll(t, func(rank int, ctx context.Context) (context.Context, *planner.Options) {
				o := &planner.Options{}
				if rank == culprit {
					step.fail(o)
				}
				return ctx, o
			})
			for rank, err := range errs {
				if !strings.Contains(fmt.Sprint(err), step.why) || rank != culprit && !strings.Contains(err.Error(), fmt.Sprint("rank ", culprit)) {
					t.Errorf("%s of rank %d: rank %d says %v; want %s, and whose it is", step.name, culprit, rank, err, step.why)
				}
			}
		}
	}
}

// So it is if a rank gives up in the calls which the ranks make to measure the machine.
func TestNoRankEntersIfOneStopsMeasuring(t *testing.T) {
	t.Parallel() // it mostly waits
	why := errors.New("the user has closed the lid")
	for culprit := range 4 {
		errs := enterAll(t, func(rank int, ctx context.Context) (context.Context, *planner.Options) {
			o := &planner.Options{Machine: planner.MachineMeasure}
			if rank != culprit {
				return ctx, o
			}
			own, cancel := context.WithCancelCause(ctx)
			raw.SeamsOf(o).Progress = func() { cancel(why) } // while it waits in its first call
			return own, o
		})
		for rank, err := range errs {
			if !strings.Contains(fmt.Sprint(err), why.Error()) || rank != culprit && !strings.Contains(err.Error(), fmt.Sprint("rank ", culprit)) {
				t.Errorf("rank %d gives up: rank %d says %v; want %v, and whose it is", culprit, rank, err, why)
			}
		}
	}
}
