//go:build !linux

package executor

import (
	"os"
	"strconv"
	"time"
)

// started is when monotonic was 0.
var started = time.Now()

// monotonic reads a clock that all ranks of this process share, ns.
func monotonic() int64 { return int64(time.Since(started)) }

// clockOrigin is equal where that clock is the same: ranks that are processes need Linux.
func clockOrigin() string { return strconv.Itoa(os.Getpid()) + started.String() }
