package kit

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/tierflow/tierflow/tasks"
)

// Names returns the names of all.
func Names[T fmt.Stringer](all []T) []string { return Words(all, T.String) }

// Words returns a word of each value, in their order.
func Words[T any](all []T, of func(T) string) []string {
	text := make([]string, len(all))
	for i, v := range all {
		text[i] = of(v)
	}
	return text
}

// AnyOf returns bcast, allreduce or barrier.
func AnyOf(all []tasks.Collective) string { return enumerate(all, "or") }

// enumerate returns bcast, allreduce, last barrier.
func enumerate(all []tasks.Collective, last string) string {
	text := Names(all)
	n := len(text) - 1
	return strings.Join(text[:n], ", ") + " " + last + " " + text[n]
}

// Plural returns the ending of a noun behind the number n.
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

// NewTable returns a table on w: columns to the left, two spaces apart.
func NewTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

// Round keeps the digits within a measurement's precision: parts is 1e3 for microseconds.
func Round(v, parts float64) float64 { return math.Round(v*parts) / parts }

// RoundRate keeps six decimals of GB/s, and of small rates three digits.
func RoundRate(v float64) float64 {
	return Round(v, math.Pow10(max(6, smallDigits(v))))
}

// RateText prints bytes per second with three digits, in a unit that fits: 1.23 GB/s (1e9 bytes/s),
// 77.9 MB/s, 13.1 kB/s or B/s.
func RateText(rate float64) string {
	for _, unit := range []struct {
		name string
		size float64
	}{{"GB/s", 1e9}, {"MB/s", 1e6}, {"kB/s", 1e3}} {
		if rate >= unit.size {
			return fmt.Sprintf("%.3g %s", rate/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%.3g B/s", rate)
}

// smallDigits returns how many decimals a number below 1 needs for three digits.
func smallDigits(v float64) int {
	if v <= 0 || v >= 1 {
		return 0
	}
	return 2 - int(math.Floor(math.Log10(v)))
}
