package kit

import (
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/tasks"
)

func TestParseSizes(t *testing.T) {
	for text, want := range map[string]string{
		"4":                              "[4]",
		"0,64KiB":                        "[0 65536]",
		"4:4KiB:x4,1MiB":                 "[4 16 64 256 1024 4096 1048576]",
		"4:100:x5":                       "[4 20 100]",
		"1:1:x2":                         "[1]",
		"4611686018427387904:8191PiB:x2": "",
		"4:4":                            "",
		"0:4:x2":                         "",
		"4:8:2":                          "",
		"4,,8":                           "",
		"":                               "",
		"1:1TiB:x2,1:1TiB:x2,1:1TiB:x2":  "",
	} {
		got, err := ParseSizes(text)
		if text := sprint(got); (err != nil) != (want == "") || err == nil && text != want {
			t.Errorf("parseSizes(%q) = %s, %v; want %q", text, text, err, want)
		}
	}
}

func FuzzParseSizes(f *testing.F) {
	f.Add("4:4MiB:x4,1")
	f.Fuzz(func(t *testing.T, s string) {
		all, err := ParseSizes(s)
		if err == nil && (len(all) == 0 || len(all) > maxSizes) {
			t.Errorf("%d sizes", len(all))
		}
		for _, n := range all {
			if n < 0 {
				t.Errorf("size %d", n)
			}
		}
	})
}

func TestParseCollectives(t *testing.T) {
	every, err := ParseCollectives("all")
	if err != nil || !slices.Equal(every, tasks.Requestable()) {
		t.Errorf("all: %v, %v", every, err)
	}
	two, err := ParseCollectives("reduce,bcast")
	if err != nil || !slices.Equal(two, []tasks.Collective{tasks.Reduce, tasks.Bcast}) {
		t.Errorf("reduce,bcast: %v, %v", two, err)
	}
	for list, want := range map[string]string{"bcast,bcast": "bcast is given twice", "bcast,all": `unknown collective "all"`, "": "unknown collective"} {
		if _, err := ParseCollectives(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", list, err, want)
		}
	}
}
