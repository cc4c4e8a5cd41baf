package suite

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/labkit"
)

// Mutant is a mutation that compiles, and what became of it.
type Mutant struct {
	Mutation
	Killed bool   `json:"killed"`
	By     string `json:"by,omitempty"` // the first test that failed; a package whose test program was ended: its path
	Others bool   `json:"others"`       // the killer is a test of another package
}

// Mutants is a table of mutation testing.
type Mutants struct {
	Seed    uint64   `json:"seed"`
	Mutants []Mutant `json:"mutants"`
}

// MutantsCommand returns mutants.
func MutantsCommand() *cobra.Command {
	m := mutating{count: 300, seed: 1, jobs: 1}
	asJSON := false
	c := &cobra.Command{
		Use:   "mutants [flags] PACKAGE...",
		Short: "Change the source at random, and list the changes that no test notices",
		Long: `Draws --count mutations of the source of Go packages that compile: another operator, a
constant one larger, a dropped statement, two swapped arguments. The tests of the mutated
package run on each; if they pass, so do those of --others that depend on it. The first
failure ends them. A test program is ended after three times as long as it takes without a
mutation, and ten seconds; at least twenty. A mutant that fails is killed. Survivors are
listed: what no test holds, or what makes no difference. An interrupt ends the draw: what
was judged before is printed, in the order of the draw. The source itself is not changed.

With --given nothing is drawn. The file is a JSON list of mutations: "what" it does wrong,
its "file" from here, and "old" text, which that file has once, in whose place comes "new".
The tests of all packages that are named run on each.`,
		Example: `  tierflow-lab mutants --count 100 ./executor ./planner/choose
  tierflow-lab mutants --seed 7 --others './planner ./executor' --jobs 2 ./tasks
  tierflow-lab mutants --given testdata/mutants/engine.json --flag=-run=^TestExplore ./executor`,
		Args: cobra.MinimumNArgs(1),
		RunE: kit.Interruptible(func(c *cobra.Command, packages []string) error {
			if m.count < 1 {
				return kit.Usagef("--count %d: want one or more", m.count)
			}
			if m.jobs < 1 {
				return kit.Usagef("--jobs %d: want one or more", m.jobs)
			}
			m.tell = c.ErrOrStderr()
			all, err := m.run(c.Context(), packages)
			if err != nil {
				return err
			}
			return labkit.Print(c.OutOrStdout(), asJSON, all, labkit.Right, all.print)
		}),
	}
	f := c.Flags()
	f.IntVar(&m.count, "count", m.count, "mutants")
	f.Uint64Var(&m.seed, "seed", m.seed, "of the draw")
	f.StringVar(&m.given, "given", "", "a file of mutations, in place of a draw")
	f.StringArrayVar(&m.others, "others", nil, "packages, with blanks between them, whose tests judge what a package's own let pass; may be repeated")
	f.IntVar(&m.jobs, "jobs", m.jobs, "mutants judged at once")
	f.StringArrayVar(&m.flags, "flag", nil, "one more flag of go test; may be repeated")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// print writes how many were killed, by package and kind, and the survivors.
func (a *Mutants) print(w io.Writer) {
	table := func(title string, key func(*Mutant) string) {
		counts := map[string][3]int{}
		for i := range a.Mutants {
			c := counts[key(&a.Mutants[i])]
			if c[0]++; a.Mutants[i].Killed {
				c[1]++
			}
			if a.Mutants[i].Others {
				c[2]++
			}
			counts[key(&a.Mutants[i])] = c
		}
		fmt.Fprintf(w, "mutants\tkilled\tby others\tshare\t %s\n", title)
		for _, k := range slices.Sorted(maps.Keys(counts)) {
			c := counts[k]
			fmt.Fprintf(w, "%d\t%d\t%d\t%.0f%%\t %s\n", c[0], c[1], c[2], 100*float64(c[1])/float64(c[0]), k)
		}
		fmt.Fprintln(w)
	}
	table("package", func(m *Mutant) string { return m.Package })
	table("kind", func(m *Mutant) string { return m.Kind })
	table("", func(*Mutant) string { return "all" })
	for _, m := range a.Mutants {
		if !m.Killed {
			fmt.Fprintln(w, &m.Mutation)
		}
	}
}

// String is the place and the change, in a line.
func (m *Mutation) String() string {
	return fmt.Sprintf("%s/%s:%d:%d: %s: %s => %s", m.Package, m.File, m.Line, m.Column, m.Kind, oneLine(m.Old), cmp.Or(oneLine(m.New), "nothing"))
}

// oneLine shortens source for a line.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 90 {
		text = text[:60] + " … " + text[len(text)-25:]
	}
	return text
}

// mutating is the command.
type mutating struct {
	count, jobs int
	seed        uint64
	given       string   // file of mutations; empty: they are drawn
	judges      []string // packages whose tests judge; nil: that of the mutation
	others      []string
	flags       []string
	tell        io.Writer
	dir         string                     // of mutated files, and of what ended tests leave
	usual       map[string]time.Duration   // of the tests of packages
	dependents  map[string]map[string]bool // packages among the others, by what their tests depend on
}

// listed is what go list tells of a package.
type listed struct {
	ImportPath, Dir string
	GoFiles, Deps   []string
}

// run draws and judges. Files and sites are in order, so a seed gives the same mutants of the same source.
func (m *mutating) run(ctx context.Context, packages []string) (*Mutants, error) {
	var sites []Mutation
	var err error
	if m.given != "" {
		m.judges = packages
		sites, err = readMutations(m.given)
		m.count = len(sites)
	} else if sites, err = m.sites(ctx, packages); err == nil {
		draw := rand.New(rand.NewPCG(m.seed, 0))
		draw.Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })
	}
	if err == nil {
		err = m.measure(ctx, packages)
	}
	if err != nil {
		return nil, err
	}
	if m.dir, err = os.MkdirTemp("", "mutants"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(m.dir)
	all := &Mutants{Seed: m.seed}
	within, enough := context.WithCancel(ctx)
	verdicts := m.judgeInOrder(within, sites)
	defer func() {
		enough()
		for range verdicts { // until all have ended
		}
	}()
	for each := range verdicts {
		v := <-each
		if ctx.Err() != nil && len(all.Mutants) > 0 {
			fmt.Fprintf(m.tell, "interrupted after %d of %d\n", len(all.Mutants), m.count)
			break
		}
		if v.err != nil {
			return nil, v.err
		}
		if !v.compiles && m.given != "" {
			return nil, fmt.Errorf("%s: %v doesn't compile", m.given, &v.mutant.Mutation)
		}
		if !v.compiles {
			continue
		}
		all.Mutants = append(all.Mutants, v.mutant)
		fmt.Fprintf(m.tell, "%d of %d: %v: killed %t %s, %v\n", len(all.Mutants), m.count, &v.mutant.Mutation, v.mutant.Killed, v.mutant.By, v.took.Round(100*time.Millisecond))
		if len(all.Mutants) == m.count {
			break
		}
	}
	if len(all.Mutants) == 0 {
		return nil, fmt.Errorf("no mutation of %q compiles", packages)
	}
	return all, nil
}

// verdict is what judge says.
type verdict struct {
	mutant   Mutant
	compiles bool
	took     time.Duration
	err      error
}

// judgeInOrder judges several mutations at once. The verdicts come in the order of sites, and end when all have come or ctx ends.
func (m *mutating) judgeInOrder(ctx context.Context, sites []Mutation) <-chan chan verdict {
	verdicts := make(chan chan verdict, 4*m.jobs) // one that takes long keeps none waiting
	var feeding sync.WaitGroup                    // run waits for the end of the verdicts
	feeding.Go(func() {
		defer close(verdicts)
		var running sync.WaitGroup
		defer running.Wait()
		free := make(chan bool, m.jobs)
		for _, site := range sites {
			free <- true
			if ctx.Err() != nil {
				return
			}
			this := make(chan verdict, 1)
			running.Go(func() {
				defer func() { <-free }()
				v, began := verdict{mutant: Mutant{Mutation: site}}, time.Now()
				v.compiles, v.err = m.judge(ctx, &v.mutant)
				v.took = time.Since(began)
				this <- v
			})
			verdicts <- this
		}
	})
	return verdicts
}

// list runs go list.
func list(ctx context.Context, flag string, packages []string) (all []listed, err error) {
	out, err := goOutput(ctx, slices.Concat([]string{"list", flag, "-json=ImportPath,Dir,GoFiles,Deps"}, packages))
	if err != nil {
		return nil, err
	}
	for in := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := in.Decode(&p); err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list %q: %s", packages, out)
		}
		all = append(all, p)
	}
}

// sites lists the mutations of packages.
func (m *mutating) sites(ctx context.Context, packages []string) (all []Mutation, err error) {
	found, err := list(ctx, "-test=false", packages)
	if err != nil {
		return nil, err
	}
	for _, p := range found {
		for _, file := range p.GoFiles {
			some, err := mutations(p.ImportPath, filepath.Join(p.Dir, file))
			if err != nil {
				return nil, err
			}
			all = append(all, some...)
		}
	}
	return all, nil
}

// measure runs all tests once without a mutation, and finds on what those of others depend.
func (m *mutating) measure(ctx context.Context, packages []string) error {
	others := strings.Fields(strings.Join(m.others, " "))
	m.usual, m.dependents = map[string]time.Duration{}, map[string]map[string]bool{}
	if len(others) > 0 {
		found, err := list(ctx, "-test", others)
		if err != nil {
			return err
		}
		for _, p := range found {
			if tested, is := strings.CutSuffix(p.ImportPath, ".test"); is {
				for _, d := range p.Deps {
					d, _, _ = strings.Cut(d, " ")
					if m.dependents[d] == nil {
						m.dependents[d] = map[string]bool{}
					}
					m.dependents[d][tested] = true
				}
			}
		}
	}
	failed, err := m.test(ctx, "", slices.Concat(packages, others), time.Hour, func(o *outcome) {
		if o.Action == "pass" && o.Test == "" {
			m.usual[o.Package] = time.Duration(o.Elapsed * float64(time.Second))
		}
	})
	if err == nil && failed != nil {
		err = fmt.Errorf("%s of %s fails without a mutation", failed.name(), failed.Package)
	}
	return err
}

// limit is how long the tests of packages may take.
func (m *mutating) limit(packages ...string) (limit time.Duration) {
	limit = 20 * time.Second
	for _, p := range packages {
		limit = max(limit, 3*m.usual[p]+10*time.Second)
	}
	return limit
}

// judge tests a mutant.
func (m *mutating) judge(ctx context.Context, mutant *Mutant) (compiles bool, err error) {
	dir, err := os.MkdirTemp(m.dir, "")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	overlay, err := write(dir, &mutant.Mutation)
	if err != nil {
		return false, err
	}
	if out, err := goOutput(ctx, []string{"build", "-overlay", overlay, mutant.Package}); err != nil || len(out) > 0 {
		return false, err
	}
	others := slices.Sorted(maps.Keys(m.dependents[mutant.Package]))
	others = slices.DeleteFunc(others, func(p string) bool { return p == mutant.Package })
	own := m.judges
	if own == nil {
		own = []string{mutant.Package}
	}
	for i, judges := range [][]string{own, others} {
		if len(judges) == 0 {
			continue
		}
		failed, err := m.test(ctx, overlay, judges, m.limit(judges...), nil)
		if err != nil {
			return true, err
		}
		if failed != nil {
			mutant.Killed, mutant.By, mutant.Others = true, failed.name(), i == 1
			break
		}
	}
	return true, nil
}

// write makes the mutated file, and the overlay that puts it in the place of the other.
func write(dir string, mutation *Mutation) (overlay string, err error) {
	source, err := os.ReadFile(mutation.path)
	if err != nil {
		return "", err
	}
	mutated := filepath.Join(dir, "mutated.go")
	if err := os.WriteFile(mutated, mutation.apply(source), 0o600); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {mutation.path: mutated}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// name is the test, or the package of a program that was ended.
func (o *outcome) name() string {
	name, _, _ := strings.Cut(o.Test, "/")
	return cmp.Or(name, o.Package)
}

// test runs tests until one fails; that ends them. saw is told of all before.
func (m *mutating) test(ctx context.Context, overlay string, packages []string, limit time.Duration, saw func(*outcome)) (failed *outcome, err error) {
	words := []string{"test", "-json", "-count=1", "-timeout", limit.String()}
	env := os.Environ()
	if overlay != "" {
		words = append(words, "-overlay", overlay)
		env = append(env, "GOTMPDIR="+filepath.Dir(overlay), "TMPDIR="+filepath.Dir(overlay)) // a killed test cleans up nothing
	}
	cmd := exec.CommandContext(ctx, "go", slices.Concat(words, m.flags, packages)...)
	cmd.Env = env
	cmd.WaitDelay = 10 * time.Second
	endGroup := labkit.GroupOf(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var said strings.Builder
	some := false
	for lines := bufio.NewReader(out); failed == nil && err == nil; {
		var line []byte
		line, err = lines.ReadBytes('\n')
		var o outcome
		if said.Write(line); json.Unmarshal(line, &o) != nil {
			continue
		}
		if o.Action == "fail" {
			failed = &o
		}
		if some = some || o.Action == "pass"; saw != nil {
			saw(&o)
		}
	}
	endGroup()
	_ = cmd.Wait() // what was said tells more
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case failed == nil && !some:
		return nil, fmt.Errorf("no test has run:\n%s", &said)
	}
	return failed, nil
}
