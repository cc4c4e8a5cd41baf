package feedback

import "time"

// SetClock lets a tuner take times by another clock.
func (t *Tuner) SetClock(now func() time.Duration) { t.clock = now }
