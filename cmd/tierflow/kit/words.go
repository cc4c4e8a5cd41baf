package kit

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/tasks"
)

// Names returns the names of all.
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

// Plural returns the ending of a noun that n of something have.
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

// Round keeps what a measurement can tell: parts is 1e3 for microseconds.
func Round(v, parts float64) float64 { return math.Round(v*parts) / parts }

// RoundRate keeps six decimals of GB/s, and of small rates three digits.
func RoundRate(v float64) float64 {
	return Round(v, math.Pow10(max(6, smallDigits(v))))
}

// RateText prints GB/s with three decimals, and small rates with three digits.
func RateText(v float64) string {
	return strconv.FormatFloat(v, 'f', max(3, smallDigits(v)), 64)
}

// smallDigits returns how many decimals a number below 1 needs for three digits.
func smallDigits(v float64) int {
	if v <= 0 || v >= 1 {
		return 0
	}
	return 2 - int(math.Floor(math.Log10(v)))
}
