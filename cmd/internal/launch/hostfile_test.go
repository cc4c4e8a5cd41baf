package launch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseHosts(t *testing.T) {
	for _, test := range []struct {
		list string
		want []node
		err  string
	}{
		{list: "a", want: []node{{"a", 1}}},
		{list: "a:4, user@b.example:2", want: []node{{"a", 4}, {"user@b.example", 2}}},
		{list: "a:2,b,a:1", want: []node{{"a", 3}, {"b", 1}}},
		{list: "[fe80::1%eth0]:3,[::1]", want: []node{{"[fe80::1%eth0]", 3}, {"[::1]", 1}}},
		{list: "a,", err: "item 2: empty"},
		{list: "a:0", err: `slots "0" of host "a": want 1 to 65536`},
		{list: "a:x,b:-1", err: "item 2: slots"},
		{list: "a:", err: `slots ""`},
		{list: ":4", err: "host name of 0 bytes"},
		{list: "fe80::1", err: "want name or [IPv6 address]"},
		{list: "-oProxyCommand=x", err: "begins with a dash"},
		{list: "a;reboot", err: `has ';'`},
		{list: strings.Repeat("a", 256), err: "256 bytes"},
	} {
		got, err := parseHostList(test.list)
		checkHosts(t, test.list, got, err, test.want, test.err)
	}
}

func TestParseHostfile(t *testing.T) {
	for _, test := range []struct {
		text string
		want []node
		err  string
	}{
		{text: "# all\n\na:4\n b slots=2 # big\nc\n", want: []node{{"a", 4}, {"b", 2}, {"c", 1}}},
		{text: "a\nb slots=two\n", err: `f:2: slots "two" of host "b"`},
		{text: "a cores=2", err: `f:1: "cores=2" after host "a": only slots=N`},
		{text: "x\na:2 slots=2\ny z w\n", err: "f:3: \"y z w\": want host[:slots]"},
		{text: "x\na:2 slots=2\n", err: `f:2: host "a:2"`},
		{text: "# nothing\n", err: "f: no hosts"},
		{text: strings.Repeat("a", 1<<17), err: "f:1: bufio.Scanner: token too long"},
	} {
		got, err := parseHostfile(strings.NewReader(test.text), "f")
		checkHosts(t, test.text, got, err, test.want, test.err)
	}
}

func checkHosts(t *testing.T, in string, got []node, err error, want []node, wantErr string) {
	t.Helper()
	if wantErr != "" {
		if err == nil || !strings.Contains(err.Error(), wantErr) {
			t.Errorf("%.80q: error %v, want %q", in, err, wantErr)
		}
		return
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(node{})); err != nil || diff != "" {
		t.Errorf("%.80q: error %v, -want +got:\n%s", in, err, diff)
	}
}

func TestHostsSources(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(file, []byte("f:2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		opts Options
		want string
	}{
		{Options{Hosts: "a:3"}, "[{a 3}]"},
		{Options{Hostfile: file}, "[{f 2}]"},
		{Options{Hostfile: "-"}, "[{stdin 1}]"},
		{Options{HostsCommand: "echo a:2; echo b slots=3"}, "[{a 2} {b 3}]"},
		{Options{Ranks: 6}, "[{localhost 6}]"},
	} {
		got, err := test.opts.hosts(t.Context(), strings.NewReader("stdin"))
		if err != nil || fmt.Sprint(got) != test.want {
			t.Errorf("%v, %v; want %s", got, err, test.want)
		}
	}
	if _, err := (&Options{Hostfile: file + "x"}).hosts(t.Context(), nil); err == nil || !strings.Contains(err.Error(), file+"x") {
		t.Errorf("error %v does not name the file", err)
	}
	for command, want := range map[string]string{
		"true":                       `hosts by "true": no hosts`,
		"echo a:x":                   `hosts by "echo a:x":1: slots "x" of host "a"`,
		"echo no >&2; false":         "hosts by \"echo no >&2; false\": exit status 1; it says:\n  no",
		"yes '#' | head -c 17000000": "more than 16777216 bytes; allowed are 16777216",
	} {
		if got, err := (&Options{HostsCommand: command}).hosts(t.Context(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", command, got, err, want)
		}
	}
	over, stop := context.WithCancel(t.Context())
	stop()
	if _, err := (&Options{HostsCommand: "sleep 600"}).hosts(over, nil); err == nil {
		t.Error("a command goes on when nobody waits for it")
	}
}

// A host file without end is an error, wherever it comes from.
func TestEndlessHostfile(t *testing.T) {
	if _, err := (&Options{Hostfile: "-"}).hosts(t.Context(), repeated("a:4 #"+strings.Repeat(" ", 1<<10)+"\n")); err == nil || !strings.Contains(err.Error(), "read standard input: more than 16777216 bytes; allowed are 16777216") {
		t.Errorf("error %v", err)
	}
}

// repeated is a stream of the same text again and again.
type repeated string

func (r repeated) Read(p []byte) (n int, err error) {
	for n == 0 || n+len(r) <= len(p) {
		n += copy(p[n:], r)
	}
	return n, nil
}

func FuzzParseHostfile(f *testing.F) {
	f.Add("a:4\nb slots=2 # c\n[::1]:3\n")
	f.Add("user@h%x\n:\n-")
	f.Fuzz(func(t *testing.T, text string) {
		nodes, err := parseHostfile(strings.NewReader(text), "f")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Errorf("error %q names no place", err)
			}
			return
		}
		var again strings.Builder
		for _, n := range nodes {
			if n.slots <= maxSlots { // more only by adding up
				fmt.Fprintf(&again, "%s slots=%d\n", n.host, n.slots)
			} else {
				return
			}
		}
		got, err := parseHostfile(strings.NewReader(again.String()), "again")
		if err != nil || cmp.Diff(nodes, got, cmp.AllowUnexported(node{})) != "" {
			t.Errorf("%q: %v, then %v, %v", text, nodes, got, err)
		}
	})
}
