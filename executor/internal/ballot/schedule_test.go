package ballot

import (
	"testing"
	"time"
)

// A pause doubles only when asked to, and not beyond the limit.
func TestSchedule(t *testing.T) {
	start := time.Unix(100, 0)
	s := newSchedule(start, 20*time.Millisecond, 90*time.Millisecond)
	now := start
	for i, c := range []struct {
		longer bool
		pause  time.Duration // before it is due
	}{
		{false, 20 * time.Millisecond},
		{true, 20 * time.Millisecond},
		{true, 40 * time.Millisecond},
		{false, 80 * time.Millisecond},
		{true, 80 * time.Millisecond},
		{true, 90 * time.Millisecond},
		{false, 90 * time.Millisecond},
	} {
		if s.isDue(now.Add(c.pause - 1)) {
			t.Errorf("time %d: due before %v", i, c.pause)
		}
		if now = now.Add(c.pause); !s.isDue(now) {
			t.Errorf("time %d: not due after %v", i, c.pause)
		}
		s.next(now, c.longer)
	}
}
