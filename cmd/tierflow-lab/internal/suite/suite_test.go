package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
)

// makeModule writes the files of a module and goes there.
func makeModule(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module example\n\ngo 1.26\n"
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

// say runs a command and returns what it prints, and its status.
func say(command *cobra.Command, words ...string) (out string, status int) {
	var b strings.Builder
	root := kit.NewRoot("lab", "test", command)
	status = kit.Execute(context.Background(), root, append([]string{command.Name()}, words...), strings.NewReader(""), &b, io.Discard)
	return b.String(), status
}

const sourceOfMany = `package many

import "fmt"

type T struct { A [3]int ` + "`json:\"1\"`" + ` }

func F(a, b int, t *T) bool {
	if a < b && true {
		a += 2
		fmt.Println(a, b, 0x10)
	}
	for range 5 {
		a++
		break
	}
	c := max(a, b)
	return c == b
}
`

// Each kind of mutation is found where it can be, and nowhere else.
func TestMutations(t *testing.T) {
	makeModule(t, map[string]string{"many.go": sourceOfMany})
	path, err := filepath.Abs("many.go")
	if err != nil {
		t.Fatal(err)
	}
	all, err := mutations("example", path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range all {
		got = append(got, m.Kind+": "+m.Old+" => "+m.New)
		if mutated := string(m.apply([]byte(sourceOfMany))); len(mutated) != len(sourceOfMany)-len(m.Old)+len(m.New) {
			t.Errorf("%v becomes\n%s", m, mutated)
		}
	}
	slices.Sort(got)
	want := []string{
		"constant: 0x10 => 17", "constant: 2 => 3", "constant: 5 => 6", "constant: true => false",
		"dropped statement: a += 2 => ", "dropped statement: a++ => ", "dropped statement: break => ", "dropped statement: fmt.Println(a, b, 0x10) => ",
		"operator: && => ||", "operator: ++ => --", "operator: += => -=", "operator: < => <=", "operator: == => !=",
		"swapped arguments: a, b => b, a", "swapped arguments: b, 0x10 => 0x10, b",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// Mutants that a test notices are killed, those that none notices are listed, and the source stays as it is.
func TestMutants(t *testing.T) {
	source := "package less\n\nfunc Less(a, b int) bool { return a < b }\n\nfunc Sum(a int) int { return a + 1 }\n"
	makeModule(t, map[string]string{
		"less.go":      source,
		"less_test.go": "package less\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif !Less(1, 2) || Sum(1) != 2 {\n\t\tt.Error(1)\n\t}\n}\n",
	})
	out, status := say(MutantsCommand(), "--count", "9", ".")
	if status != 0 || !strings.Contains(out, "3       2          0    67% example\n") || !strings.Contains(out, "example/less.go:3:37: operator: < => <=\n") || strings.Count(out, "=>") != 1 {
		t.Errorf("status %d\n%s", status, out)
	}
	if now, err := os.ReadFile("less.go"); err != nil || string(now) != source {
		t.Errorf("%v\n%s", err, now)
	}
}

// What a package's own tests let pass others may kill, whose tests are named. A mutant that doesn't compile is none.
func TestMutantsOfOthers(t *testing.T) {
	makeModule(t, map[string]string{
		"one.go":            "package example\n\nconst Some = 1\n\nvar list [3 - 2]int\n\nfunc First() int { return list[0] }\n",
		"one_test.go":       "package example\n\nimport \"testing\"\n\nfunc TestOwn(t *testing.T) {}\n",
		"user/user_test.go": "package user\n\nimport (\n\t\"testing\"\n\n\t\"example\"\n)\n\nfunc TestSome(t *testing.T) {\n\tif example.Some != 1 {\n\t\tt.Error(example.Some)\n\t}\n}\n",
	})
	m := mutating{count: 9, jobs: 2, others: []string{"./user"}, tell: io.Discard}
	all, err := m.run(t.Context(), []string{"."})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range all.Mutants {
		if m := &all.Mutants[i]; m.Killed {
			got = append(got, fmt.Sprint(m.Old, " => ", m.New, " by ", m.By, ", others ", m.Others))
		}
	}
	if d := cmp.Diff([]string{"1 => 2 by TestSome, others true"}, got); d != "" {
		t.Errorf("%s\n%+v", d, all.Mutants)
	}
}

// Tests that fail anyway would kill all mutants, and packages without mutations say nothing. The first failure ends tests that would
// take an hour.
func TestMutantsRefusals(t *testing.T) {
	const passes = "package p\n\nimport \"testing\"\n\nfunc TestP(t *testing.T) {}\n"
	for _, test := range []struct{ source, tests, want string }{
		{"package p\n\nvar X = 1\n", strings.Replace(passes, "{}", "{ t.Error(1) }", 1) + "\nfunc TestQ(*testing.T) { select {} }\n", "TestP of example fails without a mutation"},
		{"package p\n", passes, "no mutation of"},
	} {
		makeModule(t, map[string]string{"p.go": test.source, "p_test.go": test.tests})
		m := mutating{count: 9, jobs: 1, tell: io.Discard}
		if all, err := m.run(t.Context(), []string{"."}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v, %v; want %q", all, err, test.want)
		}
	}
}

// Mutations can be given: each is judged by the tests of the named packages. One whose text is not there once, or that doesn't
// compile, is an error.
func TestMutantsGiven(t *testing.T) {
	files := map[string]string{
		"under/under.go": "package under\n\nfunc Less(a, b int) bool { return a < b }\n\nfunc Same(a, b int) bool { return a == b }\n",
		"p_test.go":      "package p\n\nimport (\n\t\"testing\"\n\n\t\"example/under\"\n)\n\nfunc TestP(t *testing.T) {\n\tif !under.Less(1, 2) {\n\t\tt.Error(1)\n\t}\n}\n",
	}
	const given = `[{"what": "less is more", "file": "under/under.go", "old": "a < b", "new": "a > b"}, {"what": "nothing is the same", "file": "under/under.go", "old": "a == b", "new": "%s"}]`
	for _, test := range []struct{ list, want string }{
		{fmt.Sprintf(given, "false"), ""},
		{fmt.Sprintf(given, "c"), "nothing is the same: a == b => c doesn't compile"},
		{strings.Replace(given, "a < b", "return", 1), `"less is more": under/under.go has the old text 2 times`},
		{strings.Replace(given, "under.go", "over.go", 1), "no such file"},
		{"{}", "list.json: "},
	} {
		files["list.json"] = test.list
		makeModule(t, files)
		m := mutating{count: 300, jobs: 1, given: "list.json", tell: io.Discard}
		all, err := m.run(t.Context(), []string{"."})
		switch {
		case test.want != "":
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v; want %q", err, test.want)
			}
		case err != nil || len(all.Mutants) != 2 || !all.Mutants[0].Killed || all.Mutants[0].By != "TestP" || all.Mutants[1].Killed:
			t.Errorf("%+v, %v", all, err)
		}
	}
}

// The mistakes that are written down fit the source as it is.
func TestWrittenMutations(t *testing.T) {
	t.Chdir("../../../..")
	all, err := readMutations("testdata/mutants/engine.json")
	if err != nil || len(all) < 20 {
		t.Errorf("%d, %v", len(all), err)
	}
}

// An interrupt ends the draw; the mutants judged before it are kept.
func TestMutantsInterrupted(t *testing.T) {
	makeModule(t, map[string]string{
		"sum.go":      "package sum\n\nfunc Sum(a, b int) int { return a + b + 1 }\n",
		"sum_test.go": "package sum\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {}\n",
	})
	ctx, cancel := context.WithCancel(t.Context())
	m := mutating{count: 9, jobs: 1, tell: writer(func(p []byte) (int, error) { cancel(); return len(p), nil })}
	all, err := m.run(ctx, []string{"."})
	if err != nil || len(all.Mutants) != 1 || all.Mutants[0].Killed {
		t.Errorf("%+v, %v", all, err)
	}
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// A test that fails in one of two runs is listed with what it said; one that passes is not.
func TestFlakes(t *testing.T) {
	makeModule(t, map[string]string{"a_test.go": `package a

import (
	"os"
	"testing"
)

func TestFirst(t *testing.T) {
	if _, err := os.Stat("seen"); err != nil {
		os.WriteFile("seen", nil, 0o600)
		t.Error("for the first time")
	}
}

func TestSecond(t *testing.T) {}
`})
	out, status := say(FlakesCommand(), "--runs", "2", "--load", "1")
	if status != 1 || !strings.Contains(out, "2 tests, 2 runs beside 1 busy threads") || !strings.Contains(out, "example TestFirst\n") ||
		!strings.Contains(out, "for the first time") || strings.Contains(out, "TestSecond") {
		t.Errorf("status %d\n%s", status, out)
	}
}

// An interrupt before the first run has ended leaves nothing to tell; one after it keeps what was seen.
func TestFlakesInterrupted(t *testing.T) {
	makeModule(t, map[string]string{"a_test.go": "package a\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n"})
	words := []string{"test", "-json", "-count=1", "."}
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	all, err := runAgain(ctx, words, 5, 0, func(int, time.Duration, int) { cancel(why) })
	if err != nil || all.Runs != 1 || all.Tests != 1 || len(all.Seconds) != 1 || len(all.Flaky) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	if all, err := runAgain(ctx, words, 5, 0, nil); !errors.Is(err, why) {
		t.Errorf("%+v, %v", all, err)
	}
}

// The tests that failed most come first, and of each what its first failure has printed.
func TestFlakyOrder(t *testing.T) {
	seen := tests{}
	fails := func(pkg, name, output string) outcome {
		return outcome{Package: pkg, Test: name, failed: true, output: output}
	}
	seen.note([]outcome{fails("p", "TestA", "first"), fails("q", "TestB", "1"), {Package: "p", Test: "TestC"}, {Package: "p"}})
	if ran, failed := seen.note([]outcome{fails("q", "TestB", "2"), fails("p", "TestZ", ""), {Package: "p", Test: "TestA"}, {Package: "p"}}); ran != 3 || failed != 2 {
		t.Errorf("%d tests ran, %d failed", ran, failed)
	}
	var got []string
	for _, f := range seen.flaky() {
		got = append(got, fmt.Sprintf("%s %s %d of %d: %s", f.Package, f.Test, f.Fails, f.Runs, f.Output))
	}
	if d := cmp.Diff([]string{"q TestB 2 of 2: 1", "p TestA 1 of 2: first", "p TestZ 1 of 1: "}, got); d != "" {
		t.Error(d)
	}
}

// A package that doesn't build, and one whose time is over, fail by themselves; a failing test's package is not counted again.
func TestOutcomes(t *testing.T) {
	var got []string
	for _, o := range outcomes([]byte(`{"Action":"build-output","ImportPath":"p [p.test]","Output":"p.go:1: no\n"}
{"Action":"fail","Package":"p","Elapsed":0}
no JSON
{"Action":"output","Package":"q","Test":"TestA/sub","Output":"wrong\n"}
{"Action":"fail","Package":"q","Test":"TestA/sub"}
{"Action":"fail","Package":"q","Test":"TestA"}
{"Action":"pass","Package":"q","Test":"TestB","Elapsed":2}
{"Action":"fail","Package":"q"}
`)) {
		if o.failed {
			got = append(got, o.Package+" "+o.Test+" "+o.output)
		}
	}
	if d := cmp.Diff([]string{"p  p.go:1: no\n", "q TestA wrong\n"}, got); d != "" {
		t.Error(d)
	}
}
