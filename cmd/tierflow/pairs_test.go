package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
	all := compiledPackages(t)
	imports := exportData(all)
	seen := map[string]bool{}
	for _, p := range all {
		short, ours := strings.CutPrefix(p.ImportPath, module)
		if !ours {
			continue
		}
		seen[short] = true
		pairs, err := p.filePairs(imports)
		if err != nil {
			t.Fatal(err)
		}
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
func pairComplaint(pkg string, pairs []filePair, ceiling int) string {
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

// compiledPackage is what the go command says of a package.
type compiledPackage struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Export     string // file of export data
}

// compiledPackages lists the module's packages and all that they import, as built
// for Linux. It needs no network: what is missing is compiled.
func compiledPackages(t *testing.T) []compiledPackage {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-export", "-json=ImportPath,Dir,GoFiles,Export", "./...")
	list.Dir = filepath.Join("..", "..")
	list.Env = append(os.Environ(), "GOOS=linux")
	var complaints strings.Builder
	list.Stderr = &complaints
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &complaints)
	}
	var all []compiledPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p compiledPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// exportData returns an importer that reads the export data of all.
func exportData(all []compiledPackage) types.Importer {
	files := map[string]string{}
	for _, p := range all {
		files[p.ImportPath] = p.Export
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(files[path])
	})
}

// filePairs type checks the package and returns its mutual pairs.
func (p compiledPackage) filePairs(imports types.Importer) ([]filePair, error) {
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return mutualPairs(set, p.ImportPath, files, imports)
}

// filePair is two files, in the order of their names, and one name that each uses
// of the other.
type filePair struct {
	files [2]string
	names [2]string // names[i] is declared by files[i]
}

// mutualPairs type checks files, one package, and returns the pairs that use each
// other, sorted.
func mutualPairs(set *token.FileSet, path string, files []*ast.File, imports types.Importer) ([]filePair, error) {
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: imports}
	pkg, err := config.Check(path, set, files, &info)
	if err != nil {
		return nil, err
	}
	file := func(at token.Pos) string { return filepath.Base(set.File(at).Name()) }
	uses := map[[2]string]string{} // a name that the first file uses of the second: the least
	for id, object := range info.Uses {
		if object.Pkg() != pkg || !object.Pos().IsValid() {
			continue
		}
		arrow := [2]string{file(id.Pos()), file(object.Pos())}
		if old, ok := uses[arrow]; !ok || id.Name < old {
			uses[arrow] = id.Name
		}
	}
	var pairs []filePair
	for arrow, second := range uses {
		if first, ok := uses[[2]string{arrow[1], arrow[0]}]; ok && arrow[0] < arrow[1] {
			pairs = append(pairs, filePair{arrow, [2]string{first, second}})
		}
	}
	slices.SortFunc(pairs, func(a, b filePair) int { return slices.Compare(a.files[:], b.files[:]) })
	return pairs, nil
}

func pairsText(pairs []filePair) string {
	var b strings.Builder
	for _, p := range pairs {
		fmt.Fprintf(&b, "\t%s (%s) and %s (%s)\n", p.files[0], p.names[0], p.files[1], p.names[1])
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
	pairs, err := mutualPairs(set, "p", files, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := pairsText(pairs), "\tb.go (first) and c.go (field)\n"; got != want {
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
		got := pairComplaint("p", make([]filePair, test.pairs), test.ceiling)
		if !strings.Contains(got, test.want) || test.want == "" && got != "" {
			t.Errorf("%d pairs, ceiling %d: %q, want %q", test.pairs, test.ceiling, got, test.want)
		}
	}
}
