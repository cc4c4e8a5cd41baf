package ranges

import (
	"slices"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	for want, numbers := range map[string][]int{"": nil, "3": {3}, "0-3,7": {0, 1, 2, 3, 7}, "1,3,5-6": {1, 3, 5, 6}} {
		if got := Text(numbers); got != want {
			t.Errorf("%v: %q, want %q", numbers, got, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, list := range []string{"3-1", "0,0", "5,0-9", "-1", "1-", "8", "0-99999999999", "+1", "1,,2", "0x1", " 1"} {
		if got, err := Parse(list, 8); err == nil || !strings.Contains(err.Error(), "ranges below 8") {
			t.Errorf("%q: %v, %v", list, got, err)
		}
	}
}

// FuzzParse checks that numbers are ascending and in range. Written and read again they are
// the same.
func FuzzParse(f *testing.F) {
	for _, list := range []string{"", "0", "0-3", "0-1,4-5,9", "3-1", "0,0", "-1", "1-", "0-99999999", "+1", "1,,2"} {
		f.Add(list)
	}
	const below = 1 << 16
	f.Fuzz(func(t *testing.T, list string) {
		numbers, err := Parse(list, below)
		if err != nil {
			return
		}
		for i, n := range numbers {
			if n < 0 || n >= below || i > 0 && n <= numbers[i-1] {
				t.Fatalf("%q became %v", list, numbers)
			}
		}
		again, err := Parse(Text(numbers), below)
		if err != nil || !slices.Equal(again, numbers) {
			t.Errorf("%q became %v, which becomes %v, %v", list, numbers, again, err)
		}
	})
}
