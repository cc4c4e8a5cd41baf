package kit

import (
	"fmt"
	"testing"

	"github.com/tierflow/tierflow/tasks/tasktest"
)

func sprint(v any) string { return fmt.Sprint(v) }

func TestParseLink(t *testing.T) {
	nodes := tasktest.Topology(t, "2x2")
	for text, want := range map[string]string{
		"":                  "1.25e+08 50µs",
		"none":              "none",
		"i=1gbit,50us":      "1.25e+08 50µs",
		"i=2ms,100mbit":     "1.25e+07 2ms",
		"i=8kbit":           "1000 0s",
		"i=1.5tbit":         "1.875e+11 0s",
		"i=80bit":           "10 0s",
		"i=1us":             "0 1µs",
		"s=1gbit":           "",
		"i=":                "",
		"i=0gbit":           "",
		"i=infgbit":         "",
		"i=1gb":             "",
		"i=-1us":            "",
		"i=2h":              "",
		"i=1gbit,1us,1us":   "",
		"i=1gbit,1gbit":     "",
		"1gbit":             "",
		"i=1gbit,50us/more": "",
	} {
		got := "none"
		l, err := parseLink(text, nodes)
		switch {
		case err != nil:
			got = ""
		case l != nil:
			got = fmt.Sprint(l.rate, " ", l.delay)
		}
		if got != want {
			t.Errorf("parseLink(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
}

func FuzzParseLink(f *testing.F) {
	f.Add("i=1gbit,50us")
	nodes := tasktest.Topology(f, "2x2")
	f.Fuzz(func(t *testing.T, s string) {
		if l, err := parseLink(s, nodes); err == nil && l != nil && !(l.rate >= 0 && l.delay >= 0) {
			t.Errorf("parseLink(%q) = %+v", s, l)
		}
	})
}
