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

// Two files of a package are a pair if each uses a name that the other one declares:
// of the package level, a method or a field. Tests don't count. Arrows back up are fewest if
// a package's files have an order in which each stands before those that it uses.
func TestFilePairs(t *testing.T) {
	all, err := tree.Packages(t.Context(), filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	imports := tree.ExportData(all)
	for _, p := range all {
		short, ours := strings.CutPrefix(p.ImportPath, module)
		if !ours {
			continue
		}
		uses, err := p.Uses(imports)
		if err != nil {
			t.Fatal(err)
		}
		pairs, backUp := uses.Pairs(), uses.BackUp()
		if len(pairs) > mostPairs {
			t.Errorf("package %s has %d pairs of files that use each other's names, at most %d may be: let one of two files ask the other, or split the package\n%s",
				short, len(pairs), mostPairs, pairsText(pairs))
		}
		if backUp > mostBackUp {
			t.Errorf("package %s has %d arrows back up, at most %d may be", short, backUp, mostBackUp)
		}
	}
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
}
