package ballot

import "time"

// schedule says when something is done again. The pause before the next time may double, up to a limit.
type schedule struct {
	due   time.Time
	pause time.Duration
	most  time.Duration
}

// newSchedule returns a schedule due after a first pause.
func newSchedule(now time.Time, first, most time.Duration) schedule {
	return schedule{due: now.Add(first), pause: first, most: most}
}

// isDue reports whether the time has come.
func (s *schedule) isDue(now time.Time) bool { return !now.Before(s.due) }

// next begins the next pause: twice the last one if longer.
func (s *schedule) next(now time.Time, longer bool) {
	if longer {
		s.pause = min(2*s.pause, s.most)
	}
	s.due = now.Add(s.pause)
}
