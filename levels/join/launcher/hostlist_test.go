package launcher

import (
	"slices"
	"strings"
	"testing"
)

func TestParseHosts(t *testing.T) {
	for _, c := range []struct{ list, want string }{
		{"a", "a"},
		{"a,b.x-1_2", "a b.x-1_2"},
		{"node[01-03,7]", "node01 node02 node03 node7"},
		{"n[9-11]", "n9 n10 n11"},
		{"n[009-011]", "n009 n010 n011"},
		{"a,b[0-1],c[1-2]x[0-1]y,d", "a b0 b1 c1x0y c1x1y c2x0y c2x1y d"},
		{"r[1][2]", "r12"},
		{"[1-2]", "1 2"},
	} {
		got, err := parseHosts(c.list)
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, %v, want %s", c.list, got, err, c.want)
		}
	}
	if got, err := parseHosts("n[0-65535]"); len(got) != 65536 {
		t.Errorf("65536 hosts: %d, %v", len(got), err)
	}
	for list, want := range map[string]string{
		"": "want names", ",": "want names", "a,": "want names", "a,,b": "want names", "a b": "want names",
		"n[": "want names", "n[1": "want names", "n]": "want names", "n[]": "want names", "n[1-]": "want names",
		"n[2-1]": "want names", "n[1-2-3]": "want names", "n[a]": "want names", "n[-1]": "want names", "n[1,]": "want names",
		"n[[1]]": "want names", "n[0-65536]": "more than 65536 hosts", "n[0-255]x[0-256]": "more than 65536 hosts",
		"n[0-999999999]": "more than 65536 hosts", "n[0-9999999999]": "want names",
		"n[0-65535],m": "more than 65536 hosts", "n[0-65535],m[1-2]": "more than 65536 hosts",
	} {
		if got, err := parseHosts(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %d hosts, %v, want %s", list, len(got), err, want)
		}
	}
}

func TestParseCounts(t *testing.T) {
	got, err := ParseCounts("4(x2),3,1(x1)")
	if err != nil || !slices.Equal(got, []int{4, 4, 3, 1}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "a", "0", "4(x0)", "4(x", "4(x2", "4(2)", "4,", "-1", "1(x70000)", "1(x65536),1", "4(x2)3"} {
		if got, err := ParseCounts(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func FuzzHostlist(f *testing.F) {
	for _, list := range []string{"a,b[01-03,7],c[1-2]x[0-1]", "n[0-65535]", "n[", "4(x2),3", "[[]],"} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		hosts, err := parseHosts(list)
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("an error of several lines: %v", err)
		}
		if err == nil {
			if len(hosts) == 0 || len(hosts) > maxHosts {
				t.Errorf("%q: %d hosts", list, len(hosts))
			}
			for _, h := range hosts {
				if h == "" || strings.ContainsAny(h, "[], \n") {
					t.Errorf("%q: host %q", list, h)
				}
			}
		}
		counts, err := ParseCounts(list)
		if err == nil && (len(counts) == 0 || slices.Min(counts) < 1) {
			t.Errorf("%q: counts %v", list, counts)
		}
	})
}
