// Package ranges reads and writes lists of numbers as kernels and launchers do: 0-3,8.
package ranges

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Text writes ascending numbers, neighbours as a range; none are "".
func Text[N ~int | ~int32](numbers []N) string { return strings.Join(Items(numbers), ",") }

// Items returns the parts of [Text]: single numbers and ranges.
func Items[N ~int | ~int32](numbers []N) []string {
	var items []string
	for i := 0; i < len(numbers); i++ {
		first := numbers[i]
		for i+1 < len(numbers) && numbers[i+1] == numbers[i]+1 {
			i++
		}
		item := strconv.Itoa(int(first))
		if numbers[i] > first {
			item += "-" + strconv.Itoa(int(numbers[i]))
		}
		items = append(items, item)
	}
	return items
}

// Parse reads ascending numbers from 0 to below-1, singly and as ranges; "" names none.
func Parse(list string, below int) ([]int, error) {
	if list == "" {
		return nil, nil
	}
	var numbers []int
	previous := -1
	for item := range strings.SplitSeq(list, ",") {
		low, high, isRange := strings.Cut(item, "-")
		if !isRange {
			high = low
		}
		first, err := strconv.ParseUint(low, 10, 31)
		last, errLast := strconv.ParseUint(high, 10, 31)
		if errors.Join(err, errLast) != nil || int(last) >= below || first > last || int(first) <= previous {
			return nil, fmt.Errorf("%.60q is no list of numbers; allowed are ascending numbers and ranges below %d, such as 0-3,8", list, below)
		}
		previous = int(last)
		for n := int(first); n <= previous; n++ {
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
}
