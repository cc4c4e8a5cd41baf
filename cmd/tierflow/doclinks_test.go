package main

import (
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A [Name] in a comment must name what exists: go doc links it, and readers search
// for it.
func TestDocLinks(t *testing.T) {
	all := commentedPackages(t)
	for _, dir := range slices.Sorted(maps.Keys(all)) {
		for _, file := range all[dir].files {
			for _, complaint := range deadLinks(all, dir, file) {
				t.Error(complaint)
			}
		}
	}
}

// Each package says what it is about, and each exported name what it stands for.
func TestDocComments(t *testing.T) {
	all := commentedPackages(t)
	for _, dir := range slices.Sorted(maps.Keys(all)) {
		said := false
		for _, file := range all[dir].files {
			said = said || file.file.Doc != nil
			for _, name := range undocumented(file.file) {
				t.Errorf("%s: %s has no comment", file.name, name)
			}
		}
		if !said {
			t.Errorf("package %s has no comment", dir)
		}
	}
}

// undocumented are the exported names of a file that no comment is about. That of a
// group of constants or variables counts for all.
func undocumented(f *ast.File) (names []string) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			of := ""
			if d.Recv != nil {
				of = receiver(d.Recv.List[0].Type) + "."
			}
			if d.Doc == nil && d.Name.IsExported() && (of == "" || token.IsExported(of)) {
				names = append(names, of+d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if d.Doc == nil && spec.Doc == nil && spec.Name.IsExported() {
						names = append(names, spec.Name.Name)
					}
				case *ast.ValueSpec:
					if d.Doc == nil && spec.Doc == nil && spec.Comment == nil && spec.Names[0].IsExported() {
						names = append(names, spec.Names[0].Name)
					}
				}
			}
		}
	}
	return names
}

// The test finds what is dead, and lets the rest be.
func TestDocLinksFound(t *testing.T) {
	all := map[string]*commentedPackage{}
	addCommented(t, all, "a/a.go", []byte(`package a

import "`+module+`b"

// T has [T.F], [T.M] and [T.m], no [T.Gone]. See [b.B], [b.Gone], [c.C] and list[T].
type T struct {
	F int // [Gone], [T.gone] and rank[T.F][r]
}

func (T) M() {}
func (T) m() {}
`))
	addCommented(t, all, "b/b.go", []byte(`package b

// B is [B], as [*B] is, like [fmt.Stringer]:
//
//	code [Gone]
type B int
`))
	got := deadLinks(all, "a", all["a"].files[0])
	want := []string{
		"a/a.go:5: [Gone]: package b has no such name",
		"a/a.go:5: [T.Gone]: package a has no such name",
		"a/a.go:5: [c.C]: the package imports no c",
		"a/a.go:7: [Gone]: package a has no such name",
		"a/a.go:7: [T.gone]: package a has no such name",
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if got := deadLinks(all, "b", all["b"].files[0]); got != nil {
		t.Errorf("nothing is dead in b, but got %q", got)
	}
}

// commentedPackage is what a folder's files declare and say.
type commentedPackage struct {
	names   map[string]bool   // Name, Type.Method, Type.Field
	imports map[string]string // path by name, of all files
	files   []commentedFile
}

type commentedFile struct {
	name string // below the module
	file *ast.File
	set  *token.FileSet
}

// commentedPackages are the module's packages by folder, without tests.
func commentedPackages(t *testing.T) map[string]*commentedPackage {
	t.Helper()
	all := map[string]*commentedPackage{}
	walkTree(t, func(name string, read func() []byte) {
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			addCommented(t, all, name, read())
		}
	})
	return all
}

func addCommented(t *testing.T, all map[string]*commentedPackage, name string, src []byte) {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	dir := path.Dir(name)
	if all[dir] == nil {
		all[dir] = &commentedPackage{names: map[string]bool{}, imports: map[string]string{}}
	}
	all[dir].files = append(all[dir].files, commentedFile{name, f, set})
	all[dir].declare(f)
}

// declare adds the names that a file declares and imports.
func (p *commentedPackage) declare(f *ast.File) {
	for _, spec := range f.Imports {
		at, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		p.imports[path.Base(at)] = at
		if spec.Name != nil {
			p.imports[spec.Name.Name] = at
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				p.names[d.Name.Name] = true
			} else {
				p.names[receiver(d.Recv.List[0].Type)+"."+d.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						p.names[name.Name] = true
					}
				case *ast.TypeSpec:
					p.names[spec.Name.Name] = true
					p.members(spec)
				}
			}
		}
	}
}

// members adds the fields of a struct, or the methods of an interface.
func (p *commentedPackage) members(spec *ast.TypeSpec) {
	var list *ast.FieldList
	switch t := spec.Type.(type) {
	case *ast.StructType:
		list = t.Fields
	case *ast.InterfaceType:
		list = t.Methods
	default:
		return
	}
	for _, field := range list.List {
		for _, name := range field.Names {
			p.names[spec.Name.Name+"."+name.Name] = true
		}
	}
}

// receiver returns the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// deadLinks returns the complaints about the links in a file's comments.
func deadLinks(all map[string]*commentedPackage, dir string, f commentedFile) (complaints []string) {
	p := comment.Parser{
		LookupPackage: func(name string) (string, bool) {
			if at, ok := all[dir].imports[name]; ok {
				return at, true
			}
			if at, ok := comment.DefaultLookupPackage(name); ok {
				return at, true
			}
			return unknown + name, true
		},
		LookupSym: func(string, string) bool { return true },
	}
	for _, group := range f.file.Comments {
		for _, link := range docLinks(p.Parse(group.Text())) {
			if why := deadLink(all, dir, link); why != "" {
				complaints = append(complaints, fmt.Sprintf("%s:%d: %s", f.name, f.set.Position(group.Pos()).Line, why))
			}
		}
	}
	return complaints
}

// unknown in place of an import path begins what the parser takes for a package
// though none is imported under that name: another module's, or an unexported name.
const unknown = "unknown/"

// deadLink says why a link leads nowhere; "" if it doesn't.
func deadLink(all map[string]*commentedPackage, dir string, link *comment.DocLink) string {
	name := strings.TrimPrefix(link.Recv+"."+link.Name, ".")
	at := link.ImportPath
	if pkg, ok := strings.CutPrefix(at, unknown); ok {
		typ, member, dotted := strings.Cut(pkg, ".")
		switch {
		case name != "" && !token.IsExported(pkg):
			return fmt.Sprintf("[%s.%s]: the package imports no %s", pkg, name, pkg)
		case !dotted || !token.IsIdentifier(typ) || !token.IsIdentifier(member):
			return "" // an index, as in rank[r], or an unexported name
		}
		at, name = "", pkg
	}
	if at == "" {
		at = module + dir
	}
	short, ours := strings.CutPrefix(at, module)
	if !ours || name == "" || all[short] != nil && all[short].names[name] {
		return ""
	}
	return fmt.Sprintf("[%s]: package %s has no such name", name, path.Base(short))
}

// docLinks are the links in all of a comment but its code.
func docLinks(d *comment.Doc) (links []*comment.DocLink) {
	var text func(all []comment.Text)
	text = func(all []comment.Text) {
		for _, t := range all {
			switch t := t.(type) {
			case *comment.DocLink:
				links = append(links, t)
			case *comment.Link:
				text(t.Text)
			}
		}
	}
	var blocks func(all []comment.Block)
	blocks = func(all []comment.Block) {
		for _, b := range all {
			switch b := b.(type) {
			case *comment.Paragraph:
				text(b.Text)
			case *comment.Heading:
				text(b.Text)
			case *comment.List:
				for _, item := range b.Items {
					blocks(item.Content)
				}
			}
		}
	}
	blocks(d.Content)
	return links
}

// walkTree calls f for each file of the tree, with its name below the module. What
// tools leave behind is passed over.
func walkTree(t *testing.T, f func(name string, read func() []byte)) {
	t.Helper()
	root := os.DirFS(filepath.Join("..", ".."))
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := filepath.Base(name); entry.IsDir() {
			if name != "." && strings.HasPrefix(base, ".") && base != ".github" || base == "rapid" {
				return fs.SkipDir
			}
			return nil
		}
		f(name, func() []byte {
			data, err := fs.ReadFile(root, name)
			if err != nil {
				t.Fatal(err)
			}
			return data
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
