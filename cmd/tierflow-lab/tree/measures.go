package tree

import (
	"bytes"
	"cmp"
	"context"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// Measures are the numbers of one package, or sums over several.
type Measures struct {
	Package   string `json:"package"`    // below the module
	Lines     int    `json:"lines"`      // of files but tests
	TestLines int    `json:"test_lines"` // of test files
	Pairs     int    `json:"pairs"`      // of files that use each other
	Uses      int    `json:"uses"`       // arrows from file to file
	BackUp    int    `json:"back_up"`    // of these, those back up
	Functions int    `json:"functions"`  // and methods, but tests'
	OneWord   int    `json:"one_word"`   // of these, those named by one word
	Sentences int    `json:"sentences"`  // of comments, tests' apart
	Relatives int    `json:"relatives"`  // pronouns in them
}

// Add adds the numbers of another package.
func (m *Measures) Add(n Measures) {
	m.Lines, m.TestLines = m.Lines+n.Lines, m.TestLines+n.TestLines
	m.Pairs, m.Uses, m.BackUp = m.Pairs+n.Pairs, m.Uses+n.Uses, m.BackUp+n.BackUp
	m.Functions, m.OneWord = m.Functions+n.Functions, m.OneWord+n.OneWord
	m.Sentences, m.Relatives = m.Sentences+n.Sentences, m.Relatives+n.Relatives
}

// Measure measures the packages of the module in dir, in the order of their paths.
func Measure(ctx context.Context, dir, module string) (all []Measures, err error) {
	packages, err := Packages(ctx, dir)
	if err != nil {
		return nil, err
	}
	imports := ExportData(packages)
	for _, p := range packages {
		short, ours := strings.CutPrefix(p.ImportPath, module+"/")
		if !ours {
			continue
		}
		m, err := p.measure(imports)
		if err != nil {
			return nil, err
		}
		m.Package = short
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b Measures) int { return cmp.Compare(a.Package, b.Package) })
	return all, nil
}

func (p Package) measure(imports types.Importer) (m Measures, err error) {
	// All systems' files count: lines are counted by folder.
	names, err := filepath.Glob(filepath.Join(p.Dir, "*.go"))
	if err != nil {
		return m, err
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return m, err
		}
		if n := bytes.Count(data, []byte("\n")); strings.HasSuffix(name, "_test.go") {
			m.TestLines += n
		} else {
			m.Lines += n
		}
	}
	files, err := p.parse(token.NewFileSet())
	if err != nil {
		return m, err
	}
	for _, f := range files {
		m.addFile(f)
	}
	uses, err := p.Uses(imports)
	if err != nil {
		return m, err
	}
	m.Pairs, m.Uses, m.BackUp = len(uses.Pairs()), len(uses), uses.BackUp()
	return m, nil
}

// addFile counts a file's functions and sentences.
func (m *Measures) addFile(f *ast.File) {
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			m.Functions++
			if isOneWord(fn.Name.Name) {
				m.OneWord++
			}
		}
	}
	for _, p := range commentParagraphs(f) {
		for _, s := range Sentences(p) {
			m.Sentences++
			m.Relatives += Relatives(s)
		}
	}
}

// isOneWord reports whether no capital letter follows a small letter or a digit in a name.
func isOneWord(name string) bool {
	small := false
	for _, r := range name {
		if small && unicode.IsUpper(r) {
			return false
		}
		small = small || unicode.IsLower(r) || unicode.IsDigit(r)
	}
	return true
}
