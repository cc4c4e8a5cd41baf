package tree

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

func pairsText(pairs []Pair) string {
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
	uses, err := FindUses(set, "p", files, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := pairsText(uses.Pairs()), "\tb.go (first) and c.go (field)\n"; got != want {
		t.Errorf("pairs are\n%swant\n%s", got, want)
	}
}
