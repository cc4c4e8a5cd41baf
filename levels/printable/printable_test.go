package printable_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/levels/printable"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "",
		"r4: ib#3 recv → 64 KiB µs": "r4: ib#3 recv → 64 KiB µs",
		"\x1b[2Jgone":               "?[2Jgone",
		"one\ntwo\rthree\tfour":     "one?two?three?four",
		"\u009b2J\u202eabc\u2028":   "?2J?abc?",
		"\xff\xc3(":                 "??(",
	} {
		if got := printable.Text(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	if got := printable.Lines("a\tb\n\x1bc\r\n"); got != "a\tb\n?c?\n" {
		t.Errorf("%q", got)
	}
}

func TestAll(t *testing.T) {
	type inner struct {
		Name string
		Next *inner
	}
	type outer struct {
		Names  []string
		Fixed  [2]inner
		Map    map[string]string
		At     time.Time
		Number int
		Bytes  []byte
		hidden string
	}
	at := time.Unix(7, 0)
	got := outer{[]string{"a\n"}, [2]inner{{"b\x1b", &inner{Name: "c\x7f"}}}, map[string]string{"k": "v\r"}, at, 5, []byte{27}, "\x1b"}
	want := outer{[]string{"a?"}, [2]inner{{"b?", &inner{Name: "c?"}}}, map[string]string{"k": "v?"}, at, 5, []byte{27}, "\x1b"}
	printable.All(&got)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(outer{})); diff != "" {
		t.Error(diff)
	}
}
