package suite

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	m := mutating{count: 300, seed: 1}
	asJSON := false
	c := &cobra.Command{
		Use:   "mutants [flags] PACKAGE...",
		Short: "Change the source at random, and list the changes that no test notices",
		Long: `Draws --count mutations of the source of Go packages that compile: another operator, a
constant one larger, a dropped statement, two swapped arguments. The tests of the mutated
package run on each, and if they pass those of --others; the first failure ends them, and a
test program is ended after three times as long as it takes, and a minute. A mutant that
fails is killed. Survivors are listed: what no test holds, or what makes no difference.
An interrupt ends the draw: what was judged before is printed. The source itself is not
changed.`,
		Example: `  tierflow-lab mutants --count 100 ./executor ./planner/choose
  tierflow-lab mutants --seed 7 --others ./... ./tasks`,
		Args: cobra.MinimumNArgs(1),
		RunE: kit.Interruptible(func(c *cobra.Command, packages []string) error {
			if m.count < 1 {
				return kit.Usagef("--count %d: want one or more", m.count)
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
	f.StringVar(&m.others, "others", "", "packages whose tests judge what a package's own let pass")
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
	count  int
	seed   uint64
	others string
	flags  []string
	tell   io.Writer
	dir    string                   // of the mutated file
	usual  map[string]time.Duration // of the tests of packages
}

// listed is what go list tells of a package.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
}

// run draws and judges. Files and sites are in order, so a seed gives the same mutants of the same source.
func (m *mutating) run(ctx context.Context, packages []string) (*Mutants, error) {
	sites, err := m.sites(ctx, packages)
	if err != nil {
		return nil, err
	}
	m.usual = map[string]time.Duration{}
	if m.dir, err = os.MkdirTemp("", "mutants"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(m.dir)
	all := &Mutants{Seed: m.seed}
	draw := rand.New(rand.NewPCG(m.seed, 0))
	draw.Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })
	for i := 0; i < len(sites) && len(all.Mutants) < m.count; i++ {
		mutant := Mutant{Mutation: sites[i]}
		began := time.Now()
		compiles, err := m.judge(ctx, &mutant)
		if ctx.Err() != nil && len(all.Mutants) > 0 {
			fmt.Fprintf(m.tell, "interrupted after %d of %d\n", len(all.Mutants), m.count)
			break
		}
		if err != nil {
			return nil, err
		}
		if !compiles {
			continue
		}
		all.Mutants = append(all.Mutants, mutant)
		fmt.Fprintf(m.tell, "%d of %d: %v: killed %t %s, %v\n", len(all.Mutants), m.count, &mutant.Mutation, mutant.Killed, mutant.By, time.Since(began).Round(100*time.Millisecond))
	}
	if len(all.Mutants) == 0 {
		return nil, fmt.Errorf("no mutation of %q compiles", packages)
	}
	return all, nil
}

// sites lists the mutations of packages.
func (m *mutating) sites(ctx context.Context, packages []string) (all []Mutation, err error) {
	out, err := goOutput(ctx, append([]string{"list", "-json=ImportPath,Dir,GoFiles"}, packages...))
	if err != nil {
		return nil, err
	}
	for in := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := in.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list %q: %s", packages, out)
		}
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

// judge tests a mutant.
func (m *mutating) judge(ctx context.Context, mutant *Mutant) (compiles bool, err error) {
	if m.usual[mutant.Package] == 0 {
		began := time.Now()
		by, failed, err := m.test(ctx, "", mutant.Package, 0)
		if err == nil && failed {
			err = fmt.Errorf("%s of %s fails without a mutation", by, mutant.Package)
		}
		if err != nil {
			return false, err
		}
		m.usual[mutant.Package] = time.Since(began)
	}
	overlay, err := m.write(&mutant.Mutation)
	if err != nil {
		return false, err
	}
	if out, err := goOutput(ctx, []string{"build", "-overlay", overlay, mutant.Package}); err != nil || len(out) > 0 {
		return false, err
	}
	mutant.By, mutant.Killed, err = m.test(ctx, overlay, mutant.Package, 3*m.usual[mutant.Package]+time.Minute)
	if err == nil && !mutant.Killed && m.others != "" {
		mutant.By, mutant.Killed, err = m.test(ctx, overlay, m.others, 0)
		mutant.Others = mutant.Killed
	}
	return true, err
}

// write makes the mutated file, and the overlay that puts it in the place of the other.
func (m *mutating) write(mutation *Mutation) (overlay string, err error) {
	source, err := os.ReadFile(mutation.path)
	if err != nil {
		return "", err
	}
	mutated := filepath.Join(m.dir, "mutated.go")
	if err := os.WriteFile(mutated, mutation.apply(source), 0o600); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {mutation.path: mutated}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(m.dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// test runs tests until one fails. limit 0 is an hour.
func (m *mutating) test(ctx context.Context, overlay, packages string, limit time.Duration) (by string, failed bool, err error) {
	words := []string{"test", "-json", "-failfast", "-count=1", "-timeout", cmp.Or(limit, time.Hour).String()}
	if overlay != "" {
		words = append(words, "-overlay", overlay)
	}
	out, err := goOutput(ctx, slices.Concat(words, m.flags, []string{packages}))
	if err != nil {
		return "", false, err
	}
	some := false
	for _, o := range outcomes(out) {
		if some = true; o.failed {
			return cmp.Or(o.Test, o.Package), true, nil
		}
	}
	if !some {
		return "", false, fmt.Errorf("no test has run:\n%s", out)
	}
	return "", false, nil
}
