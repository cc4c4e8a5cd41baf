package tree

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Measures are the numbers of one package, or sums over several. Files of all systems count.
type Measures struct {
	Package   string   `json:"package"`        // below the module
	Lines     int      `json:"lines"`          // of files but tests
	TestLines int      `json:"test_lines"`     // of test files
	Count     int      `json:"names"`          // how many
	Names     []string `json:"-"`              // what other modules may use
	Deps      []string `json:"deps,omitempty"` // packages of the module below this one, without itself
	Command   bool     `json:"command"`        // package main
	Support   bool     `json:"support"`        // of tests: only they import it
	Dir       string   `json:"-"`              // its folder
}

// Add adds the numbers of another package.
func (m *Measures) Add(n Measures) {
	m.Lines, m.TestLines, m.Count = m.Lines+n.Lines, m.TestLines+n.TestLines, m.Count+n.Count
}

// Measure measures the packages of the module in dir, and of those of the other patterns that are below it, in the
// order of their paths.
func Measure(ctx context.Context, dir, module string, others ...string) (all []Measures, err error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-json=ImportPath,Name,Dir,Deps", "./..."}, others...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOWORK=") // what a package stands on depends on the system; the tree has a workspace of its own
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
		}
		return nil, fmt.Errorf("go list in %s: %w", dir, err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Name, Dir string
			Deps                  []string
		}
		switch err := d.Decode(&p); {
		case err == io.EOF:
			slices.SortFunc(all, func(a, b Measures) int { return cmp.Compare(a.Package, b.Package) })
			return all, nil
		case err != nil:
			return nil, err
		}
		short, ours := strings.CutPrefix(p.ImportPath, module+"/")
		if !ours {
			continue
		}
		m := Measures{Package: short, Command: p.Name == "main", Support: strings.HasSuffix(p.Name, "test"), Dir: p.Dir}
		for _, d := range p.Deps {
			if d, ours := strings.CutPrefix(d, module+"/"); ours {
				m.Deps = append(m.Deps, d)
			}
		}
		if err := m.read(); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
}

// IsInternal reports whether only packages of the module may import this one.
func (m *Measures) IsInternal() bool {
	return slices.Contains(strings.Split(m.Package, "/"), "internal")
}

// read counts the lines of a package's files, and finds its names.
func (m *Measures) read() error {
	files, err := filepath.Glob(filepath.Join(m.Dir, "*.go"))
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		n := bytes.Count(src, []byte("\n"))
		if strings.HasSuffix(file, "_test.go") {
			m.TestLines += n
			continue
		}
		m.Lines += n
		if m.Command || m.IsInternal() || m.Support {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, name := range exported(f) {
			names[name] = true
		}
	}
	for name := range names {
		m.Names = append(m.Names, name)
	}
	slices.Sort(m.Names)
	m.Count = len(m.Names)
	return nil
}

// exported returns the exported names of a file, each after its kind: "const", "func", "type", "var", or
// "method" with its type.
func exported(f *ast.File) (names []string) {
	add := func(kind string, ids ...*ast.Ident) {
		for _, id := range ids {
			if id.IsExported() {
				names = append(names, kind+" "+id.Name)
			}
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add("func", d.Name)
			} else if of := receiver(d.Recv.List[0].Type); ast.IsExported(of) && d.Name.IsExported() {
				names = append(names, "method "+of+"."+d.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					add("type", s.Name)
				case *ast.ValueSpec:
					add(d.Tok.String(), s.Names...)
				}
			}
		}
	}
	return names
}

// receiver is the name of a receiver's type.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return "?"
}
