package tasks

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Whole is the segment size that leaves a message in one piece.
const Whole = math.MaxInt64

var units = []struct {
	suffix string
	bytes  int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// FormatBytes prints a byte count in the largest binary unit that divides it: [ParseBytes] reads
// back the same number; [Whole] is "all".
func FormatBytes(n int64) string {
	if n == Whole {
		return "all"
	}
	for _, u := range units {
		if n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

// ParseBytes reads a count of bytes: 65536, 64KiB, 64K (binary too), 1MiB, all.
func ParseBytes(s string) (int64, error) {
	if s == "all" {
		return Whole, nil
	}
	number, unit := s, int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(s, u.suffix); ok {
			number, unit = rest, u.bytes
			break
		}
		if rest, ok := strings.CutSuffix(s, u.suffix[:1]); ok && u.bytes > 1 {
			number, unit = rest, u.bytes
			break
		}
	}
	n, err := strconv.ParseUint(number, 10, 63) // unlike ParseInt it takes no sign
	if err != nil || int64(n) > Whole/unit {
		return 0, fmt.Errorf("%q is not a byte count; write 65536, 64KiB, 4MiB, 1GiB or all", s)
	}
	return int64(n) * unit, nil
}
