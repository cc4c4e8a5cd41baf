package executor_test

import (
	"bytes"
	"context"
	"regexp"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/tasks"
)

// A dump names for each rank what it waits for, or that it is in no call, and the
// last events; and the job goes on.
func TestDump(t *testing.T) {
	inBubble(t, 2, executor.Config{StallAfter: -1}, func(t *testing.T, w *executor.World) {
		runs := crossed(t, w, 0)
		done := make(chan error)
		go func() { done <- runs[1].Do(t.Context()) }()
		clocktest.Pass(2050 * time.Millisecond)
		var b bytes.Buffer
		w.Dump(&b)
		want := regexp.MustCompile(`^rank 0: in no call
rank 1, bcast 3 i32 root 0: waits for r0 since 1\.9 s: ib#0 recv r0>r1 12B, at executor_test\.TestDump\S* dump_test\.go:\d+
-2\.05\d{4}s  rank 1  begin +bcast 3 i32 root 0 #0
-1\.\d{6}s  rank 1  sent +to rank 0 +probe edge 0, 0 bytes +bcast 3 i32 root 0 #0
-1\.\d{6}s  rank 1  wait +for rank 0  edge 0, 12 bytes +bcast 3 i32 root 0 #0
`)
		if !want.Match(b.Bytes()) {
			t.Errorf("dumped\n%s\nwant %s", &b, want)
		}
		if err := runs[0].Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}

// A rank whose operation takes for ever doesn't keep the others from being dumped.
func TestDumpWhileComputing(t *testing.T) {
	h, p := parse(t, "2", "shape=flat,fs=all,w=1,s=adapt/binomial")
	w := newWorld(t, 2, executor.Config{})
	entered, leave := make(chan bool, 2), make(chan bool)
	op := tasks.UserOp("slow", true, func(a, b int32) int32 {
		entered <- true
		<-leave
		return a + b
	})
	request := tasks.Request{Coll: tasks.Allreduce, Count: 1, Type: tasks.Int32, Op: op, InPlace: true}
	runs := job{w, h, request, p}.bind(t, nil, raws(numbers(2, 1)))
	succeed(t, w, func(ctx context.Context, r int) error {
		if r == 0 {
			go func() {
				<-entered
				defer close(leave)
				var b bytes.Buffer
				w.Dump(&b)
				if !regexp.MustCompile(`(?m)^rank 0, allreduce 1 i32 slow: in an operation of the program since 0\.\d s`).Match(b.Bytes()) || !bytes.Contains(b.Bytes(), []byte("rank 1, allreduce")) {
					t.Errorf("dumped\n%s", &b)
				}
			}()
		}
		return runs[r].Do(ctx)
	})
}

// A state tells how long ago its rank has met its first failure.
func TestFailureGrowsOld(t *testing.T) {
	inBubble(t, 2, executor.Config{StallAfter: -1}, func(t *testing.T, w *executor.World) {
		runs := crossed(t, w, 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := runs[1].Do(ctx); err == nil {
			t.Fatal("a call without rank 0 has ended well")
		}
		for _, ago := range []time.Duration{0, 3 * time.Second} {
			clocktest.Pass(ago)
			if s := w.Endpoint(1).State(0); s.Failed == nil || s.Failed.Ago.Round(time.Second) != ago {
				t.Errorf("%v after the failure the state has %+v", ago, s.Failed)
			}
		}
	})
}
