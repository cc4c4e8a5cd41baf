package tree

import (
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

// Packages in which each rank chooses plans for itself.
var deciding = []string{
	"costs/machine", "costs/price", "costs/sim", "planner/builtin", "planner/choose", "planner/fuse", "planner/plans", "planner/priced", "planner/rules", "planner/table",
}

// All ranks come to the same plan, also on different processors. Some of these have an instruction for a*b+c that rounds once:
// a product in a sum is written float64(a*b)+c, which forbids it. Some have functions of package math of their own. A product
// that comes into a sum by a variable or a function isn't found here.
func TestDecisionsArePortable(t *testing.T) {
	const module = "github.com/tierflow/tierflow/"
	args := []string{"list", "-export", "-deps", "-f", `{{.ImportPath}} {{.Export}} {{.Dir}} {{join .GoFiles ","}}`}
	for _, name := range deciding {
		args = append(args, module+name)
	}
	list := exec.CommandContext(t.Context(), "go", args...)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		all[words[0]] = words[1:]
	}
	files := token.NewFileSet()
	imports := importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(all[path][0]) })
	for _, name := range deciding {
		var sources []*ast.File
		of := all[module+name]
		for file := range strings.SplitSeq(of[2], ",") {
			source, err := parser.ParseFile(files, filepath.Join(of[1], file), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, source)
		}
		info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
		if _, err := (&types.Config{Importer: imports}).Check(name, files, sources, info); err != nil {
			t.Fatal(err)
		}
		for _, source := range sources {
			ast.Inspect(source, func(n ast.Node) bool {
				if why := mayDiffer(info, n); why != "" {
					at := files.Position(n.Pos())
					t.Errorf("%s/%s:%d: %s", name, filepath.Base(at.Filename), at.Line, why)
				}
				return true
			})
		}
	}
}

// mayDiffer says why a node may have another value on another processor; empty: it doesn't.
func mayDiffer(info *types.Info, n ast.Node) string {
	var parts []ast.Expr
	switch n := n.(type) {
	case *ast.Ident:
		exact := []string{"Abs", "Ceil", "Floor", "Frexp", "Inf", "IsInf", "IsNaN", "Ldexp", "Round", "Sqrt", "Float64bits", "Float64frombits"}
		if f, is := info.Uses[n].(*types.Func); is && f.Pkg() != nil && f.Pkg().Path() == "math" && !slices.Contains(exact, f.Name()) {
			return "math." + f.Name() + " is not the same on all processors"
		}
	case *ast.BinaryExpr:
		if n.Op == token.ADD || n.Op == token.SUB {
			parts = []ast.Expr{n.X, n.Y}
		}
	case *ast.AssignStmt:
		if n.Tok == token.ADD_ASSIGN || n.Tok == token.SUB_ASSIGN {
			parts = n.Rhs
		}
	}
	for _, part := range parts {
		product, is := ast.Unparen(part).(*ast.BinaryExpr)
		if !is || product.Op != token.MUL || info.Types[product].Value != nil {
			continue
		}
		if b, is := info.Types[product].Type.Underlying().(*types.Basic); is && b.Info()&types.IsFloat != 0 {
			return "a product in a sum without a conversion: " + types.ExprString(product)
		}
	}
	return ""
}
