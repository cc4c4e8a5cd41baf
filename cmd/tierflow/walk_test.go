package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// stay is a line of a walk: a file, a function in it, and what it does.
var stay = regexp.MustCompile(`(?m)^(?://\t|    )([a-z0-9_/]+\.go) +([A-Za-z.]+) +\S`)

// Walks name functions that are where they say, each once.
func TestWalks(t *testing.T) {
	for _, doc := range []string{"planner/README.md", "executor/doc.go"} {
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

// goFile is the name of a source file.
var goFile = regexp.MustCompile(`[a-z_]+\.go\b`)

// The list of files in executor's comment names each file of the package once: in its text, or at
// the begin of a row.
func TestFileList(t *testing.T) {
	doc := filepath.Join("..", "..", "executor", "doc.go")
	src, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(src), "// # Files\n")
	named := []string{"doc.go"}
	for line := range strings.Lines(list) {
		if row, is := strings.CutPrefix(line, "//\t"); is {
			names, _, _ := strings.Cut(row, "  ")
			line = strings.Join(strings.Fields(names), ".go ") + ".go"
		}
		named = append(named, goFile.FindAllString(line, -1)...)
	}
	var files []string
	all, _ := filepath.Glob(filepath.Join(filepath.Dir(doc), "*.go"))
	for _, path := range all {
		if name := filepath.Base(path); !strings.HasSuffix(name, "_test.go") {
			files = append(files, name)
		}
	}
	if slices.Sort(named); !slices.Equal(named, files) {
		t.Errorf("the list of files is\n%v\nthe package has\n%v", named, files)
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
