// Package clocktest lets tests wait: for what no channel tells of, and for a bubble's clock.
package clocktest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// look is the time between two looks at a condition.
const look = time.Millisecond

// patience ends a hang.
const patience = 3 * time.Minute

// Await returns when holds does, which it asks every millisecond; or the context's cause when that
// ends before.
func Await(ctx context.Context, holds func() bool) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Until is [Await] in a test. It ends the test if what it waits for doesn't come within three minutes.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if Await(ctx, holds) != nil {
		t.Fatalf("not so after %v: %s", patience, what)
	}
}

// Pass lets time go by in a bubble, and then whatever is due by now. Outside of a bubble it panics:
// there no time is long enough.
func Pass(d time.Duration) {
	synctest.Wait()
	time.Sleep(d)
	synctest.Wait()
}

// Pause waits, or until the context ends: for ranks that come at different times.
func Pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
