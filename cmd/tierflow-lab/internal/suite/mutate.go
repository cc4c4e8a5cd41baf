package suite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
)

// The kinds of mutations.
const (
	kindOperator  = "operator"
	kindConstant  = "constant"
	kindStatement = "dropped statement"
	kindArguments = "swapped arguments"
)

// Mutation is one change of a file: the bytes from Begin to End become New.
type Mutation struct {
	Package string `json:"package"`
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"` // bytes, from 1
	Kind    string `json:"kind"`
	Old     string `json:"old"`
	New     string `json:"new"`

	path       string
	begin, end int // bytes of the file
}

// apply returns the mutated source.
func (m *Mutation) apply(source []byte) []byte {
	return append(append(append([]byte(nil), source[:m.begin]...), m.New...), source[m.end:]...)
}

// readMutations reads a list of mutations from a file.
func readMutations(list string) (all []Mutation, err error) {
	text, err := os.ReadFile(list)
	if err != nil {
		return nil, err
	}
	var given []struct{ What, File, Old, New string }
	if err := json.Unmarshal(text, &given); err != nil {
		return nil, fmt.Errorf("%s: %w", list, err)
	}
	for _, g := range given {
		path, err := filepath.Abs(g.File)
		if err != nil {
			return nil, err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", list, g.What, err)
		}
		if n := bytes.Count(source, []byte(g.Old)); n != 1 || g.Old == "" {
			return nil, fmt.Errorf("%s: %q: %s has the old text %d times; once is wanted:\n%s", list, g.What, g.File, n, g.Old)
		}
		begin := bytes.Index(source, []byte(g.Old))
		before := source[:begin]
		all = append(all, Mutation{
			Package: "./" + filepath.Dir(g.File), File: filepath.Base(g.File), Line: 1 + bytes.Count(before, []byte("\n")), Column: begin - bytes.LastIndexByte(before, '\n'),
			Kind: g.What, Old: g.Old, New: g.New, path: path, begin: begin, end: begin + len(g.Old),
		})
	}
	return all, nil
}

// operators has for each operator those that it becomes.
var operators = map[token.Token]string{
	token.ADD: "-", token.SUB: "+", token.MUL: "/", token.QUO: "*", token.REM: "*",
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.EQL: "!=", token.NEQ: "==",
	token.LAND: "||", token.LOR: "&&", token.AND: "|", token.OR: "&", token.SHL: ">>", token.SHR: "<<",
	token.ADD_ASSIGN: "-=", token.SUB_ASSIGN: "+=", token.INC: "--", token.DEC: "++",
}

// mutations lists all of a file of a package. Some may not compile.
func mutations(pkg, path string) ([]Mutation, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var all []Mutation
	at := func(p token.Pos) int { return fset.Position(p).Offset }
	add := func(kind string, begin, end token.Pos, text string) {
		all = append(all, Mutation{
			Package: pkg, File: filepath.Base(path), Line: fset.Position(begin).Line, Column: fset.Position(begin).Column, Kind: kind,
			Old: string(source[at(begin):at(end)]), New: text, path: path, begin: at(begin), end: at(end),
		})
	}
	operator := func(op token.Token, pos token.Pos) {
		if text, known := operators[op]; known {
			add(kindOperator, pos, pos+token.Pos(len(op.String())), text)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok != token.IMPORT
		case *ast.Field, *ast.ArrayType:
			return false // tags and types
		case *ast.BinaryExpr:
			operator(n.Op, n.OpPos)
		case *ast.IncDecStmt:
			operator(n.Tok, n.TokPos)
		case *ast.AssignStmt:
			operator(n.Tok, n.TokPos)
		case *ast.BasicLit:
			if v, err := strconv.ParseInt(n.Value, 0, 64); n.Kind == token.INT && err == nil {
				add(kindConstant, n.Pos(), n.End(), strconv.FormatInt(v+1, 10))
			}
		case *ast.Ident:
			if n.Name == "true" || n.Name == "false" {
				add(kindConstant, n.Pos(), n.End(), strconv.FormatBool(n.Name == "false"))
			}
		case *ast.BlockStmt:
			for _, s := range n.List {
				if droppable(s) {
					add(kindStatement, s.Pos(), s.End(), "")
				}
			}
		case *ast.CallExpr:
			if f, is := n.Fun.(*ast.Ident); is && (f.Name == "min" || f.Name == "max") {
				break // any order is the same
			}
			for i := range len(n.Args) - 1 {
				a, b := n.Args[i], n.Args[i+1]
				first, second := string(source[at(a.Pos()):at(a.End())]), string(source[at(b.Pos()):at(b.End())])
				if between := string(source[at(a.End()):at(b.Pos())]); first != second {
					add(kindArguments, a.Pos(), b.End(), second+between+first)
				}
			}
		}
		return true
	})
	return all, nil
}

// droppable reports whether a statement can be left out: calls, assignments to what is declared elsewhere, and what ends a loop's
// round.
func droppable(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ExprStmt, *ast.IncDecStmt, *ast.DeferStmt, *ast.SendStmt:
		return true
	case *ast.AssignStmt:
		return s.Tok != token.DEFINE
	case *ast.BranchStmt:
		return s.Tok == token.BREAK || s.Tok == token.CONTINUE
	}
	return false
}
