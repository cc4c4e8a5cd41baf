package kit

import (
	"os"
	"strings"
	"testing"
)

// Wide tables are broken between the same two columns in all rows, prose between words.
func TestScreenFits(t *testing.T) {
	for _, test := range []struct {
		width      int
		text, want string
	}{
		{40, "short\n\nand short\n", "short\n\nand short\n"},
		{10, strings.Repeat("narrow ", 9) + "\n", strings.Repeat("narrow ", 9) + "\n"},
		{30, "these are a few words of prose that wrap\n", "these are a few words of prose\n    that wrap\n"},
		{
			24, "time   wire  plan      origin\n1.5ms  90%   shape=ar  the rule\n12ms   7%    flat      table\n",
			"time   wire  plan\n    origin\n1.5ms  90%   shape=ar\n    the rule\n12ms   7%    flat\n    table\n",
		},
		{
			28, "   bytes   min µs   p50 µs   algbw\n      64   12.000   13.125   0.001\n   64KiB    1.250    1.500   9.876\n",
			"   bytes   min µs   p50 µs\n       algbw\n      64   12.000   13.125\n       0.001\n   64KiB    1.250    1.500\n       9.876\n",
		},
	} {
		var b strings.Builder
		s := &screen{out: &b, width: func() int { return test.width }}
		for _, piece := range strings.SplitAfter(test.text, " ") { // as tables come, in pieces
			if n, err := s.Write([]byte(piece)); n != len(piece) || err != nil {
				t.Fatal(n, err)
			}
		}
		if s.flush(); b.String() != test.want {
			t.Errorf("width %d: got\n%swant\n%s", test.width, b.String(), test.want)
		}
	}
}

// Files and pipes get bytes as they are, without colours.
func TestFilesAreNoScreens(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if onScreen(f) != f || Coloured(f, Red, "text") != "text" {
		t.Error("a file is taken for a terminal")
	}
}
