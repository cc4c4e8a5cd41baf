package planner_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

func TestMain(m *testing.M) {
	os.Setenv("TIERFLOW_MACHINE", "off") // the plans are those of every machine, and nothing is kept
	// A failing random case is printed with its seed; files of them are in the way.
	if flag.Lookup("rapid.nofailfile") != nil {
		if err := flag.Set("rapid.nofailfile", "true"); err != nil {
			panic(err)
		}
	}
	if err := flag.Set("test.parallel", "4"); err != nil { // parallel tests mostly wait
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// patience is the time after which a waiting test counts as hanging. The ranks log
// their open steps before.
const patience = 3 * time.Minute

// run runs f on goroutine ranks and returns what [planner.Run] does.
func run(t testing.TB, topology string, o *planner.Options, f func(ctx context.Context, c *planner.Comm) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, errors.New("hangs"))
	defer cancel()
	if o == nil {
		o = &planner.Options{}
	}
	if o.Log == nil {
		o.Log, o.StallAfter = slog.New(slog.NewTextHandler(t.Output(), nil)), 2*time.Second
	}
	return planner.Run(ctx, topology, o, f)
}

// localComms makes goroutine ranks. The caller closes them.
func localComms(t testing.TB, topology string, o *planner.Options) []*planner.Comm {
	t.Helper()
	comms, err := planner.Local(topology, o)
	if err != nil {
		t.Fatal(err)
	}
	return comms
}

// inMemory has one file.
func inMemory(name string, data []byte) fstest.MapFS { return fstest.MapFS{name: {Data: data}} }

// wantError reports a failure unless a call has ended in an error with all those texts, and neither
// in a crash nor by hanging.
func wantError(t testing.TB, what string, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error, want %q", what, want)
		return
	}
	if crash := runtime.Error(nil); errors.As(err, &crash) || errors.Is(err, errPanic) || errors.Is(err, errHangs) {
		t.Errorf("%s: %v", what, err)
	}
	wantText(t, what, err.Error(), want...)
}

// wantText reports each of some texts that is missing in another one.
func wantText(t testing.TB, what, text string, want ...string) {
	t.Helper()
	for _, part := range want {
		if !strings.Contains(text, part) {
			t.Errorf("%s: no %q in:\n%s", what, part, text)
		}
	}
}

// succeed is run, which may not fail.
func succeed(t testing.TB, topology string, o *planner.Options, f func(ctx context.Context, c *planner.Comm) error) {
	t.Helper()
	if err := run(t, topology, o, f); err != nil {
		t.Fatal(err)
	}
}

var errEnough = errors.New("had enough")

// However a rank's function ends, the others' calls do too, and Run says why.
func TestARankThatEndsEndsTheOthers(t *testing.T) {
	for _, test := range []struct {
		what, want string
		end        func() error
		peer       bool // Run's error is another rank's
	}{
		{what: "an error", want: "had enough", end: func() error { return errEnough }},
		{what: "a panic", want: "rank 2 panicked: oh no", end: func() error { panic("oh no") }},
		{what: "runtime.Goexit", want: "rank 2 ended its goroutine", end: func() error { runtime.Goexit(); return nil }},
		{what: "returning early", want: "rank 2 has closed, it won't come to barrier #0", end: func() error { return nil }, peer: true},
	} {
		t.Run(test.what, func(t *testing.T) {
			var others [4]error
			err := run(t, "2x2", nil, func(ctx context.Context, c *planner.Comm) error {
				if c.Rank() == 2 {
					return test.end()
				}
				others[c.Rank()] = planner.Barrier(ctx, c)
				return others[c.Rank()]
			})
			wantError(t, "Run", err, test.want)
			var peer *planner.PeerError
			if got := errors.As(err, &peer); got != test.peer {
				t.Errorf("Run: %v; is it a PeerError? %v, want %v", err, got, test.peer)
			}
			for r, err := range others {
				if r != 2 && (!errors.As(err, &peer) || peer.Rank != 2) {
					t.Errorf("rank %d: %v, want a PeerError of rank 2", r, err)
				}
			}
		})
	}
}

func TestOperationThatPanics(t *testing.T) {
	succeed(t, "1x2", nil, func(ctx context.Context, c *planner.Comm) error {
		buf := []int16{int16(c.Rank())}
		bad := tasks.UserOp("bad", true, func(a, b int16) int16 { return a / (b - 1) })
		err := planner.Allreduce(ctx, c, buf, buf, bad)
		var step *planner.StepError
		if !errors.As(err, &step) || step.Request != "allreduce 1 i16 bad" || !strings.Contains(step.Step, "reduce r") {
			t.Errorf("rank %d: %v, want the failed step", c.Rank(), err)
		}
		return nil
	})
}

func TestClose(t *testing.T) {
	comms := localComms(t, "1x2", nil)
	ctx := t.Context()
	sum, err := planner.PrepareAllreduce(ctx, comms[0], []int{1}, []int{0}, tasks.Sum)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := comms[0].Close(); err != nil {
			t.Error(err)
		}
	}
	for what, err := range map[string]error{
		"Run": sum.Run(ctx), "Barrier": planner.Barrier(ctx, comms[0]),
		"Send": planner.Send(ctx, comms[0], 1, 0, []int{1}),
	} {
		if !errors.Is(err, planner.ErrClosed) {
			t.Errorf("%s after Close: %v", what, err)
		}
	}
	var peer *planner.PeerError
	if err := planner.Barrier(ctx, comms[1]); !errors.As(err, &peer) || peer.Rank != 0 || !errors.Is(err, planner.ErrClosed) {
		t.Errorf("the other rank: %v", err)
	}
	if err := comms[1].Close(); err != nil {
		t.Error(err)
	}
}

// A communicator that Split has made ends with the one it was made from.
func TestCloseEndsWhatWasSplit(t *testing.T) {
	succeed(t, "2x2", nil, func(ctx context.Context, c *planner.Comm) error {
		part, err := c.Split(ctx, c.Rank()%2, 0)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			return nil // closes
		}
		err = planner.Barrier(ctx, part)
		var peer *planner.PeerError
		if inPart := c.Rank() == 2; inPart && (!errors.As(err, &peer) || peer.Rank != 0 || !errors.Is(err, planner.ErrClosed)) || !inPart && err != nil {
			t.Errorf("rank %d: %v", c.Rank(), err)
		}
		return nil
	})
}

func TestMismatch(t *testing.T) {
	succeed(t, "2x1", nil, func(ctx context.Context, c *planner.Comm) error {
		buf := make([]float32, 3+c.Rank())
		err := planner.Allreduce(ctx, c, buf, buf, tasks.Sum)
		var m *planner.MismatchError
		if !errors.Is(err, planner.ErrMismatch) || !errors.As(err, &m) ||
			!strings.Contains(err.Error(), "allreduce 3 f32 sum") || !strings.Contains(err.Error(), "allreduce 4 f32 sum") {
			t.Errorf("rank %d: %v", c.Rank(), err)
		}
		if err := planner.Barrier(ctx, c); !errors.Is(err, planner.ErrBroken) {
			t.Errorf("rank %d, the next call: %v", c.Rank(), err)
		}
		return nil
	})
}

func TestOptions(t *testing.T) {
	for _, test := range []struct{ plan, env, want string }{
		{plan: "i=adapt/bush", want: `Options.Plan: i=adapt/bush: unknown algorithm "bush"; adapt has `},
		{plan: "s=shm", want: `Options.Plan: s=shm: unknown submodule "shm"; known are `},
		{plan: "shape=round", want: `known are`},
		{plan: "reduceall:fs=1KiB", want: `known are`},
		{plan: "speed=9", want: `speed`},
		{env: "s=shm", want: `TIERFLOW_PLAN: s=shm: unknown submodule "shm"; known are `},
	} {
		t.Setenv(env.Plan, test.env)
		_, err := planner.Local("2x2", &planner.Options{Plan: test.plan})
		wantError(t, fmt.Sprintf("plan %q, environment %q", test.plan, test.env), err, test.want)
	}
	t.Setenv(env.Plan, "fs=1KiB")
	for plan, want := range map[string]string{"": "fs=1KiB", "w=7": "fs=all,w=7"} {
		succeed(t, "1x2", &planner.Options{Plan: plan}, func(_ context.Context, c *planner.Comm) error {
			b, err := planner.PrepareBcast(t.Context(), c, make([]byte, 10), 0)
			if err == nil && !strings.Contains(b.Plan().String(), want) {
				t.Errorf("options %q over the environment's fs=1KiB: %v, want %s", plan, b.Plan(), want)
			}
			return err
		})
	}
	if _, err := planner.Local("two nodes", nil); err == nil {
		t.Error("a topology that is none was taken")
	}
}
