package suite

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/labkit"
)

// Flaky is a test that failed in some of the runs.
type Flaky struct {
	Package string  `json:"package"`
	Test    string  `json:"test,omitempty"` // empty: the package itself: it didn't build, or its time was over
	Fails   int     `json:"fails"`
	Runs    int     `json:"runs"`
	Most    float64 `json:"most_seconds"` // of its runs
	Output  string  `json:"output"`       // of its first failure, the last lines
}

// Flakes is what came of some runs.
type Flakes struct {
	Runs    int       `json:"runs"`
	Load    int       `json:"load"`
	Tests   int       `json:"tests"`   // of the last run, those in others not counted
	Seconds []float64 `json:"seconds"` // of each run
	Flaky   []Flaky   `json:"flaky"`   // most failures first
}

// FlakesCommand returns flakes.
func FlakesCommand() *cobra.Command {
	runs, load, limit, asJSON := 20, 8, time.Hour, false
	var flags []string
	c := &cobra.Command{
		Use:   "flakes [flags] [PACKAGE...]",
		Short: "Run tests again and again on a busy machine, and list those that fail",
		Long: `Runs the tests of Go packages (default those of the folder's module or workspace) --runs
times, each time from new, beside --load threads that use a processor at the usual
priority. A test that fails in any run is listed, with its failures and the end of what
its first one has printed. The exit status is 1 then. After an interrupt the tests that
have ended count.`,
		Example: `  tierflow-lab flakes --runs 20 --load 8
  tierflow-lab flakes --runs 5 --flag=-race --flag=-short ./executor ./planner`,
		RunE: kit.Interruptible(func(c *cobra.Command, packages []string) error {
			if runs < 1 || load < 0 || limit <= 0 {
				return kit.Usagef("--runs %d, --load %d, --timeout %v: want a run or more, no thread or more, and some time", runs, load, limit)
			}
			if len(packages) == 0 {
				packages = []string{"work"} // the go command's name for all of them
			}
			words := slices.Concat([]string{"test", "-json", "-count=1", "-timeout", limit.String()}, flags, packages)
			all, err := runAgain(c.Context(), words, runs, load, func(run int, took time.Duration, failed int) {
				fmt.Fprintf(c.ErrOrStderr(), "run %d of %d: %v, %d failures\n", run, runs, took.Round(time.Second), failed)
			})
			if err != nil {
				return err
			}
			if err := labkit.Print(c.OutOrStdout(), asJSON, all, labkit.Right, all.print); err != nil {
				return err
			}
			if len(all.Flaky) > 0 {
				return fmt.Errorf("%d tests have failed", len(all.Flaky))
			}
			return nil
		}),
	}
	f := c.Flags()
	f.IntVar(&runs, "runs", runs, "how often the tests run")
	f.IntVar(&load, "load", load, "threads that use a processor meanwhile")
	f.DurationVar(&limit, "timeout", limit, "of the tests of one package")
	f.StringArrayVar(&flags, "flag", nil, "one more flag of go test; may be repeated")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// print writes a line for each test, and then their outputs.
func (a *Flakes) print(w io.Writer) {
	fmt.Fprintf(w, "%d tests, %d runs beside %d busy threads, %.0f to %.0f s each\n", a.Tests, a.Runs, a.Load, slices.Min(a.Seconds), slices.Max(a.Seconds))
	if len(a.Flaky) == 0 {
		fmt.Fprintln(w, "no failure")
		return
	}
	fmt.Fprintln(w, "failures\truns\tmost s\t test")
	for _, f := range a.Flaky {
		fmt.Fprintf(w, "%d\t%d\t%.1f\t %s %s\n", f.Fails, f.Runs, f.Most, f.Package, f.Test)
	}
	for _, f := range a.Flaky {
		fmt.Fprintf(w, "\n=== %s %s\n%s", f.Package, f.Test, f.Output)
	}
}

// runAgain runs go with words that many times, and tells of each run.
func runAgain(ctx context.Context, words []string, runs, load int, tell func(run int, took time.Duration, failed int)) (*Flakes, error) {
	defer keepBusy(load)()
	all, seen := &Flakes{Load: load}, tests{}
	for all.Runs < runs && ctx.Err() == nil {
		began := time.Now()
		out, err := goOutput(ctx, words)
		if err != nil && ctx.Err() == nil {
			return nil, err
		}
		failed := 0
		all.Tests, failed = seen.note(outcomes(out))
		if len(seen) == 0 {
			return nil, fmt.Errorf("go %q has run no test:\n%s", words, out)
		}
		all.Runs++
		all.Seconds = append(all.Seconds, time.Since(began).Seconds())
		tell(all.Runs, time.Since(began), failed)
	}
	if all.Runs == 0 {
		return nil, context.Cause(ctx)
	}
	all.Flaky = seen.flaky()
	return all, nil
}

// tests are the tests of all runs, by package and name.
type tests map[[2]string]*Flaky

// note counts a run.
func (t tests) note(run []outcome) (ran, failed int) {
	for _, o := range run {
		key := [2]string{o.Package, o.Test}
		if t[key] == nil {
			t[key] = &Flaky{Package: o.Package, Test: o.Test}
		}
		f := t[key]
		f.Runs, f.Most = f.Runs+1, max(f.Most, o.Elapsed)
		if o.Test != "" {
			ran++
		}
		if !o.failed {
			continue
		}
		if failed++; f.Fails == 0 {
			f.Output = o.output
		}
		f.Fails++
	}
	return ran, failed
}

// flaky returns those that failed, most failures first.
func (t tests) flaky() (all []Flaky) {
	for _, f := range t {
		if f.Fails > 0 {
			all = append(all, *f)
		}
	}
	slices.SortFunc(all, func(a, b Flaky) int {
		return cmp.Or(cmp.Compare(b.Fails, a.Fails), cmp.Compare(a.Package, b.Package), cmp.Compare(a.Test, b.Test))
	})
	return all
}

// goOutput runs go and returns what it printed, so far if there is an error. A failing test is none.
func goOutput(ctx context.Context, words []string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", words...)
	cmd.WaitDelay = 10 * time.Second // for what a test has left running
	out, err := cmd.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && (!failed || ctx.Err() != nil) {
		return out, fmt.Errorf("go %q: %w", words, cmp.Or(context.Cause(ctx), err))
	}
	return out, nil
}

// keepBusy uses processors until stop is called.
func keepBusy(threads int) (stop func()) {
	before := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(before + threads)
	var all sync.WaitGroup
	var ended atomic.Bool
	for range threads {
		all.Go(func() {
			for !ended.Load() {
			}
		})
	}
	return func() {
		ended.Store(true)
		all.Wait()
		runtime.GOMAXPROCS(before)
	}
}

// outcome is the end of a test, or of a package.
type outcome struct {
	Action, Package, Test, Output string
	ImportPath                    string // of a package that is built
	Elapsed                       float64
	failed                        bool
	output                        string // of a failure, the last lines
}

// mostOutput is how many last lines of a failure are kept.
const mostOutput = 60

// outcomes reads what go test -json prints, or other lines. A package counts as failed only if none of its tests does. A
// subtest is part of its test.
func outcomes(text []byte) (all []outcome) {
	said, failing := map[[2]string][]string{}, map[string]bool{}
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	lines.Buffer(nil, len(text)+1)
	for lines.Scan() {
		var o outcome
		if json.Unmarshal(lines.Bytes(), &o) != nil {
			continue
		}
		if o.Action == "build-output" {
			o.Package, _, _ = strings.Cut(o.ImportPath, " ")
		}
		name, _, sub := strings.Cut(o.Test, "/")
		key := [2]string{o.Package, name}
		switch o.Action {
		case "output", "build-output":
			if kept := append(said[key], o.Output); len(kept) > 2*mostOutput {
				said[key] = kept[mostOutput:]
			} else {
				said[key] = kept
			}
		case "pass", "fail":
			if sub {
				continue
			}
			o.failed = o.Action == "fail" && (o.Test != "" || !failing[o.Package])
			if o.failed {
				failing[o.Package] = true
				kept := said[key]
				o.output = strings.Join(kept[max(0, len(kept)-mostOutput):], "")
			}
			delete(said, key)
			all = append(all, o)
		}
	}
	return all
}
