//go:build !linux

package door

import (
	"io/fs"
	"time"
)

// processStat knows nothing: ranks are processes on Linux only.
func processStat(int) (born uint64, stopped, known bool) { return 0, false, false }

// ProcessorTime is known on Linux only.
func (i *Info) ProcessorTime() (ran, delayed time.Duration, known bool) { return 0, 0, false }

func pidSpace() string { return "" }

func isOwn(fs.FileInfo) bool { return true }
