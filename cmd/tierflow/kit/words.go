package kit

import (
	"fmt"
	"math"
	"strings"

	"github.com/tierflow/tierflow/tasks"
)

func Names[T fmt.Stringer](all []T) []string {
	text := make([]string, len(all))
	for i, v := range all {
		text[i] = v.String()
	}
	return text
}

// AnyOf returns bcast, allreduce or barrier.
func AnyOf(all []tasks.Collective) string { return listed(all, "or") }

// listed returns bcast, allreduce, last barrier.
func listed(all []tasks.Collective, last string) string {
	text := Names(all)
	n := len(text) - 1
	return strings.Join(text[:n], ", ") + " " + last + " " + text[n]
}

func Plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

func es(n int) string {
	if n == 1 {
		return ""
	}
	return "es"
}

// Round keeps what a measurement can tell: 1e3 parts of a microsecond, 1e6 of a
// GB/s.
func Round(v, parts float64) float64 { return math.Round(v*parts) / parts }
