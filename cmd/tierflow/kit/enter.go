package kit

import (
	"context"
	"errors"
	"io"

	"github.com/tierflow/tierflow/planner"
)

// ReadGoroutines is the job that --topo, --link and --table ask for.
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

// RunOnJob makes the job of goroutines, or joins the launched one, and calls f, whose
// writers are for rank 0.
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
