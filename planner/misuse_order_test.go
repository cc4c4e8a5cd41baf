package planner_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// After Close every call is an error that says so, on all communicators that end with
// it, and closing those again is none.
func TestCallsAfterClose(t *testing.T) {
	onBoth(t, func(t *testing.T, comms []*planner.Comm) {
		children := make([]*planner.Comm, len(comms))
		noErrors(t, each(comms, func(ctx context.Context, c *planner.Comm) (err error) {
			children[c.Rank()], err = c.Split(ctx, 0, -c.Rank())
			return err
		}))
		grandchildren := make([]*planner.Comm, len(comms))
		noErrors(t, each(children, func(ctx context.Context, c *planner.Comm) (err error) {
			grandchildren[c.Rank()], err = c.Dup(ctx)
			return err
		}))
		closed := func(what string, comms []*planner.Comm) {
			for _, f := range slices.Concat(making, running) {
				w := wrongUse{what + ": " + f.name, f.do, []string{"closed"}}
				w.check(t, comms)
			}
			closeAll(t, comms)
		}
		closeAll(t, children)
		closed("closed", children)
		noErrors(t, each(grandchildren, sum))
		closeAll(t, comms)
		closed("the world, closed", comms)
		closed("of a closed world", grandchildren)
		closed("closed before its world", children)
	})
}

// What is started twice says so; the one that was started first goes on.
func TestStartTwice(t *testing.T) {
	onBoth(t, func(t *testing.T, comms []*planner.Comm) {
		tried := make(chan struct{})
		noErrors(t, each(comms, func(ctx context.Context, c *planner.Comm) error {
			b, err := planner.PrepareBarrier(ctx, c)
			if err != nil {
				return err
			}
			if c.Rank() != 0 {
				<-tried // else the first may be over
				return b.Run(ctx)
			}
			p, err := b.Start(ctx)
			if err != nil {
				return err
			}
			for what, f := range map[string]func(context.Context) error{
				"start": func(ctx context.Context) error { return second(b.Start(ctx)) }, "run": b.Run,
			} {
				wantError(t, what, f(ctx), "start barrier: the run before has not ended: already started")
			}
			close(tried)
			return errors.Join(p.Wait(ctx), p.Wait(ctx))
		}))
		allSucceed(t, comms, sum)
	})
}

// A message of another type than the receive's is an error with both types, however it came; the buffer is as
// it was, and the next message is fine.
func TestMessageOfAnotherType(t *testing.T) {
	type pair struct{ _, _ int32 }
	onBoth(t, func(t *testing.T, comms []*planner.Comm) {
		const few, many = 8, 100_000
		differ(t, comms, make([]float64, few), make([]float32, 2*few), "f64", "f32")
		differ(t, comms, make([]float64, many), make([]float32, 2*many), "f64", "f32")
		differ(t, comms, make([]byte, few), make([]int32, few), "u8", "i32")
		differ(t, comms, make([]int32, few), make([]byte, 4*few), "i32", "u8")
		differ(t, comms, make([]uint64, few), make([]int64, few), "u64", "i64")
		differ(t, comms, make([]pair, few), make([]float64, few), "bytes(8)", "f64")
		differ(t, comms, make([][3]bool, few), make([]pair, few), "bytes(3)", "bytes(8)")
		differ(t, comms, make([]float32, 2*few), make([]float64, 1), "f32", "f64") // too long as well
		agree(t, comms, make([]celsius, few), make([]float64, few))
		agree(t, comms, make([]int, few), make([]int64, few))
		agree(t, comms, make([]pair, few), make([][8]bool, few))
		agree(t, comms, []byte{}, make([]float64, few))
		closeAll(t, comms)
	})
}

// typeTag is the tag of messages of several types.
const typeTag = 7

// differ sends from the last rank to rank 0, which receives another type.
func differ[S, R comparable](t *testing.T, comms []*planner.Comm, send []S, recv []R, sent, received string) {
	t.Helper()
	from := len(comms) - 1
	text := fmt.Sprintf("message has elements of another type: rank %d sends %s, and rank 0 receives %s with tag 7", from, sent, received)
	noErrors(t, each(comms, func(ctx context.Context, c *planner.Comm) error {
		if c.Rank() == from {
			for range 3 {
				if err := planner.Send(ctx, c, 0, typeTag, send); err != nil {
					return err
				}
			}
			return planner.Send(ctx, c, 0, typeTag, []int32{17})
		}
		if c.Rank() != 0 {
			return nil
		}
		wrong := func(what string, err error) {
			wantError(t, what, err, text)
			if !errors.Is(err, planner.ErrElements) {
				t.Errorf("%s: %v is not %v", what, err, planner.ErrElements)
			}
		}
		before := slices.Clone(recv)
		wrong("Recv", second(planner.Recv(ctx, c, from, typeTag, recv)))
		wrong("RecvAny", second(planner.RecvAny(ctx, c, typeTag, recv)))
		p, err := planner.StartRecv(ctx, c, from, typeTag, recv)
		if err != nil {
			return err
		}
		for range 2 {
			wrong("StartRecv", second(p.Wait(ctx)))
		}
		if !slices.Equal(recv, before) {
			t.Errorf("%s into %s: the buffer has changed", sent, received)
		}
		next := []int32{0}
		if got, err := planner.Recv(ctx, c, from, typeTag, next); got != 1 || err != nil || next[0] != 17 {
			return fmt.Errorf("the next message: %d elements, %d first, error %w", got, next[0], err)
		}
		return nil
	}))
}

// agree sends from the last rank to rank 0, which receives the same type by another name.
func agree[S, R any](t *testing.T, comms []*planner.Comm, send []S, recv []R) {
	t.Helper()
	noErrors(t, each(comms, func(ctx context.Context, c *planner.Comm) error {
		switch c.Rank() {
		case len(comms) - 1:
			return planner.Send(ctx, c, 0, typeTag, send)
		case 0:
			if n, err := planner.Recv(ctx, c, len(comms)-1, typeTag, recv); n != len(send) || err != nil {
				return fmt.Errorf("%T into %T: %d elements, %w", send, recv, n, err)
			}
		}
		return nil
	}))
}

// Each and Run end in an error where they can't call the function, and what there is
// of communicators is closed.
func TestWrongEach(t *testing.T) {
	fine := func(context.Context, *planner.Comm) error { return nil }
	onBoth(t, func(t *testing.T, comms []*planner.Comm) {
		with := func(c *planner.Comm) []*planner.Comm { return append(slices.Clone(comms), c) }
		for _, test := range []struct {
			what  string
			ctx   context.Context
			comms []*planner.Comm
			f     func(context.Context, *planner.Comm) error
			want  []string
		}{
			{"no communicators", t.Context(), nil, fine, []string{"there are no communicators"}},
			{"only a nil one", t.Context(), []*planner.Comm{nil}, fine, []string{"communicator 0 of 1: the communicator is nil or zero"}},
			{"all wrong", nobody, with(&planner.Comm{}), nil, []string{"the context is nil", "the function is nil", "communicator 4 of 5: the communicator is nil or zero"}},
			{"one twice", t.Context(), with(comms[1]), fine, []string{"communicator 4 of 5 is given twice"}}, // closed by now
		} {
			w := wrongUse{test.what, func(context.Context, *planner.Comm) error {
				return planner.Each(test.ctx, test.comms, test.f)
			}, test.want}
			w.check(t, comms[:1])
		}
		for r, err := range each(comms, sum) {
			if !errors.Is(err, planner.ErrClosed) {
				t.Errorf("rank %d after Each: %v", r, err)
			}
		}
		closeAll(t, comms)
	})
	wantError(t, "Run without a context", planner.Run(nobody, "2", nil, fine), "the context is nil")
	wantError(t, "Run without a function", planner.Run(t.Context(), "2", nil, nil), "the function is nil")
}

// Topologies that are none.
func TestWrongTopologies(t *testing.T) {
	barrier := tasks.Request{Coll: tasks.Barrier}
	for spec, want := range map[string]string{
		"0x2": `dimension "0"`, "2x": `dimension ""`, "-1": `dimension "-1"`,
		"1x1x1x1x1": "5 dimensions; allowed are 1 to 4", "4294967297": `dimension "4294967297"; allowed are numbers from 1 to 1048576`,
		"1048576x2": "allowed are at most 1048576", "2x2/round": "allowed are /block and /rr", "a:1,a:1": `node "a" is given twice`,
	} {
		err := planner.Run(t.Context(), spec, nil, func(context.Context, *planner.Comm) error { return nil })
		what := fmt.Sprintf("topology %q", spec)
		wantError(t, what, err, what, want)
	}
	for what, none := range map[string]*levels.Topology{"nil": nil, "zero": {}} {
		for name, f := range map[string]func() error{
			"LocalOn":  func() error { return second(planner.LocalOn(none, nil)) },
			"Decide":   func() error { return second(planner.Decide(barrier, none, nil)) },
			"Explain":  func() error { return second(planner.Explain(barrier, none, nil)) },
			"Consider": func() error { return second(tune.Consider(barrier, none, nil, tune.Space{})) },
		} {
			wantError(t, what+" topology of "+name, caught(f), "the topology is nil or zero", "package levels")
		}
	}
	two := tasktest.Topology(t, "2")
	for what, f := range map[string]func() error{
		"the context is nil":  func() error { return second((&tune.Search{Topology: two}).Run(nobody, nil)) },
		"the meter is nil":    func() error { return second((&tune.Search{Topology: two}).Run(t.Context(), nil)) },
		"rank 0 of -1":        func() error { return second(raw.JoinAs(t.Context(), join.Config{Size: -1}, nil)) },
		"rank 3 of 1":         func() error { return second(raw.JoinAs(t.Context(), join.Config{Size: 1, Rank: 3}, nil)) },
		"rank 2; allowed are": func() error { return second(raw.JoinAs(t.Context(), join.Config{Size: 2, Rank: 2}, nil)) },
		"no secret; allowed":  func() error { return second(raw.JoinAs(t.Context(), join.Config{Size: 2}, nil)) },
		"join: the context":   func() error { return second(raw.JoinAs(nobody, join.Config{Size: 2}, nil)) },
		"join: the context ":  func() error { return second(planner.Join(nobody, nil)) },
	} {
		wantError(t, what, caught(f), what)
	}
}

// Options that can't be are the same error on goroutine ranks, in a job of one and
// between processes, whether they are the program's or the environment's.
func TestWrongOptions(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "no", "where")
	for _, test := range []struct {
		what  string
		o     planner.Options
		name  string // of an environment variable
		value string
		want  []string
	}{
		{what: "congestion", o: planner.Options{Congestion: "nosuch"}, want: []string{`TCP congestion control "nosuch"`, "this kernel has ", "reno"}},
		{what: "congestion of the environment", name: env.Congestion, value: "nosuch", want: []string{`TCP congestion control "nosuch"`, "this kernel has "}},
		{what: "plan", o: planner.Options{Plan: "s=shm"}, want: []string{`Options.Plan`, `unknown submodule "shm"; known are `}},
		{what: "plan of the environment", name: env.Plan, value: "fs=0", want: []string{"TIERFLOW_PLAN", "fs=0: a segment has at least one byte"}},
		{what: "a table that is elsewhere", o: planner.Options{Table: nowhere, Files: inMemory("table", []byte("{}"))}, want: []string{"Options.Table", nowhere}},
		{what: "no such table", o: planner.Options{Table: nowhere}, want: []string{"Options.Table: ", nowhere}},
		{what: "no such table of the environment", name: env.Table, value: nowhere, want: []string{"TIERFLOW_TABLE: ", nowhere}},
		{what: "a table that is none", o: planner.Options{Table: "table", Files: inMemory("table", []byte("[]"))}, want: []string{"Options.Table: table:1"}},
		{what: "a recorder nowhere", o: planner.Options{Recorder: nowhere}, want: []string{"Options.Recorder: ", nowhere}},
		{what: "managed twice", name: env.Managed, value: "2", want: []string{`TIERFLOW_MANAGED="2"; allowed are 0 and 1`}},
		{what: "a dump of 2", name: env.Dump, value: "2", want: []string{`TIERFLOW_DUMP="2"; allowed are 0 and 1`}},
	} {
		t.Run(test.what, func(t *testing.T) {
			if test.name != "" {
				t.Setenv(test.name, test.value)
			}
			wantError(t, "goroutine ranks", second(planner.Local("2x2", &test.o)), test.want...)
			wantError(t, "a job of one", second(raw.JoinAs(t.Context(), join.Config{Size: 1}, &test.o)), test.want...)
			for r, err := range joinErrors(t, 2, &test.o) {
				wantError(t, fmt.Sprint("process ", r), err, test.want...)
			}
		})
	}
}

// joinErrors joins ranks that are processes, on nodes of their own, and returns their
// errors. No rank may need longer than patience.
func joinErrors(t *testing.T, n int, o *planner.Options) []error {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, errHangs)
	defer cancel()
	errs := make([]error, n)
	ended := make(chan int)
	for r := range n {
		cfg := join.Config{Rank: levels.Rank(r), Size: n, Rendezvous: []string{l.Addr().String()}, Secret: "a test", Node: fmt.Sprint("node", r)}
		if r == 0 {
			cfg.Listener = l
		}
		go func() { // waited for below
			var c *planner.Comm
			if c, errs[r] = raw.JoinAs(ctx, cfg, o); errs[r] == nil {
				_ = c.Close()
			}
			ended <- r
		}()
	}
	for range n {
		<-ended
	}
	return errs
}
