package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/levels/join/env"
)

var variableName = regexp.MustCompile(`^TIERFLOW_[A-Z][A-Z_]*$`)

// Each variable stands in the one list, and is read or set by its name there; tests and programs may spell it out.
func TestVariables(t *testing.T) {
	listed, used, inTests := map[string]bool{}, map[string]bool{}, map[string]bool{}
	eachFile(t, ".go", func(name string, src []byte) {
		f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		isTest := strings.HasSuffix(name, "_test.go")
		if f.Name.Name == "env" && isTest {
			return // of unknown names
		}
		if f.Name.Name == "env" {
			ast.Inspect(f, func(n ast.Node) bool {
				if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 {
					if text, is := variableText(v.Values[0]); is {
						listed[v.Names[0].Name] = true
						if _, known := env.WhoseIs(text); !known {
							t.Errorf("%s has %s, and its table lacks it", name, text)
						}
					}
				}
				return true
			})
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && !isTest {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "env" {
					used[s.Sel.Name] = true
				}
			}
			if e, ok := n.(ast.Expr); ok {
				switch text, is := variableText(e); {
				case !is:
				case isTest:
					inTests[text] = true
				case !strings.Contains(name, "testdata/"):
					t.Errorf("%s spells out %s, which has a name in levels/join/env", name, text)
				}
			}
			return true
		})
	})
	if len(listed) != len(env.Names()) {
		t.Errorf("%d names for %d variables", len(listed), len(env.Names()))
	}
	for _, name := range sortedKeys(listed) {
		if !used[name] {
			t.Errorf("nothing reads or sets env.%s", name)
		}
	}
	for _, name := range sortedKeys(inTests) {
		if !slices.Contains(strangers, name) && len(env.Unknown([]string{name})) > 0 {
			t.Errorf("tests read %s, which levels/join/env does not have among those of tests", name)
		}
	}
	for _, name := range env.NamesOfTests() {
		if !inTests[name] {
			t.Errorf("levels/join/env has %s, which no test reads", name)
		}
	}
}

// variableText returns the name of a variable that an expression spells out.
func variableText(e ast.Expr) (text string, is bool) {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(literal.Value)
	text = strings.TrimSuffix(text, "=")
	return text, err == nil && variableName.MatchString(text)
}

// strangers are names that tests and pages use because nobody knows them.
var strangers = []string{"TIERFLOW_OTHER", "TIERFLOW_PLANN"}

// What is documented is known, and what is known is documented.
func TestVariablesAreDocumented(t *testing.T) {
	named := regexp.MustCompile(`\bTIERFLOW_[A-Z][A-Z_]*[A-Z]\b`)
	documented := map[string]bool{}
	eachFile(t, ".md", func(name string, src []byte) {
		for _, variable := range named.FindAllString(string(src), -1) {
			documented[variable] = true
			if !slices.Contains(strangers, variable) && len(env.Unknown([]string{variable})) > 0 {
				t.Errorf("%s speaks of %s, which nothing reads", name, variable)
			}
		}
	})
	for _, variable := range env.Names() {
		if !documented[variable] {
			t.Errorf("no README.md has %s", variable)
		}
	}
}

// Tables of pages say whose value of a variable counts. They need not if it is each rank's own.
func TestVariablesAreWhose(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `(TIERFLOW_[A-Z_]+)`[^|]*\\| (.*) \\|$")
	rows := 0
	eachFile(t, ".md", func(name string, src []byte) {
		for _, m := range row.FindAllStringSubmatch(string(src), -1) {
			whose, known := env.WhoseIs(m[1])
			if !known {
				continue
			}
			rows++
			for text, want := range map[string]env.Whose{"rank 0's": env.Rank0s, "equal on all ranks": env.Equal} {
				if says := strings.Contains(m[2], text); says != (whose == want) {
					t.Errorf("%s: %s %q: that it says %q is %v, and in levels/join/env %v", name, m[1], m[2], text, says, whose == want)
				}
			}
		}
	})
	if rows < 30 {
		t.Errorf("%d rows of variables", rows)
	}
}

// eachFile calls f for each file of the module with such a name's end, testdata too.
func eachFile(t *testing.T, ending string, f func(name string, src []byte)) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ending) {
			return err
		}
		src, err := os.ReadFile(name)
		f(name, src)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func sortedKeys(m map[string]bool) []string {
	var all []string
	for name := range m {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// A name that is no variable's is said once, by rank 0 or by the command.
func TestUnknownVariableWarns(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("ranks as processes need Linux")
	}
	const name, nearest = "TIERFLOW_PLANN", "TIERFLOW_PLAN"
	t.Setenv(name, "x")
	t.Setenv("TIERFLOW_TEST_AGENT", "1")
	bench := strings.Fields("bench coll bcast --bytes 8 --iters 2 --json")
	launch := append([]string{"run", "--hosts", "a:1,b:2", "--launcher", "local", "--agent", os.Args[0], "--", os.Args[0]}, bench...)
	for _, args := range [][]string{append(bench, "--topo", "2x1"), launch} {
		var out, errors bytes.Buffer
		status := run(t.Context(), args, nil, &out, &errors)
		said := regexp.MustCompile(name+`\b`).FindAllString(errors.String(), -1)
		if status != 0 || len(said) != 1 || !strings.Contains(errors.String(), nearest+"\n") {
			t.Errorf("tierflow %v: status %d, errors %q; want one warning with the nearest name", args, status, errors.String())
		}
		if args[0] == "run" && !strings.HasPrefix(errors.String(), "[0] ") {
			t.Errorf("tierflow %v: not rank 0 warns: %q", args, errors.String())
		}
	}
	if mpirun, err := exec.LookPath("mpiexec.hydra"); err == nil {
		cmd := exec.CommandContext(t.Context(), mpirun, append([]string{"-n", "2", os.Args[0]}, bench...)...)
		cmd.Env = append(os.Environ(), "TIERFLOW_TEST_RANK=1")
		out, err := cmd.CombinedOutput()
		if said := strings.Count(string(out), name+" "); err != nil || said != 1 {
			t.Errorf("under mpiexec: %v, %d warnings, want one\n%s", err, said, out)
		}
	}
}
