package clocktest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		after := func() bool { return time.Since(began) >= 5*look }
		if err := Await(t.Context(), after); err != nil || time.Since(began) != 5*look {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		Until(t, "more time", func() bool { return time.Since(began) >= 7*look })
		enough := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, enough)
		defer cancel()
		if err := Await(ctx, func() bool { return false }); !errors.Is(err, enough) {
			t.Errorf("a condition that never holds: %v", err)
		}
		if err := Await(ctx, func() bool { return true }); err != nil {
			t.Errorf("one that holds, after the end: %v", err)
		}
		Pause(ctx, time.Hour)
	})
}

// What is due when the time has passed has happened.
func TestPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, due := time.Now(), false
		time.AfterFunc(time.Hour, func() { due = true })
		if Pass(time.Hour); !due || time.Since(began) != time.Hour {
			t.Errorf("after %v it is due: %v", time.Since(began), due)
		}
	})
}
