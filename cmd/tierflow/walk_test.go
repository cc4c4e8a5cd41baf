package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// stay is a line of a walk in a package comment: a file, a function in it, and what it does.
var stay = regexp.MustCompile(`(?m)^//\t([a-z0-9_/]+\.go) +([A-Za-z.]+) +\S`)

// The walks of package comments name functions that are where they say, each once.
func TestWalks(t *testing.T) {
	for _, doc := range []string{"planner/doc.go", "executor/doc.go"} {
		src, err := os.ReadFile(filepath.Join("..", "..", doc))
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, m := range stay.FindAllSubmatch(src, -1) {
			file, name := string(m[1]), string(m[2])
			if key := file + " " + name; seen[key] {
				t.Errorf("%s: %s twice", doc, key)
			} else {
				seen[key] = true
			}
			if !declares(t, filepath.Join("..", "..", file), name) {
				t.Errorf("%s: no %s in %s", doc, name, file)
			}
		}
		if len(seen) < 10 {
			t.Errorf("%s: a walk of %d stays", doc, len(seen))
		}
	}
}

// declares reports whether a file declares a function, or a method as Type.Name.
func declares(t *testing.T, file, name string) bool {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return false
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		full := fn.Name.Name
		if fn.Recv != nil {
			of := fn.Recv.List[0].Type
			if p, ok := of.(*ast.StarExpr); ok {
				of = p.X
			}
			if g, ok := of.(*ast.IndexExpr); ok {
				of = g.X
			}
			if id, ok := of.(*ast.Ident); ok {
				full = id.Name + "." + full
			}
		}
		if full == name {
			return true
		}
	}
	return false
}
