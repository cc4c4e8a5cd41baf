//go:build !linux

package executor

import (
	"os"
	"strconv"
	"time"
)

// started is when monotonic was 0.
var started = time.Now()

// monotonic reads a clock shared by all ranks of this process, ns.
func monotonic() int64 { return int64(time.Since(started)) }

// clockOrigin is equal in processes with the same clock: ranks in several processes need Linux.
func clockOrigin() string { return strconv.Itoa(os.Getpid()) + started.String() }
