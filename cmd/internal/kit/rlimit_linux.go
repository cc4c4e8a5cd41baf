package kit

import (
	"math"

	"golang.org/x/sys/unix"
)

// ownLimit returns the least of the limits of this process's own memory (ulimit -d, ulimit
// -v), bytes; 0: there is none.
func ownLimit() int64 {
	least := int64(math.MaxInt64)
	for _, kind := range []int{unix.RLIMIT_DATA, unix.RLIMIT_AS} {
		var l unix.Rlimit
		if unix.Getrlimit(kind, &l) == nil && uint64(l.Cur) < uint64(least) {
			least = int64(l.Cur)
		}
	}
	if least == math.MaxInt64 {
		return 0
	}
	return least
}
