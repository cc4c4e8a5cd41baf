package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/check"
	"github.com/tierflow/tierflow/submodules/check/casegen"
	"github.com/tierflow/tierflow/tasks"
)

// maxSteps bounds a case: a larger one is no better a test, and takes as long as a
// hundred small ones.
const maxSteps = 50_000

// checker checks cases.
type checker struct {
	reg      submodules.Registry
	maxRanks int
}

// outcome is the result of one case.
type outcome struct {
	steps  int
	reason string // for skipping it
	err    error  // why it is wrong
}

// checkAll checks n cases on all CPUs. failure is the error of the smallest wrong
// case; err is a cancelled context. Apart from the time, the results depend on the
// cases only. The bar shows how many are checked.
func (c *checker) checkAll(ctx context.Context, n int, at func(i int) casegen.Case, bar *kit.Progress) (report verification, failure, err error) {
	begin := time.Now()
	outcomes := make([]outcome, n)
	var ended atomic.Int64
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		g.Go(func() error {
			if ctx.Err() == nil {
				outcomes[i] = c.checkOne(at(i))
				bar.Show(ended.Add(1), int64(n))
			}
			return ctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return report, nil, err
	}
	report = verification{Cases: n, Skipped: map[string]int{}}
	var wrong []casegen.Case
	for i, o := range outcomes {
		switch {
		case o.err != nil:
			report.Failed++
			wrong = append(wrong, at(i))
		case o.reason != "":
			report.Skipped[o.reason]++
			continue
		}
		report.Checked++
		report.Steps += int64(o.steps)
	}
	if wrong != nil {
		small := c.findSmallest(wrong)
		failure = c.checkOne(small).err
		report.Failure = &failureReport{repeatCommand(small), failure.Error()}
	}
	report.Seconds = time.Since(begin).Seconds()
	return report, failure, nil
}

// checkOne checks a case. A panic is a failure.
func (c *checker) checkOne(k casegen.Case) (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			o.err = fmt.Errorf("%v: panicked: %v\n%s", k, p, debug.Stack())
		}
	}()
	err := c.checkCase(k, &o)
	switch {
	case errors.Is(err, check.ErrTooLarge):
		o.reason = "too large"
	case errors.Is(err, submodules.ErrUnsupported):
		o.reason = "unsupported"
	case errors.Is(err, tasks.ErrPlan):
		o.reason = "not for this request"
	default:
		o.err = err
	}
	return o
}

// checkCase compiles and checks a case, and notes its steps in o.
func (c *checker) checkCase(k casegen.Case, o *outcome) error {
	if n := k.Topology.Size(); n > c.maxRanks {
		return fmt.Errorf("%w: %d ranks, at most %d, see --max-ranks", check.ErrTooLarge, n, c.maxRanks)
	}
	report, err := check.Request(k.Request, k.Topology, k.Plan, c.reg, maxSteps)
	o.steps = report.Steps
	if errors.Is(err, check.ErrTooLarge) {
		err = fmt.Errorf("%w, and no flag raises that: give fewer bytes or larger segments", err)
	}
	return err
}

// firstSkip returns why the first case was skipped, or nil.
func (c *checker) firstSkip(n int, at func(int) casegen.Case) error {
	if n == 0 {
		return errors.New("there are no cases")
	}
	return c.checkCase(at(0), new(outcome))
}

// findSmallest takes the failure of the fewest ranks and bytes, the first of equals,
// and removes from it what it fails without.
func (c *checker) findSmallest(wrong []casegen.Case) casegen.Case {
	first := slices.MinFunc(wrong, func(a, b casegen.Case) int {
		return cmp.Or(cmp.Compare(a.Topology.Size(), b.Topology.Size()), cmp.Compare(a.Request.Bytes(), b.Request.Bytes()))
	})
	return casegen.Minimize(first, func(k casegen.Case) bool { return c.checkOne(k).err != nil })
}
