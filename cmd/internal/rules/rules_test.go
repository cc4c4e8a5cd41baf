package rules

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/tasks"
)

// tierflow is the command with what is in this package.
var tierflow = kittest.Of("tierflow", Command)

// file writes a text where a command can read it.
func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "my.rules")
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		text, out, errors string
	}{
		{"bcast: if bytes <= 4KiB then shape=flat,ib=adapt/binomial else default", "2 plans, 0 complaints\n", ""},
		{"bcast: w=2\nbcast: w=3", ":2:8: nothing comes here", "1 complaint"},
		{"bcast: shape=rsag", ":1:8: no rank can compile this plan: bcast 0 f64 root 0 on ", "1 complaint"},
		{"bcast: if ranks > 100000 then shape=rsag", ":1:31: no rank can compile this plan: bcast 131072 f64 root 0", "1 complaint"},
		{"allreduce: shape=lanes,i=nbc/rabenseifner", ":1:12: note: this plan doesn't fit everywhere, and others decide where it doesn't: ", ""},
		{"bcast: i=nobody", "", `my.rules:1:8: i=nobody: unknown submodule "nobody"`},
		{"task all: by=sm\ntask bcast: by=solo", ":2:13: nothing comes here", "1 complaint"},
		{tierflow.Succeeds(t, "rules", "show"), "95 plans, 0 complaints\n", ""},
	} {
		name := file(t, test.text)
		s := tierflow.Run(t, "rules", "check", name)
		if !strings.Contains(s.Out, test.out) || !strings.Contains(s.Errors, test.errors) || (s.Status == 0) != (test.errors == "") {
			t.Errorf("%s: status %d\n%s%s\nwant %q and %q", test.text, s.Status, s.Out, s.Errors, test.out, test.errors)
		}
	}
}

func TestFormatAndExplain(t *testing.T) {
	name := file(t, "bcast :if bytes<=4KiB then shape=flat , ib=adapt/binomial else default#end")
	const want = "bcast: if bytes <= 4KiB then shape=flat,ib=adapt/binomial else default #end\n"
	if got := tierflow.Succeeds(t, "rules", "fmt", name); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	tierflow.Succeeds(t, "rules", "fmt", "-w", name)
	if got, err := os.ReadFile(name); string(got) != want || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	got := tierflow.Succeeds(t, "rules", "explain", name, "bcast", "--bytes", "8KiB")
	if line := ":1 leaves it open: default\n  rules: line 1: bytes <= 4KiB does not hold: bytes 8KiB\n"; !strings.Contains(got, line) {
		t.Errorf("no %q in\n%s", line, got)
	}
}

func TestConvert(t *testing.T) {
	name := file(t, "1\n7\n1\n2\n2\n0 6 0 0\n65536 3 0 8192 # pipeline\n")
	const want = "bcast: if bytes < 65536 then shape=flat,fs=all,w=4,ib=adapt/binomial,sb=adapt/binomial"
	got := strings.Join(strings.Fields(tierflow.Succeeds(t, "rules", "convert", "--from", "ompi", name)), " ")
	if !strings.HasPrefix(got, want) {
		t.Errorf("%s\nwant %s", got, want)
	}
	got = tierflow.Succeeds(t, "rules", "convert", "--from", "ompi", "--to", "ompi", name)
	if !strings.Contains(got, "\n65536 3 0 8192  # pipeline\n") {
		t.Error(got)
	}
	s := tierflow.Run(t, "rules", "convert", "--to", "ompi", file(t, "bcast: if bytes < 4KiB then shape=flat,ib=adapt/binomial else shape=sag"))
	if s.Status != 0 || !strings.Contains(s.Errors, "my.rules: line 1: bcast: ompi has no algorithm for shape=sag: left to its own decision\n") {
		t.Errorf("status %d, %s", s.Status, s.Errors)
	}
	for _, to := range []string{"ompi", "ompi-json", "han"} { // no node has one rank
		out := filepath.Join(t.TempDir(), "none")
		s := tierflow.Run(t, "rules", "convert", "--to", to, "-o", out, file(t, "bcast: if pernode = 2 then shape=flat,ib=adapt/binomial else default"))
		if _, err := os.Stat(out); s.Status != 1 || !strings.Contains(s.Errors, "nothing is left of 1 decisions as "+to) || err == nil {
			t.Errorf("%s of rules for nodes of 2 ranks: %+v, %v", to, s, err)
		}
	}
	for _, args := range [][]string{{"--from", "nccl"}, {"--for", "3"}, {"--ranks-per-node", "0"}} {
		if s := tierflow.Run(t, append([]string{"rules", "convert", name}, args...)...); s.Status != 2 {
			t.Errorf("%q: status %d, %s", args, s.Status, s.Errors)
		}
	}
}

func TestFromTable(t *testing.T) {
	name := filepath.Join(t.TempDir(), "my.rules")
	tierflow.Succeeds(t, "rules", "from-table", filepath.Join("..", "..", "..", "testdata", "tables", "recorded.json"), "-o", name)
	text, err := os.ReadFile(name)
	if err != nil || !strings.HasPrefix(string(text), "# bcast: ") || !strings.Contains(string(text), " sizes held out: ") {
		t.Errorf("%v, %s", err, text)
	}
	if got := tierflow.Succeeds(t, "rules", "check", name); !strings.Contains(got, " 0 complaints\n") {
		t.Error(got)
	}
}

// Of a table of MPICH's own algorithms come rules, and of these files for MPICH, Open MPI and tierflow.
// Read back they decide as the rules do, at the sizes of the table.
func TestLearnedTableConverts(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	tierflow.Succeeds(t, "rules", "from-table", "../../../testdata/learned/mpich-4x1.json", "-o", at("made.rules"))
	made := parsed(t, at("made.rules"))
	for _, to := range []string{"tierflow", "mpich", "ompi-json"} {
		for _, args := range [][]string{{"--to", to, at("made.rules"), "-o", at(to)}, {"--from", to, at(to), "-o", at("back.rules")}} {
			if s := tierflow.Run(t, append([]string{"rules", "convert"}, args...)...); s.Status != 0 { // notes are no failure
				t.Fatal(s.Errors)
			}
		}
		back := parsed(t, at("back.rules"))
		for _, coll := range []tasks.Collective{tasks.Bcast, tasks.Reduce, tasks.Allreduce, tasks.Allgather} {
			for _, n := range []int64{64, 512, 1536, 4 << 10, 16 << 10, 40 << 10, 64 << 10, 256 << 10} {
				if got, want := decided(back, coll, n), decided(made, coll, n); got != want || want == "" {
					t.Errorf("%s: %v of %d bytes by %s, want %s", to, coll, n, got, want)
				}
			}
		}
	}
}

func parsed(t *testing.T, name string) *rules.Base {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b, err := rules.Parse(name, string(text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// decided returns the algorithms that rules choose on four nodes of a rank.
func decided(b *rules.Base, coll tasks.Collective, n int64) string {
	p := &rules.Params{Coll: coll}
	for q, v := range map[rules.Param]int64{
		rules.Ranks: 4, rules.Nodes: 4, rules.PerNode: 1, rules.Balanced: 1, rules.Ordered: 1, rules.Processes: 1, rules.Bytes: n, rules.Total: n,
		rules.Longest: n, rules.Count: n / 4, rules.Element: 4, rules.Commutative: 1, rules.BuiltIn: 1, rules.Regular: 1, rules.Blocks: 1,
	} {
		p.Set(q, v)
	}
	if coll == tasks.Allgather {
		p.Set(rules.Blocks, 4)
		p.Set(rules.Total, 4*n)
	}
	l, _ := b.Decide(p)
	if l == nil || l.Default {
		return ""
	}
	plan := b.Plan(l, p)
	text := ""
	for _, key := range plan.Keys() {
		if key[0] == 'i' {
			c, _ := plan.Choice(key)
			text += key + "=" + c.Algorithm + " "
		}
	}
	return text
}
