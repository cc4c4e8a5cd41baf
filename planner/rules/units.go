package rules

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/tasks"
)

// units are the ends of numbers, beside those of bytes.
var units = []struct {
	suffix string
	unit   unit
	times  float64
}{
	{"gbit", inBits, 1e9},
	{"mbit", inBits, 1e6},
	{"kbit", inBits, 1e3},
	{"bit", inBits, 1},
	{"ns", nanosec, 1},
	{"us", nanosec, 1e3},
	{"ms", nanosec, 1e6},
}

// readNumber reads a number with its unit.
func readNumber(text string) (int64, unit, error) {
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			x, err := strconv.ParseFloat(rest, 64)
			if err == nil && x >= 0 && x*u.times < math.MaxInt64/2 {
				return int64(math.Round(x * u.times)), u.unit, nil
			}
		}
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err == nil {
		return int64(n), plain, nil
	}
	b, err := tasks.ParseBytes(text)
	if err != nil {
		return 0, 0, fmt.Errorf("%q is no number; write 8, 64KiB, 4MiB, 10gbit, 50us or all", clip(text))
	}
	return b, inBytes, nil
}

// writeNumber is the inverse of readNumber.
func writeNumber(n int64, u unit) string {
	switch {
	case n == Unknown:
		return "unknown"
	case u == inBytes:
		return tasks.FormatBytes(n)
	case u == truth:
		return map[bool]string{true: "yes", false: "no"}[n != 0]
	case u == ofShape || u == ofCollective:
		if names := namedValues(u); n > 0 && n <= int64(len(names)) {
			return names[n-1]
		}
		return "none"
	}
	best := ""
	for _, known := range units {
		if known.unit == u && n%int64(known.times) == 0 {
			if text := strconv.FormatInt(n/int64(known.times), 10) + known.suffix; best == "" || len(text) < len(best) {
				best = text
			}
		}
	}
	return cmp.Or(best, strconv.FormatInt(n, 10))
}

// ParseNumber reads a number as rules have it: 8, 64KiB, 10gbit, 50us, all. Rates are bits a
// second, times nanoseconds.
func ParseNumber(text string) (int64, error) {
	n, _, err := readNumber(text)
	return n, err
}
