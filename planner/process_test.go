package planner_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

// joinProcesses makes n ranks that have the transports of processes, shared memory
// and TCP, although they are goroutines of this one: rank r lives on node
// r/perNode.
func joinProcesses(t failer, n, perNode int, o *planner.Options) []*planner.Comm {
	t.Helper()
	return joinPlaced(t, n, o, onNodes(perNode))
}

// onNodes places as many ranks on each node, in their order.
func onNodes(perNode int) func(r int, cfg *join.Config) {
	return func(r int, cfg *join.Config) { cfg.Node = fmt.Sprintf("node%d", r/perNode) }
}

// joinPlaced is joinProcesses with ranks wherever place says.
func joinPlaced(t failer, n int, o *planner.Options, place func(r int, cfg *join.Config)) []*planner.Comm {
	t.Helper()
	return joinEach(t, n, func(int) *planner.Options { return o }, place)
}

// joinEach is joinPlaced with options of each rank's own.
func joinEach(t failer, n int, o func(r int) *planner.Options, place func(r int, cfg *join.Config)) []*planner.Comm {
	t.Helper()
	comms, errs := tryJoin(t, n, o, place)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return comms
}

// tryJoin is joinEach, and returns each rank's error.
func tryJoin(t failer, n int, o func(r int) *planner.Options, place func(r int, cfg *join.Config)) ([]*planner.Comm, []error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	comms, errs := make([]*planner.Comm, n), make([]error, n)
	var all sync.WaitGroup
	for r := range n {
		all.Go(func() {
			cfg := join.Config{
				Rank: levels.Rank(r), Size: n, Rendezvous: []string{l.Addr().String()},
				Secret: "the secret of a test, which is long enough", TLS: os.Getenv("TIERFLOW_TEST_TLS"),
			}
			place(r, &cfg)
			if r == 0 {
				cfg.Listener = l
			}
			comms[r], errs[r] = raw.JoinAs(ctx, cfg, o(r))
		})
	}
	all.Wait()
	return comms, errs
}

// failer is what *testing.T and *rapid.T have in common.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// each runs f for every rank at once and returns their errors.
func each(comms []*planner.Comm, f func(ctx context.Context, c *planner.Comm) error) []error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, errHangs)
	defer cancel()
	errs := make([]error, len(comms))
	var all sync.WaitGroup
	for i, c := range comms {
		all.Go(func() { errs[i] = f(ctx, c) })
	}
	all.Wait()
	return errs
}

var errHangs = errors.New("a rank hangs")

// closeAll closes all ranks at once; nothing may have gone wrong.
func closeAll(t failer, comms []*planner.Comm) {
	t.Helper()
	for r, err := range each(comms, func(_ context.Context, c *planner.Comm) error { return c.Close() }) {
		if err != nil {
			t.Fatalf("close rank %d: %v", r, err)
		}
	}
}

// noErrors reports the ranks' errors.
func noErrors(t failer, errs []error) {
	t.Helper()
	for r, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// allSucceed runs f on all ranks at once and closes them; none may fail.
func allSucceed(t failer, comms []*planner.Comm, f func(ctx context.Context, c *planner.Comm) error) {
	t.Helper()
	noErrors(t, each(comms, f))
	closeAll(t, comms)
}

// processes is allSucceed on joinProcesses' ranks.
func processes(t failer, n, perNode int, o *planner.Options, f func(ctx context.Context, c *planner.Comm) error) {
	t.Helper()
	allSucceed(t, joinProcesses(t, n, perNode, o), f)
}

func TestProcessesAllreduce(t *testing.T) {
	for _, shape := range [][2]int{{2, 1}, {2, 2}, {4, 2}, {8, 2}, {4, 4}, {5, 2}} {
		for _, plan := range []string{"", "s=adapt/chain", "shape=flat,fs=64KiB,i=adapt/binomial,s=adapt/binomial"} {
			t.Run(fmt.Sprintf("%dx%d/%s", shape[0], shape[1], plan), func(t *testing.T) {
				processes(t, shape[0], shape[1], &planner.Options{Plan: plan}, allreduces)
			})
		}
	}
}

// allreduces runs allreduces of several sizes, each some times, and checks every element.
func allreduces(ctx context.Context, c *planner.Comm) error {
	for _, n := range []int{1, 1000, 300_001} {
		send, recv := make([]int64, n), make([]int64, n)
		for i := range send {
			send[i] = int64(i + c.Rank())
		}
		sum, err := planner.PrepareAllreduce(ctx, c, send, recv, tasks.Sum)
		if err != nil {
			return err
		}
		for range 3 {
			clear(recv)
			if err := sum.Run(ctx); err != nil {
				return err
			}
			p := int64(c.Size())
			for i, got := range recv {
				if want := p*int64(i) + p*(p-1)/2; got != want {
					return fmt.Errorf("element %d of %d: %d, want %d", i, n, got, want)
				}
			}
		}
	}
	return nil
}
