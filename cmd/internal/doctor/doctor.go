package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/levels/join"
)

// doctor is the command doctor.
type doctor struct {
	expect []string      // --expect
	limit  time.Duration // --time
	json   bool

	slowest slowest // by level's symbol
	stdout  io.Writer
}

// Command returns doctor.
func Command() *cobra.Command {
	d := &doctor{}
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say whether a job can run here, and what is wrong",
		Long: `Examines the job that this process was started in, or this host if it is in none.
From each rank: who started it, which addresses it offers, versions, limits, clocks,
CPUs that it is bound to, congestion control, whether ranks of a node may read each
other's memory. Every pair of ranks connects in both directions, sends small and large
packets, and measures latency and bandwidth over the links that collectives use.

Rank 0 prints the verdict first. Problems keep a job from running, or make a pair
slower than expected: 100us and 2gbit inside a node, 1ms and 400mbit between nodes,
500ms and 10mbit between sites, unless --expect says otherwise. Nine tenths of a rate
are enough. Warnings make a job slower than it could be. Rank 0's exit status is 1 if
there are problems.`,
		Example: `  tierflow doctor
  tierflow run -n 4 -- tierflow doctor
  tierflow run --hosts a:4,b:4 -- tierflow doctor --expect i=10gbit,50us
  mpiexec -n 4 tierflow doctor --json`,
		Args: kit.NoOperands,
		RunE: kit.Interruptible(func(c *cobra.Command, _ []string) error {
			var err error
			if d.slowest, err = readSlowest(d.expect); err != nil {
				return err
			}
			if d.limit <= 0 || d.limit > time.Hour {
				return kit.Usagef("--time %v: give a time up to 1h", d.limit)
			}
			d.stdout = c.OutOrStdout()
			return d.run(c.Context())
		}),
	}
	f := c.Flags()
	f.StringArrayVar(&d.expect, "expect", nil, "slowest link that is well, by level: i=10gbit,50us; may be given several times")
	f.DurationVar(&d.limit, "time", 3*time.Second, "how long pairs are measured at most; what is left is said")
	f.BoolVar(&d.json, "json", false, "print JSON")
	return c
}

// run examines and prints.
func (d *doctor) run(ctx context.Context) error {
	began := time.Now()
	cfg, err := join.FromEnv(os.Getenv)
	if err != nil {
		return d.reportAlone(began, &cfg, fmt.Errorf("the environment: %w", err))
	}
	if cfg.Size <= 1 {
		return d.reportAlone(began, &cfg, nil)
	}
	cfg.Log = nil
	job, err := join.Join(ctx, cfg)
	if err != nil {
		return d.reportAlone(began, &cfg, err)
	}
	e := &examination{job: job, began: began, limit: d.limit}
	e.self = factsOf(&cfg, job)
	e.self.Joined = time.Since(began)
	err = e.examine(ctx)
	if job.Rank == 0 || err != nil {
		err = d.print(e.report(d.slowest, err))
	}
	return errors.Join(err, e.close(ctx))
}

// reportAlone reports on a rank without a job, or unable to enter its job.
func (d *doctor) reportAlone(began time.Time, cfg *join.Config, err error) error {
	e := &examination{began: began}
	e.self = factsOf(cfg, nil)
	e.all = []*facts{e.self}
	return d.print(e.report(d.slowest, err))
}

// print prints in one write. Problems are the error.
func (d *doctor) print(r *report) error {
	if err := kit.WriteResult(d.stdout, d.json, r, func() []byte { return r.text(d.stdout) }); err != nil {
		return err
	}
	if n := len(r.Problems); n > 0 {
		return fmt.Errorf("%d problem%s", n, kit.Plural(n))
	}
	return nil
}
