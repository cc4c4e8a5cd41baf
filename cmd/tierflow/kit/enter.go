package kit

import (
	"context"
	"errors"
	"io"

	"github.com/tierflow/tierflow/planner"
)

// ReadGoroutines returns the job for --topo, --link and --table.
func (p *Problem) ReadGoroutines() (g Goroutines, err error) {
	if g.topology, err = p.ReadTopology(); err != nil {
		return g, err
	}
	if g.link, err = parseLink(p.Link, g.topology); err != nil {
		return g, Usagef("--link: %w", err)
	}
	g.table = p.Table
	return g, p.CheckTable()
}

// RunOnJob sets p.Job to a job of goroutines or to the launched one, and calls f. The
// writers that f gets print on rank 0 only.
func (p *Problem) RunOnJob(ctx context.Context, stdout, stderr io.Writer, f func(stdout, stderr io.Writer) error) error {
	if !IsLaunched() {
		g, err := p.ReadGoroutines()
		if err != nil {
			return err
		}
		p.Job = g
		return f(stdout, stderr)
	}
	for _, flag := range []string{"topo", "link"} {
		if p.IsGiven(flag) {
			return Usagef("--%s: this process is a rank of a launched job, whose topology and links are real", flag)
		}
	}
	j, stdout, stderr, err := joinJob(ctx, &planner.Options{Table: p.Table}, stdout, stderr)
	if err != nil {
		return err
	}
	p.Job = j
	return errors.Join(f(stdout, stderr), j.world.Close())
}
