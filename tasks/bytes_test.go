package tasks_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/tasks"
)

func TestBytes(t *testing.T) {
	for _, tc := range []struct {
		n    int64
		text string
		also []string // other ways to write it
	}{
		{0, "0B", []string{"0", "0K", "0MiB"}},
		{1, "1B", []string{"1", "001"}},
		{1000, "1000B", nil},
		{1023, "1023B", nil},
		{64 << 10, "64KiB", []string{"65536", "65536B", "64K"}},
		{1536 << 10, "1536KiB", nil},
		{4 << 20, "4MiB", []string{"4M", "4096KiB"}},
		{3 << 30, "3GiB", []string{"3G"}},
		{8191 << 40, "8191TiB", []string{"8191T"}},
		{math.MaxInt64 - 1, "9223372036854775806B", nil},
		{tasks.Whole, "all", []string{"9223372036854775807"}},
	} {
		if got := tasks.FormatBytes(tc.n); got != tc.text {
			t.Errorf("FormatBytes(%d) = %q, want %q", tc.n, got, tc.text)
		}
		for _, s := range append(tc.also, tc.text) {
			if got, err := tasks.ParseBytes(s); got != tc.n || err != nil {
				t.Errorf("ParseBytes(%q) = %d, %v, want %d", s, got, err, tc.n)
			}
		}
	}
}

func TestParseBytesErrors(t *testing.T) {
	for _, s := range []string{
		"", "B", "K", "-1", "-4K", "1.5M", "64 KiB", "64kib", "64k", "4KB", "ALL", "1_000", "+4", "+4K",
		"8388608T", "9223372036854775808", "0x10", "all4", "٤",
	} {
		_, err := tasks.ParseBytes(s)
		if err == nil || !strings.Contains(err.Error(), "is not a byte count; write 65536, 64KiB, 4MiB, 1GiB or all") {
			t.Errorf("ParseBytes(%q): got error %v, want one that says what is allowed", s, err)
		}
	}
}

func FuzzParseBytes(f *testing.F) {
	for _, s := range []string{"0", "all", "64KiB", "8191T", "9223372036854775807", "-1", "B", "1e3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := tasks.ParseBytes(s)
		if err != nil {
			return
		}
		if n < 0 {
			t.Fatalf("ParseBytes(%q) = %d", s, n)
		}
		if again, err := tasks.ParseBytes(tasks.FormatBytes(n)); again != n || err != nil {
			t.Fatalf("%q is %d, printed %q, read again %d, %v", s, n, tasks.FormatBytes(n), again, err)
		}
	})
}
