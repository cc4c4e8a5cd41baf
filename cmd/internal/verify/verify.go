package verify

import (
	"context"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/check/casegen"
	"github.com/tierflow/tierflow/tasks"
)

// verifying is the command verify.
type verifying struct {
	kit.Problem
	random   int    // --random: number of cases to draw; 0: list them
	seed     uint64 // --seed of the drawn cases
	maxRanks int    // --max-ranks of a case
	inPlace  bool   // --in-place
	ordered  bool   // --non-commutative
	json     bool   // --json: print JSON

	reg    submodules.Registry
	colls  []tasks.Collective
	on     *levels.Topology // nil: drawn
	forced tasks.Forced
}

// Command returns verify.
func Command(reg submodules.Registry) *cobra.Command {
	v := &verifying{reg: reg}
	c := &cobra.Command{
		Use:   "verify OP|all",
		Short: "Prove compiled collectives right without running them",
		Long: `Compiles a collective (` + kit.AnyOf(tasks.Requestable()) + `),
or all of them, for all ranks and checks the programs symbolically: every send
meets its recv, nothing can deadlock even without buffering, no two steps touch the same
bytes in no order, and in the end every rank holds what the collective says. Task
graphs are built again by another graph library, and compared. No bytes are moved.

By default it checks every combination of the algorithms there are, for each level,
with some segment sizes, windows and shapes, on one machine (--plan all): tens of
thousands of cases and a minute for two levels. With another --plan, or --table, it
checks what is chosen with that. --random draws machines, requests
and plans; the same seed draws the same cases. What a plan or an algorithm doesn't
allow is skipped and counted, as are cases of more ranks than --max-ranks, or of more
than 50000 steps on all ranks: fewer bytes or larger segments (fs=) make them fewer.

When a case fails the smallest one found is printed as a command that repeats it,
and the exit status is 1.`,
		Example: `  tierflow verify allreduce --topo 4x2
  tierflow verify all --plan all --random 5000
  tierflow verify all --random 2000 --seed 7 --max-ranks 16
  tierflow verify allgather --topo 2x2 --counts 1,0,3,100
  tierflow verify bcast --topo 3x2/rr --bytes 4000 --root 3 --plan i=adapt/chain,s=sm,fs=1000`,
		Args: kit.Operand(kit.WhichCollective + "; or all"),
		RunE: kit.Checked(v.read, v.run),
	}
	v.AddTopoFlag(c, "4x2")
	f := c.Flags()
	f.StringVar(&v.Bytes, "bytes", "0,4,400", "sizes of a rank's buffer")
	v.AddCountsFlag(c)
	f.StringVar(&v.Type, "dtype", "i32", "element type")
	f.IntVar(&v.Root, "root", 0, kit.RootText+" (default the first and the last rank)")
	f.BoolVar(&v.inPlace, "in-place", false, "send from the receive buffer (default both)")
	f.BoolVar(&v.ordered, "non-commutative", false, "reduce with an operation that keeps the order of ranks (default both)")
	v.AddPlanFlag(c, kit.PlanText+", or all")
	v.AddTableFlag(c)
	f.IntVar(&v.random, "random", 0, "check this many random cases")
	f.Uint64Var(&v.seed, "seed", 1, "seed of the random cases")
	f.IntVar(&v.maxRanks, "max-ranks", 64, "most ranks of a case")
	f.BoolVar(&v.json, "json", false, "print JSON")
	return c
}

// read checks all arguments.
func (v *verifying) read(args []string) (err error) {
	if v.colls = tasks.Requestable(); args[0] != "all" {
		c, err := kit.ParseCollective(args[0])
		if err != nil {
			return kit.Usagef("%w, or all", err)
		}
		v.colls = []tasks.Collective{c}
	}
	if v.maxRanks < 1 || v.maxRanks > levels.MaxRanks {
		return kit.Usagef("--max-ranks %d: allowed are 1 to %d", v.maxRanks, levels.MaxRanks)
	}
	if v.Plan == "all" {
		if err := v.CheckExclusive("plan", "table"); err != nil {
			return err
		}
	} else {
		if v.forced, err = v.Problem.ReadForced(v.reg); err != nil {
			return err
		}
		if err := v.CheckTable(); err != nil {
			return err
		}
	}
	if v.IsGiven("random") {
		return v.readRandom()
	}
	if v.IsGiven("seed") {
		return kit.Usagef("--seed: only --random draws cases")
	}
	if v.Counts != "" {
		if err := v.CheckFlags(v.colls...); err != nil {
			return err
		}
	}
	v.on, err = v.ReadTopology()
	return err
}

// readRandom checks the flags that go with --random.
func (v *verifying) readRandom() (err error) {
	if v.random < 1 {
		return kit.Usagef("--random %d: check at least one case", v.random)
	}
	for _, name := range []string{"bytes", "counts", "dtype", "root", "in-place", "non-commutative", "table"} {
		if v.IsGiven(name) {
			return kit.Usagef("--%s: with --random it is drawn", name)
		}
	}
	if v.IsGiven("topo") {
		v.on, err = v.ReadTopology()
	}
	return err
}

// chooseCases returns the number of cases to check, and the i-th.
func (v *verifying) chooseCases(ctx context.Context) (n int, at func(i int) casegen.Case, err error) {
	if v.random > 0 {
		return v.random, v.drawCase, nil
	}
	all, err := v.listCases(ctx)
	return len(all), func(i int) casegen.Case { return all[i] }, err
}

func (v *verifying) run(ctx context.Context, stdout, stderr io.Writer) error {
	n, at, err := v.chooseCases(ctx)
	if err != nil {
		return err
	}
	checker := checker{reg: v.reg, maxRanks: v.maxRanks}
	bar := kit.NewProgress(stderr, "checking", fmt.Sprintf("checking %d cases of up to %d steps, %d beside each other", n, maxSteps, runtime.GOMAXPROCS(0)))
	report, failure, err := checker.checkAll(ctx, n, at, bar)
	bar.Finish()
	if err != nil {
		return err
	}
	if v.random > 0 {
		report.Seed = &v.seed
	}
	if err := kit.WriteResult(stdout, v.json, report, report.text); err != nil {
		return err
	}
	switch {
	case failure != nil:
		return fmt.Errorf("%d of %d cases fail; the smallest found:\n  %s\n%w", report.Failed, report.Cases, report.Failure.Command, failure)
	case report.Checked == 0:
		return fmt.Errorf("nothing was checked: %w", checker.firstSkip(n, at))
	}
	return nil
}
