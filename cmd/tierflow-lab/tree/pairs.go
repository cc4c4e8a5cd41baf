package tree

import (
	"context"
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
)

// Package is a package as the go command lists it.
type Package struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	CgoFiles   []string // of the package too: those importing C
	Export     string   // file of export data
}

// Packages lists the packages of the module in dir and all their imports, as built for
// Linux. It needs no network: missing export data is compiled.
func Packages(ctx context.Context, dir string) ([]Package, error) {
	list := exec.CommandContext(ctx, "go", "list", "-deps", "-export", "-json=ImportPath,Dir,GoFiles,CgoFiles,Export", "./...")
	list.Dir = dir
	list.Env = append(os.Environ(), "GOOS=linux")
	var complaints strings.Builder
	list.Stderr = &complaints
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, &complaints)
	}
	var all []Package
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p Package
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

// ExportData returns an importer of packages by their export data.
func ExportData(all []Package) types.Importer {
	files := map[string]string{}
	for _, p := range all {
		files[p.ImportPath] = p.Export
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(files[path])
	})
}

// parse returns the package's files but tests.
func (p Package) parse(set *token.FileSet) (files []*ast.File, err error) {
	for _, name := range slices.Concat(p.GoFiles, p.CgoFiles) {
		f, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// Uses are the arrows between the files of a package: from a file to another one
// with a name it uses. The value is the first of these names in the alphabet; names are of the
// package level, methods or fields.
type Uses map[[2]string]string

// Uses type checks the package.
func (p Package) Uses(imports types.Importer) (Uses, error) {
	set := token.NewFileSet()
	files, err := p.parse(set)
	if err != nil {
		return nil, err
	}
	return FindUses(set, p.ImportPath, files, imports)
}

// FindUses type checks files, one package.
func FindUses(set *token.FileSet, path string, files []*ast.File, imports types.Importer) (Uses, error) {
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: imports, FakeImportC: true}
	pkg, err := config.Check(path, set, files, &info)
	if err != nil {
		return nil, err
	}
	file := func(at token.Pos) string { return filepath.Base(set.File(at).Name()) }
	uses := Uses{}
	for id, object := range info.Uses {
		if object.Pkg() != pkg || !object.Pos().IsValid() {
			continue
		}
		arrow := [2]string{file(id.Pos()), file(object.Pos())}
		if old, known := uses[arrow]; arrow[0] != arrow[1] && (!known || id.Name < old) {
			uses[arrow] = id.Name
		}
	}
	return uses, nil
}

// Pair is two files that use each other, in the order of their names, and for each one of the
// names used by the other.
type Pair struct {
	Files [2]string
	Names [2]string // Names[i] is declared by Files[i]
}

// Pairs returns the files that use each other, sorted.
func (u Uses) Pairs() (pairs []Pair) {
	for arrow, second := range u {
		if first, ok := u[[2]string{arrow[1], arrow[0]}]; ok && arrow[0] < arrow[1] {
			pairs = append(pairs, Pair{arrow, [2]string{first, second}})
		}
	}
	slices.SortFunc(pairs, func(a, b Pair) int { return slices.Compare(a.Files[:], b.Files[:]) })
	return pairs
}

// BackUp returns how many arrows go from a later file to an earlier one, in the best order
// of the files that is found: files stand before those they use. The order is made by moving
// single files as long as this helps, so it may not be the best of all.
func (u Uses) BackUp() int {
	var files []string
	for arrow := range u {
		files = append(files, arrow[:]...)
	}
	slices.Sort(files)
	files = slices.Compact(files)
	slices.SortStableFunc(files, func(a, b string) int { return u.excess(b) - u.excess(a) })
	least := u.against(files)
	for better := true; better; {
		better = false
		for _, moved := range slices.Clone(files) {
			from := slices.Index(files, moved)
			rest := slices.Delete(slices.Clone(files), from, from+1)
			for to := range files {
				tried := slices.Insert(slices.Clone(rest), to, moved)
				if n := u.against(tried); n < least {
					files, least, better = tried, n, true
				}
			}
		}
	}
	return least
}

// excess returns how many more files a file uses than use it.
func (u Uses) excess(file string) (n int) {
	for arrow := range u {
		if arrow[0] == file {
			n++
		}
		if arrow[1] == file {
			n--
		}
	}
	return n
}

// against counts the arrows back up in an order.
func (u Uses) against(order []string) (n int) {
	at := map[string]int{}
	for i, file := range order {
		at[file] = i
	}
	for arrow := range u {
		if at[arrow[0]] > at[arrow[1]] {
			n++
		}
	}
	return n
}
