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

// Bounds of a package. One beyond them has no direction inside: its files can't be read in
// any order.
const (
	mostPairs  = 5  // pairs of files that use each other's names
	mostBackUp = 10 // arrows from a file to one before it, in the best order of the files
)

// A ceiling is a package's own bound, where it has more than others may. A number here may
// only fall. The test fails while one is larger than it needs to be.
var (
	pairCeilings = map[string]int{
		"costs/price": 6,
		"costs/sim":   10,
	}
	backUpCeilings = map[string]int{
		"costs/sim": 11,
	}
)

// Two files of a package are a pair if each uses a name that the other one declares:
// of the package level, a method or a field. Tests don't count. Arrows back up are fewest if
// a package's files have an order in which each stands before those that it uses.
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
		pairs, backUp := uses.Pairs(), uses.BackUp()
		if complaint := complaint(len(pairs), mostPairs, pairCeilings[short]); complaint != "" {
			t.Errorf("package %s has %d pairs of files that use each other's names: %s\n%s", short, len(pairs), complaint, pairsText(pairs))
		}
		if complaint := complaint(backUp, mostBackUp, backUpCeilings[short]); complaint != "" {
			t.Errorf("package %s has %d arrows back up: %s", short, backUp, complaint)
		}
	}
	for _, ceilings := range []map[string]int{pairCeilings, backUpCeilings} {
		for short := range ceilings {
			if !seen[short] {
				t.Errorf("package %s has a ceiling in cmd/tierflow/pairs_test.go, but there is no such package", short)
			}
		}
	}
}

// complaint says what is wrong with a package's number. Without a ceiling of its own, which
// is 0, it has the bound of all. Empty: nothing is.
func complaint(n, most, ceiling int) string {
	switch {
	case ceiling == 0 && n > most:
		return fmt.Sprintf("at most %d may be: let one of two files ask the other, or split the package", most)
	case ceiling > 0 && n > ceiling:
		return fmt.Sprintf("there were %d, and that may only fall", ceiling)
	case ceiling > 0 && n <= most:
		return "remove its ceiling in cmd/tierflow/pairs_test.go"
	case n < ceiling:
		return fmt.Sprintf("lower its ceiling of %d in cmd/tierflow/pairs_test.go to that", ceiling)
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
		n, ceiling int
		want       string
	}{
		{5, 0, ""},
		{6, 0, "at most 5 may be"},
		{14, 14, ""},
		{15, 14, "may only fall"},
		{13, 14, "lower its ceiling of 14"},
		{5, 14, "remove its ceiling"},
	} {
		got := complaint(test.n, 5, test.ceiling)
		if !strings.Contains(got, test.want) || test.want == "" && got != "" {
			t.Errorf("%d of 5, ceiling %d: %q, want %q", test.n, test.ceiling, got, test.want)
		}
	}
}
