package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/tierflow-lab/tree"
)

// mostPairs is how many pairs of files of one package may use each other's names.
// A package beyond that has no direction inside: its files can't be read in any order.
const mostPairs = 10

// pairCeilings are the packages that have more, with the number they have today.
// A number here may only fall. The test fails while one is larger than it needs to be.
var pairCeilings = map[string]int{}

// Two files of a package are a pair if each uses a name that the other one declares:
// of the package level, a method or a field. Tests don't count.
func TestFilePairs(t *testing.T) {
	all, err := tree.Packages(t.Context(), filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	imports := tree.ExportData(all)
	seen := map[string]bool{}
	for _, p := range all {
		short, ours := strings.CutPrefix(p.ImportPath, module)
		if !ours {
			continue
		}
		seen[short] = true
		uses, err := p.Uses(imports)
		if err != nil {
			t.Fatal(err)
		}
		pairs := uses.Pairs()
		if complaint := pairComplaint(short, pairs, pairCeilings[short]); complaint != "" {
			t.Error(complaint)
		}
	}
	for short := range pairCeilings {
		if !seen[short] {
			t.Errorf("package %s has a ceiling in cmd/tierflow/pairs_test.go, but there is no such package", short)
		}
	}
}

// pairComplaint says what is wrong with a package's pairs. Without a ceiling of its
// own, which is 0, the package has mostPairs.
func pairComplaint(pkg string, pairs []tree.Pair, ceiling int) string {
	switch n := len(pairs); {
	case ceiling == 0 && n > mostPairs:
		return fmt.Sprintf("package %s has %d pairs of files that use each other's names, at most %d may: let one of two ask the other, or split the package:\n%s",
			pkg, n, mostPairs, pairsText(pairs))
	case ceiling > 0 && n > ceiling:
		return fmt.Sprintf("package %s has %d pairs of files that use each other's names; it had %d, and that may only fall:\n%s",
			pkg, n, ceiling, pairsText(pairs))
	case ceiling > 0 && n <= mostPairs:
		return fmt.Sprintf("package %s has %d pairs of files that use each other's names: remove its ceiling in cmd/tierflow/pairs_test.go", pkg, n)
	case n < ceiling:
		return fmt.Sprintf("package %s has %d pairs of files that use each other's names: lower its ceiling of %d in cmd/tierflow/pairs_test.go to that", pkg, n, ceiling)
	}
	return ""
}

func pairsText(pairs []tree.Pair) string {
	var b strings.Builder
	for _, p := range pairs {
		fmt.Fprintf(&b, "\t%s (%s) and %s (%s)\n", p.Files[0], p.Names[0], p.Files[1], p.Names[1])
	}
	return b.String()
}

// A pair is made by a function, a method or a field, each way. A file that only uses
// another one makes none.
func TestFilePairsAreCounted(t *testing.T) {
	set := token.NewFileSet()
	var files []*ast.File
	for name, src := range map[string]string{
		"a.go": `package p; type list[T any] struct{ head T }; func top() { leaf() }`,
		"b.go": `package p; func (l *list[T]) first() T { return l.head }; func twin() { _ = other{}.field }`,
		"c.go": `package p; type other struct{ field int }; var l list[int]; var x = l.first()`,
		"d.go": `package p; func leaf() { var own other; _ = own }`,
		"e.go": `package p; func e() { top(); leaf(); twin() }`,
	} {
		f, err := parser.ParseFile(set, name, src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	uses, err := tree.FindUses(set, "p", files, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := pairsText(uses.Pairs()), "\tb.go (first) and c.go (field)\n"; got != want {
		t.Errorf("pairs are\n%swant\n%s", got, want)
	}
	for _, test := range []struct {
		pairs, ceiling int
		want           string
	}{
		{10, 0, ""},
		{11, 0, "at most 10 may"},
		{14, 14, ""},
		{15, 14, "may only fall"},
		{13, 14, "lower its ceiling of 14"},
		{10, 14, "remove its ceiling"},
	} {
		got := pairComplaint("p", make([]tree.Pair, test.pairs), test.ceiling)
		if !strings.Contains(got, test.want) || test.want == "" && got != "" {
			t.Errorf("%d pairs, ceiling %d: %q, want %q", test.pairs, test.ceiling, got, test.want)
		}
	}
}
