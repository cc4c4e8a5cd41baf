package executor_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/local"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
)

// A rank waits for one that comes only when another library has gone on, which the waiting
// rank must let it do: without that both wait for ever.
func TestProgressOfAnotherLibrary(t *testing.T) {
	var looks atomic.Int64
	moved := make(chan bool)
	w := local.New(2, executor.Config{Progress: func() {
		if looks.Add(1) == 1000 {
			close(moved)
		}
	}})
	defer w.Close()
	runs := crossed(t, w, 0)
	done := make(chan error, 1)
	go func() { done <- runs[1].Do(t.Context()) }()
	select {
	case <-moved:
	case <-time.After(patience):
		t.Fatalf("a rank that waits has let the other library go on %d times", looks.Load())
	}
	if err := runs[0].Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// A rank that lends its thread still hears of a cancelled context and reports stalls.
func TestProgressKeepsTheClock(t *testing.T) {
	var log lines
	w := local.New(2, executor.Config{Progress: func() {}, StallAfter: time.Millisecond, Log: log.logger()})
	defer w.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	runs := crossed(t, w, 0)
	done := make(chan error, 1)
	go func() { done <- runs[1].Do(ctx) }()
	clocktest.Until(t, "a stall is reported", func() bool {
		log.mu.Lock()
		defer log.mu.Unlock()
		return len(log.all) > 0
	})
	enough := errors.New("enough")
	cancel(enough)
	select {
	case err := <-done:
		if !errors.Is(err, enough) {
			t.Fatalf("error %v, want %v", err, enough)
		}
	case <-time.After(patience):
		t.Fatal("a cancelled call goes on")
	}
}

// Done says when a started run has ended, without waiting, and lets nobody else wait.
func TestDone(t *testing.T) {
	w := local.New(2, executor.Config{})
	defer w.Close()
	runs := crossed(t, w, 0)
	if err := runs[1].Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if runs[1].Done() {
		t.Fatal("a run has ended that the root has not begun")
	}
	if err := runs[0].Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	clocktest.Until(t, "a run that nobody waits for ends", runs[1].Done)
	if err := runs[1].Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}
