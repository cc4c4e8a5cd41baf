//go:build !linux

package measure

import "time"

// threadTime is not known.
func threadTime() (used time.Duration, ok bool) { return 0, false }
