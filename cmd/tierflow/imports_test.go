package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/tierflow/tierflow/"

// arrows says what each package of the module stands on: it may import these and
// whatever they stand on, nothing else of the module. Do not relax it to make a
// build pass; a new arrow needs a sentence of reason beside it.
var arrows = map[string][]string{
	// A reader of JSON files with lines in its complaints; levels, costs and tables use it.
	"levels/strictjson": {},
	// Reading within bounds, and writing whole or not at all; whoever opens files of users does it so.
	"levels/files": {},
	// How much memory is left; whoever takes much asks it.
	"levels/memory": {},
	// Whether a process of this machine runs; join watches ranks, and a door is asked about them.
	"levels/process": {},
	// Text of others, fit for a terminal; whoever reads it makes it so.
	"levels/printable": {},
	// Offsets of clocks from times that others have read.
	"levels/clock": {},
	// Lists of ranks and processors; join, launch and doctor use it.
	"levels/ranges": {},

	"levels": {"levels/ranges", "levels/strictjson"},
	"dag":    {"dag/invariants"},

	// A constant of the build: whoever checks its own promises reads it.
	"dag/invariants": {},

	"tasks/half": {},
	"tasks":      {"levels", "dag", "tasks/half"},

	"submodules":                {"tasks"},
	"submodules/trees":          {"submodules"},
	"submodules/internal/star":  {"submodules"},
	"submodules/internal/adapt": {"submodules/trees"},
	"submodules/internal/nbc":   {"submodules/trees"},
	"submodules/internal/sm":    {"submodules/internal/star"},
	"submodules/internal/solo":  {"submodules/internal/star"},
	"submodules/all":            {"submodules/internal/adapt", "submodules/internal/nbc", "submodules/internal/circulant", "submodules/internal/sm", "submodules/internal/solo"},

	// Its graphs are no trees.
	"submodules/internal/circulant": {"submodules"},

	"submodules/check":         {"submodules"},
	"submodules/check/casegen": {"submodules"},

	// Only tests import these: nothing stands on them.
	"dag/dagtest":               {},
	"levels/clock/clocktest":    {},
	"tasks/tasktest":            {"tasks"},
	"costs/machine/machinetest": {"costs/machine"},
	"submodules/submoduletest":  {"submodules/check"},
	"cmd/internal/kit/kittest":  {"cmd/internal/kit", "dag/dagtest", "submodules/all"},
	"planner/table/tabletest":   {"planner/table", "submodules/all"},

	// Who started the process, and the wire protocols of process managers.
	"levels/join/launcher": {"levels", "levels/join/ports"},

	// Listeners of join, the launcher and benchmarks keep to one range.
	"levels/join/ports": {"levels/join/env"},

	// The names of all variables; whoever reads or sets one has its name from there.
	"levels/join/env": {},

	// Who goes on after a death is decided without I/O.
	"executor/internal/agree": {},

	// TLS without I/O; the links seal with it what join has agreed on.
	"levels/join/seal": {},

	// Only tests import it.
	"levels/join/seal/sealtest": {"levels/join/seal"},

	"levels/join": {"levels/join/launcher", "levels/join/ports", "levels/join/seal", "levels/ranges", "levels/files", "levels/process"},
	// Times of several machines need their clocks' offsets.
	"executor/trace":  {"levels", "levels/clock", "levels/printable"},
	"executor/kernel": {"tasks"},
	"executor/flight": {"levels/printable"},
	// Findings from states; ranks that stall ask it, and so do commands.
	"executor/flight/verdict": {"executor/flight"},
	// How others ask a rank; the planner opens it, commands knock.
	"executor/door": {"executor/flight/verdict", "levels/files", "levels/process"},
	// A communicator's number is called what recordings call it.
	"executor/wire":         {"levels", "executor/flight"},
	"executor/flow":         {"dag/invariants"},
	"executor/internal/shm": {"executor/wire"},
	"executor/internal/tcp": {"executor/wire", "levels/join/seal"},
	// What ranks agree on after a death.
	"executor/internal/ballot": {"executor/internal/agree", "executor/wire"},
	// The straight path reads the rings themselves: through an interface it would take as
	// long again as the messages do.
	"executor": {"executor/internal/ballot", "levels/files", "levels/ranges", "submodules", "executor/kernel", "executor/trace", "executor/flow", "executor/internal/shm", "executor/flight/verdict"},
	// Goroutine ranks speak by the rings of processes.
	"executor/local": {"executor"},
	"executor/proc":  {"executor", "executor/internal/tcp", "levels/memory"},

	// Only tests import these: what a link must do, and what one may do to an engine.
	"executor/wire/wiretest":   {"executor/wire"},
	"executor/internal/faulty": {"executor/wire"},

	"costs": {"tasks"},
	// Intervals of confidence need linear algebra; who only reads costs does without.
	"costs/stats": {"costs"},
	// A bench on simulated time sums up as one on real links.
	"costs/measure": {"costs/stats", "costs/sim", "costs/derived", "executor"},
	// Where a machine's numbers come from is said as for measured costs.
	"costs/machine": {"costs"},
	// Messages between two ranks over any line: joining a job and doctor measure with them.
	"costs/pairs": {"costs/machine"},
	// Its closed forms are of the trees that bcasts go along.
	"costs/derived": {"costs", "submodules/trees"},
	// It learns any number.
	"costs/forest": {},
	// A simulation obeys the flow control of the executor: it decides what overlaps.
	"costs/sim": {"costs/machine", "submodules", "executor/flow"},
	// A price is of the same messages, by formulas. How many chains a tree has, and with how many
	// a rank speaks at once, the submodules say.
	"costs/price": {"costs/machine", "submodules", "executor/flow"},
	"viz":         {"submodules", "costs", "costs/sim", "executor/trace"},
	// A page of a job's trace has what was found wrong with the job.
	"viz/report": {"viz", "executor/flight/verdict"},
	// A language for decisions; it knows plans and no submodules.
	"planner/rules": {"tasks"},
	// Other libraries' files, as rules.
	"planner/rules/foreign": {"planner/rules"},
	// Few rules of a table, as text.
	"planner/distill": {"planner/table"},
	// Requests answer what rules ask.
	"planner/builtin": {"submodules", "planner/rules"},
	"planner/table":   {"submodules", "costs"},
	// Which plans there are, whoever chooses.
	"planner/plans": {"planner/builtin", "planner/table"},
	// On a known machine rivals of the rule's plan are compared by their prices.
	"planner/priced": {"planner/plans", "costs/price", "costs/sim"},
	// What to measure next, from what was measured.
	"planner/learn": {"tasks", "costs/forest"},
	// What a program calls, written by planner and read by tune.
	"planner/profile": {"tasks", "levels/files", "levels/printable"},
	// Which candidate is the fastest, by times that others take.
	"planner/feedback/internal/search": {},
	// It asks each way to choose plans in turn, and reads their files.
	"planner/choose": {"levels/files", "planner/builtin", "planner/rules", "planner/table", "planner/priced"},
	// Only under the invariants tag planner checks what it compiles, see TestFaceIsLight. It makes both kinds of
	// worlds.
	// It hears from the launcher who waits to join.
	"planner":      {"planner/internal/inside", "planner/internal/cache", "levels/files", "levels/join/launcher", "planner/choose", "costs/pairs", "planner/profile", "executor/door", "executor/local", "executor/proc", "submodules/all", "submodules/check", "levels/join", "levels/join/env"},
	"planner/tune": {"planner", "planner/raw", "planner/priced", "planner/learn", "costs/price", "costs/measure"},
	// Its folder of measurements in the user's cache.
	"planner/internal/cache": {"levels/files"},
	// What packages beside planner may know of its communicators; it hands their types on.
	"planner/internal/inside": {"executor", "levels/join", "planner/table"},
	// For libraries of other languages and tools.
	"planner/raw": {"planner"},
	// It tries plans while a program runs.
	"planner/feedback": {"planner", "planner/feedback/internal/search"},
	// Jobs whose ranks change.
	"planner/elastic": {"planner", "planner/raw"},
	// Apart from planner: it needs net/http.
	"planner/metrics": {"planner", "planner/raw"},
	// It sums floats by collectives of integers, which it rounds to by assembly.
	"planner/exact": {"planner", "executor/kernel"},
	// It encodes values of any type.
	"planner/object": {"planner"},
	// It gathers units and reduces gradients in parts.
	"planner/shard": {"planner", "planner/raw"},
	// It starts collectives of buckets while gradients are computed.
	"planner/fuse": {"planner", "planner/raw"},

	// It reads the hosts of a Slurm allocation, removes what killed ranks have left at their doors, carries
	// their traces, and replaces words of other libraries in their plans.
	"cmd/internal/launch": {"levels/join/launcher", "levels/join/ports", "levels/ranges", "executor/door", "executor/trace", "planner/rules"},
	// peers carries along what it builds and the cluster it runs on: embedded files, no code.
	"testdata/cluster": {},
	"testdata/peers":   {},
	// kit is what commands share; each command is a room that no other one stands on.
	"cmd/internal/kit":         {"costs/machine", "costs/sim", "planner"},
	"cmd/internal/kit/payload": {"planner/raw"},
	"cmd/internal/bench":       {"planner/elastic", "levels/join/launcher", "levels/join/ports", "cmd/internal/kit", "cmd/internal/kit/payload", "planner/tune"},
	"cmd/internal/tune":        {"cmd/internal/kit", "planner/tune"},
	"cmd/internal/verify":      {"cmd/internal/kit", "submodules/check", "submodules/check/casegen"},
	// Training has the buckets of fuse.
	"cmd/internal/simulate": {"cmd/internal/kit", "viz", "planner/plans", "planner/fuse", "costs/sim"},
	"cmd/internal/draw":     {"cmd/internal/kit", "cmd/internal/kit/payload", "viz", "viz/report"},
	// Its caller gives it the guide's pages.
	"cmd/internal/docs": {"cmd/internal/kit"},
	// It enters a job as planner does, and looks at the links beneath.
	"cmd/internal/doctor": {"cmd/internal/kit"},
	// Rules are tried as a communicator would follow them, and converted to other libraries'.
	"cmd/internal/rules": {"cmd/internal/kit", "planner/distill", "planner/rules/foreign"},
	// It knocks at the doors of ranks.
	"cmd/internal/watch": {"cmd/internal/kit", "executor/door", "executor/flight/verdict", "planner", "planner/metrics"},
	// It carries the shim's source along.
	// It carries the source of a Python extension along.
	"cmd/internal/torch": {"cmd/internal/kit", "cmd/libtierflow/abi", "levels/join/env"},
	"cmd/internal/mpi":   {"cmd/internal/kit", "cmd/libtierflow/abi", "levels/join/env"},
	// The C sources, as text.
	"cmd/libtierflow/abi": {},
	// It enters a job whose launcher is its caller, and has all words of plans.
	"cmd/libtierflow": {"cmd/libtierflow/abi", "planner/raw", "planner/rules/foreign", "levels/join"},

	"cmd/tierflow": {
		"cmd/internal/bench", "cmd/internal/tune", "cmd/internal/verify", "cmd/internal/draw", "cmd/internal/simulate",
		"levels/join/ports", "cmd/internal/launch", "cmd/internal/docs", "cmd/internal/doctor", "cmd/internal/mpi", "cmd/internal/torch", "cmd/internal/rules", "cmd/internal/watch",
	},

	// What other libraries decide, as plans. Only the laboratory compares itself with them.
	"cmd/tierflow-lab/internal/fixed": {"submodules", "planner/rules/foreign"},
	// Statistics and output that its commands share; some simulate plans.
	"cmd/tierflow-lab/internal/labkit": {"cmd/internal/kit", "cmd/tierflow-lab/internal/charts", "costs/sim"},
	// Programs in the language of other simulators: what they compute takes as long as on a machine.
	"cmd/tierflow-lab/internal/goal": {"costs/machine", "submodules"},
	// Charts of numbers: the product draws tables and timelines only.
	"cmd/tierflow-lab/internal/charts": {"viz"},
	// peers measures with it; it disturbs programs of all libraries.
	"cmd/tierflow-lab/internal/disturb": {"cmd/internal/kit"},
	// It makes rules for Open MPI of what Open MPI's algorithms took.
	"cmd/tierflow-lab/internal/peers": {"cmd/tierflow-lab/internal/labkit", "cmd/tierflow-lab/internal/disturb", "planner/distill", "planner/rules/foreign", "testdata/cluster", "testdata/peers"},
	// Flags and meters are those of bench.
	"cmd/tierflow-lab/internal/trials": {"cmd/internal/bench", "cmd/tierflow-lab/internal/fixed", "cmd/tierflow-lab/internal/goal", "cmd/tierflow-lab/internal/labkit"},
	// It replays what package learn would measure.
	"cmd/tierflow-lab/internal/learn": {"cmd/tierflow-lab/internal/labkit", "planner/tune"},
	// Searches are those of tune.
	"cmd/tierflow-lab/internal/methods": {"cmd/internal/tune", "cmd/tierflow-lab/internal/labkit"},
	// Machines that nobody has seen, and what is chosen on them.
	"cmd/tierflow-lab/internal/drawn": {"cmd/tierflow-lab/internal/labkit", "planner/plans"},
	// Nothing of the product stands on the laboratory.
	"cmd/tierflow-lab/internal/tree": {},
	// It runs go test, on any module.
	"cmd/tierflow-lab/internal/suite": {"cmd/tierflow-lab/internal/labkit"},
	"cmd/tierflow-lab":                {"cmd/tierflow-lab/internal/tree", "cmd/tierflow-lab/internal/suite", "cmd/tierflow-lab/internal/peers", "cmd/tierflow-lab/internal/trials", "cmd/tierflow-lab/internal/learn", "cmd/tierflow-lab/internal/methods", "cmd/tierflow-lab/internal/drawn"},
}

// commands are the packages that make commands.
var commands = []string{
	"cmd/tierflow", "cmd/internal/kit", "cmd/internal/kit/kittest", "cmd/internal/bench",
	"cmd/internal/tune", "cmd/internal/verify", "cmd/internal/draw", "cmd/internal/simulate",
	"cmd/internal/docs", "cmd/internal/doctor", "cmd/internal/mpi", "cmd/internal/torch", "cmd/internal/rules", "cmd/internal/watch", "cmd/tierflow-lab", "cmd/tierflow-lab/internal/peers", "cmd/tierflow-lab/internal/disturb", "cmd/tierflow-lab/internal/trials", "cmd/tierflow-lab/internal/learn", "cmd/tierflow-lab/internal/methods", "cmd/tierflow-lab/internal/drawn", "cmd/tierflow-lab/internal/suite",
}

// libraries says which packages may import which other modules.
var libraries = map[string][]string{
	"github.com/dominikbraun/graph":  {"dag"},
	"github.com/google/go-cmp":       {"dag/dagtest"},
	"github.com/schollz/progressbar": {"cmd/internal/kit"},
	"github.com/spf13/cobra":         commands,
	"github.com/spf13/pflag":         {"cmd/internal/kit", "cmd/tierflow"},
	"github.com/yuin/goldmark":       {"cmd/internal/docs"},
	"golang.org/x/sync":              {"executor/proc", "planner", "costs/measure", "cmd/internal/verify", "cmd/internal/doctor"},
	"golang.org/x/sys":               {"levels/process", "levels/join", "levels/join/seal", "levels/join/launcher", "executor/wire", "executor/internal/tcp", "executor/proc", "executor/kernel", "executor/flight", "costs/measure", "cmd/internal/launch", "cmd/internal/doctor", "cmd/internal/kit", "cmd/tierflow"},
	"golang.org/x/term":              {"cmd/internal/kit", "cmd/internal/launch"}, // the launcher shows prompts on terminals
	"gonum.org/v1/gonum":             {"costs/stats", "costs/derived", "cmd/internal/bench", "cmd/tierflow-lab/internal/labkit", "cmd/tierflow-lab/internal/methods"},
	"gonum.org/v1/plot":              {"cmd/tierflow-lab/internal/charts"},
}

// concurrent are the packages that may have go statements.
// A door answers while its rank runs. A thread of C that waits with a limit leaves the call to a goroutine.
var concurrent = []string{"executor", "executor/door", "executor/wire/wiretest", "levels/join", "levels/join/seal/sealtest", "costs/measure", "cmd/internal/launch", "cmd/libtierflow"}

// pure are the folders whose packages give the same bytes for the same input: they
// know no goroutine, clock, global random number or operating system.
var pure = []string{"levels", "dag", "tasks", "submodules", "costs", "viz", "executor/flow", "planner/builtin", "planner/rules", "planner/rules/foreign", "planner/distill", "planner/table", "planner/priced", "planner/learn", "planner/feedback/internal/search", "cmd/tierflow-lab/internal/fixed", "cmd/tierflow-lab/internal/charts", "cmd/tierflow-lab/internal/goal"}

// impureBelow are packages in these folders that are not.
var impureBelow = []string{"costs/pairs", "levels/clock/clocktest", "levels/files", "levels/memory", "levels/process", "levels/join", "levels/join/launcher", "levels/join/ports", "levels/join/seal", "levels/join/seal/sealtest", "costs/measure", "dag/dagtest", "submodules/submoduletest"}

// impurePackages are those of the standard library that pure packages may not import.
var impurePackages = []string{"os", "os/exec", "os/signal", "net", "net/http", "log", "log/slog", "syscall", "crypto/rand"}

// impureNames are what pure packages may not use of others. A star ends a prefix,
// a minus makes exceptions.
var impureNames = map[string]string{
	"time":         "Now Since Until Sleep After AfterFunc Tick NewTimer NewTicker",
	"sync":         "WaitGroup",
	"math/rand":    "* -New* -Rand -Source -Zipf",
	"math/rand/v2": "* -New* -Rand -Source -Zipf -PCG -ChaCha8",
}

func TestImportArrows(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range sources(t) {
		seen[f.pkg] = true
		for _, complaint := range f.complaints() {
			t.Error(complaint)
		}
	}
	for pkg := range arrows {
		if !seen[pkg] && !strings.HasPrefix(pkg, "testdata/") {
			t.Errorf("the table of arrows has %s, and the tree no file of it", pkg)
		}
	}
}

// What programs import is light: no linear algebra comes along, no other library's files, and nothing
// that tools do. Commands and the C library have the words of other libraries, as plans come to them from outside.
func TestFaceIsLight(t *testing.T) {
	linked := func(pkg string) []string {
		list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags=", module+pkg)
		list.Env = append(os.Environ(), "CGO_ENABLED=1") // for the C library
		out, err := list.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(out))
	}
	const words = "planner/rules/foreign"
	all := linked("planner")
	for _, heavy := range []string{words, "submodules/check", "planner/distill"} {
		if slices.Contains(all, module+heavy) {
			t.Errorf("planner imports %s, directly or not; keep that for tools", heavy)
		}
	}
	for _, pkg := range all {
		if strings.HasPrefix(pkg, "gonum.org/") {
			t.Errorf("planner imports %s, directly or not; keep that for those who measure", pkg)
		}
	}
	for _, pkg := range []string{"cmd/tierflow", "cmd/libtierflow"} {
		if !slices.Contains(linked(pkg), module+words) {
			t.Errorf("%s lacks %s", pkg, words)
		}
	}
}

// source is a parsed file.
type source struct {
	pkg  string // below the module
	file *ast.File
	set  *token.FileSet
}

// sources are the files of the module and of the laboratory but tests, for all systems.
func sources(t *testing.T) []source {
	t.Helper()
	root := filepath.Join("..", "..")
	var all []source
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != root && foreign(name) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		short, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		f, err := parse(filepath.ToSlash(short), src)
		all = append(all, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// foreign folders hold no packages of the module: the go command's rules. The laboratory, a module of its own, is not
// foreign: the arrows hold there too.
func foreign(dir string) bool {
	base := filepath.Base(dir)
	if base == "tierflow-lab" {
		return false
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil || base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")
}

// parse calls the file short, its path below the module.
func parse(short string, src []byte) (source, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, short, src, parser.SkipObjectResolution)
	return source{path.Dir(short), f, set}, err
}

// complaints are the rules that the file breaks.
func (f source) complaints() []string {
	if _, ok := arrows[f.pkg]; !ok {
		return []string{fmt.Sprintf("%v: package %s has no line in the table of arrows in cmd/tierflow/imports_test.go; say there what it stands on",
			f.set.Position(f.file.Package), f.pkg)}
	}
	var all []string
	complain := func(n ast.Node, format string, args ...any) {
		all = append(all, fmt.Sprintf("%v: ", f.set.Position(n.Pos()))+fmt.Sprintf(format, args...))
	}
	imported := map[string]string{} // local name: path
	for _, spec := range f.file.Imports {
		target, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
		imported[localName(spec, target)] = target
		if why := refusal(f.pkg, target); why != "" {
			complain(spec, "%s", why)
		}
	}
	ast.Inspect(f.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			if !slices.Contains(concurrent, f.pkg) {
				complain(n, "go statement in %s; goroutines are started only in %s", f.pkg, strings.Join(concurrent, ", "))
			}
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			if ok && isPure(f.pkg) && matches(impureNames[imported[x.Name]], n.Sel.Name) {
				complain(n, "%s.%s in %s, which is pure: same input, same bytes", imported[x.Name], n.Sel.Name, f.pkg)
			}
		}
		return true
	})
	return all
}

func localName(spec *ast.ImportSpec, target string) string {
	switch base := path.Base(target); {
	case spec.Name != nil:
		return spec.Name.Name
	case base == "v2":
		return path.Base(path.Dir(target))
	default:
		return base
	}
}

// refusal says why pkg must not import target; empty if it may.
func refusal(pkg, target string) string {
	if short, ok := strings.CutPrefix(target, module); ok {
		if slices.Contains(below(pkg), short) {
			return ""
		}
		return fmt.Sprintf("%s imports %s, against the arrows: it stands on [%s]; to relax that, write a sentence of reason in the table in cmd/tierflow/imports_test.go",
			pkg, short, strings.Join(below(pkg), " "))
	}
	if target == "C" && pkg != "cmd/libtierflow" {
		return fmt.Sprintf("%s imports C; only cmd/libtierflow may, so that all else builds without cgo", pkg)
	}
	if isPure(pkg) && slices.Contains(impurePackages, target) {
		return fmt.Sprintf("%s imports %s, but is pure: same input, same bytes", pkg, target)
	}
	if first, _, _ := strings.Cut(target, "/"); !strings.Contains(first, ".") {
		return "" // standard library
	}
	for library, users := range libraries {
		if target == library || strings.HasPrefix(target, library+"/") {
			if slices.Contains(users, pkg) {
				return ""
			}
			return fmt.Sprintf("%s imports %s, which is for %s only; to relax that, write a sentence of reason in cmd/tierflow/imports_test.go",
				pkg, target, strings.Join(users, ", "))
		}
	}
	return fmt.Sprintf("%s imports %s, a library that the table in cmd/tierflow/imports_test.go does not have", pkg, target)
}

// below is everything that pkg stands on.
func below(pkg string) []string {
	var all []string
	for _, next := range arrows[pkg] {
		all = append(append(all, next), below(next)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func isPure(pkg string) bool {
	within := func(dir string) bool { return pkg == dir || strings.HasPrefix(pkg, dir+"/") }
	return slices.ContainsFunc(pure, within) && !slices.Contains(impureBelow, pkg)
}

// matches says if a line of impureNames has name.
func matches(line, name string) bool {
	yes := false
	for word := range strings.FieldsSeq(line) {
		word, except := strings.CutPrefix(word, "-")
		prefix, star := strings.CutSuffix(word, "*")
		if word == name || star && strings.HasPrefix(name, prefix) {
			yes = !except
		}
	}
	return yes
}

// The arrows must form a graph without circles, or "below" means nothing, and must
// not name packages that nothing says anything about.
func TestArrowsAreAnOrder(t *testing.T) {
	var visit func(pkg string, above []string)
	visit = func(pkg string, above []string) {
		if slices.Contains(above, pkg) {
			t.Fatalf("%s stands on itself: %s", pkg, strings.Join(append(above, pkg), " > "))
		}
		next, ok := arrows[pkg]
		if !ok {
			t.Fatalf("%s, which has no line: %s", pkg, strings.Join(append(above, pkg), " > "))
		}
		for _, p := range next {
			visit(p, append(slices.Clone(above), pkg))
		}
	}
	for pkg := range arrows {
		visit(pkg, nil)
	}
}

func TestArrowsAreChecked(t *testing.T) {
	for _, test := range []struct{ file, src, want string }{
		{"tasks/a.go", `import _ "github.com/tierflow/tierflow/executor"`, "tasks/a.go:2:8: tasks imports executor, against the arrows"},
		{"levels/join/a.go", `import _ "github.com/tierflow/tierflow/tasks"`, "levels/join imports tasks"},
		{"planner/a.go", `import _ "github.com/tierflow/tierflow/dag"`, ""},
		{"executor/a.go", `import _ "github.com/tierflow/tierflow/levels/join"`, "executor imports levels/join"},
		{"dag/a.go", `import _ "github.com/dominikbraun/graph/draw"`, ""},
		{"viz/a.go", `import _ "github.com/dominikbraun/graph"`, "which is for dag only"},
		{"viz/a.go", `import _ "example.org/x"`, "a library that the table"},
		{"viz/a.go", `import _ "os"`, "viz imports os, but is pure"},
		{"cmd/tierflow/a.go", `import _ "os"`, ""},
		{"executor/a.go", `import "C"`, "executor imports C; only cmd/libtierflow may"},
		{"cmd/libtierflow/a.go", `import "C"`, ""},
		{"extra/a.go", ``, "extra has no line"},
		{"submodules/internal/sm/a.go", `func f() { go f() }`, "go statement in submodules/internal/sm"},
		{"executor/trace/a.go", `func f() { go f() }`, "go statement in executor/trace"},
		{"executor/a.go", `func f() { go f() }`, ""},
		{"viz/a.go", `import "time"; var x = time.Now`, "time.Now in viz"},
		{"viz/a.go", `import c "time"; var x = c.Now`, "time.Now in viz"},
		{"viz/a.go", `import "time"; var x time.Duration`, ""},
		{"executor/a.go", `import "time"; var x = time.Now`, ""},
		{"dag/a.go", `import "math/rand/v2"; var x = rand.IntN`, "math/rand/v2.IntN in dag"},
		{"dag/a.go", `import "math/rand/v2"; var x = rand.New(rand.NewPCG(1, 2))`, ""},
	} {
		f, err := parse(test.file, []byte("package a\n"+test.src))
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(f.complaints(), "\n")
		if !strings.Contains(got, test.want) || test.want == "" && got != "" {
			t.Errorf("%s: %s: complaints %q, want %q", test.file, test.src, got, test.want)
		}
	}
}
