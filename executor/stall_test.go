package executor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/tasks"
)

// crossed binds a small broadcast from a root between two nodes.
func crossed(t failer, w *executor.World, root levels.Rank) []*executor.Run {
	h, p := parse(t, "2x1", "shape=han,fs=all,w=1,i=adapt/chain")
	return job{w, h, tasks.Request{Coll: tasks.Bcast, Count: 3, Type: tasks.Int32, Root: root}, p}.bind(t, nil, raws(numbers(2, 3)))
}

// lines keeps what is logged, one line each.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, strings.TrimSpace(string(b)))
	return len(b), nil
}

// text returns what was logged so far.
func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "\n")
}

func (l *lines) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// A run that stands still is reported after the time that was asked for, and then
// each time it has stood twice as long.
func TestStall(t *testing.T) {
	var log lines
	inBubble(t, 2, executor.Config{StallAfter: time.Second, Log: log.logger()}, func(t *testing.T, w *executor.World) {
		runs := crossed(t, w, 0)
		done := make(chan error)
		go func() { done <- runs[1].Do(t.Context()) }()
		synctest.Wait()
		if got, want := fmt.Sprint(w.Endpoint(1).Waiting()), "[rank 1, bcast 3 i32 root 0: waits for r0: ib#0 recv r0>r1 12B]"; got != want {
			t.Errorf("waiting: %s, want %s", got, want)
		}
		clocktest.Pass(5 * time.Second)
		if err := runs[0].Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		want := []string{
			`level=WARN msg=stalled rank=1 request="bcast 3 i32 root 0" waits="ib#0 recv r0>r1 12B" for=1s missing=r0`,
			`level=WARN msg=stalled verdict="late: rank 0 has not come to bcast 3 i32 root 0 #0 for 1.0 s; it is in no call"`,
			`level=WARN msg=stalled rank=1 request="bcast 3 i32 root 0" waits="ib#0 recv r0>r1 12B" for=2s missing=r0`,
			`level=WARN msg=stalled verdict="late: rank 0 has not come to bcast 3 i32 root 0 #0 for 2.0 s; it is in no call"`,
			`level=WARN msg=stalled rank=1 request="bcast 3 i32 root 0" waits="ib#0 recv r0>r1 12B" for=4s missing=r0`,
			`level=WARN msg=stalled verdict="late: rank 0 has not come to bcast 3 i32 root 0 #0 for 4.0 s; it is in no call"`,
		}
		if got := log.text(); got != strings.Join(want, "\n") {
			t.Errorf("logged\n%s\nwant\n%s", got, strings.Join(want, "\n"))
		}
	})
}

func TestNoStallReports(t *testing.T) {
	var log lines
	inBubble(t, 2, executor.Config{StallAfter: -1, Log: log.logger()}, func(t *testing.T, w *executor.World) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Hour, errEnough)
		defer cancel()
		if err := crossed(t, w, 0)[1].Do(ctx); !errors.Is(err, errEnough) {
			t.Errorf("%v, want %v", err, errEnough)
		}
		if got := log.text(); strings.Contains(got, "stalled") || !strings.Contains(got, "communicator broken") {
			t.Errorf("logged %s, want the failure only", got)
		}
	})
}

func TestWaitingNamesTransfers(t *testing.T) {
	w := newWorld(t, 2, executor.Config{})
	c := w.Endpoint(0).Comm(0)
	if _, err := c.Send(t.Context(), 1, 4, 0, make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Recv(t.Context(), 1, 5, 0, nil); err != nil {
		t.Fatal(err)
	}
	got, want := fmt.Sprint(w.Endpoint(0).Waiting()), "[rank 0, receive from rank 1, tag 5 rank 0, send 1048576 bytes to rank 1, tag 4]"
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
