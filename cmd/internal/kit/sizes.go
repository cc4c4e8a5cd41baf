package kit

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/tasks"
)

// maxSizes bounds a list: a mistyped factor must not make a run of days.
const maxSizes = 100

// ParseSizes reads a list of byte counts such as 4,64KiB,1MiB. An item may be a range:
// 4:4MiB:x4 goes from 4 to at most 4 MiB, each size four times the one before.
func ParseSizes(s string) ([]int64, error) {
	var all []int64
	for _, item := range strings.Split(s, ",") {
		sizes, err := parseRange(item)
		if err != nil {
			return nil, err
		}
		if all = append(all, sizes...); len(all) > maxSizes {
			return nil, fmt.Errorf("%q: over %d sizes", s, maxSizes)
		}
	}
	return all, nil
}

func parseRange(item string) ([]int64, error) {
	parts := strings.Split(item, ":")
	if len(parts) == 1 {
		n, err := ParseSize(item)
		return []int64{n}, err
	}
	if len(parts) != 3 || !strings.HasPrefix(parts[2], "x") {
		return nil, fmt.Errorf("%q: a range is from:to:xfactor, such as 4:4MiB:x4", item)
	}
	from, err := ParseSize(parts[0])
	if err != nil {
		return nil, err
	}
	to, err := ParseSize(parts[1])
	if err != nil {
		return nil, err
	}
	factor, err := strconv.ParseUint(parts[2][1:], 10, 16)
	if err != nil || factor < 2 || from < 1 || to < from {
		return nil, fmt.Errorf("%q: from is at least 1, to is not less, and the factor is 2 to 65535", item)
	}
	var all []int64
	for n := from; ; n *= int64(factor) {
		all = append(all, n)
		if n > to/int64(factor) {
			return all, nil
		}
	}
}

// ParseSize reads one byte count.
func ParseSize(s string) (int64, error) {
	n, err := tasks.ParseBytes(s)
	if err == nil && n == tasks.Whole {
		return 0, fmt.Errorf("%q is no size of a message", s)
	}
	return n, err
}
