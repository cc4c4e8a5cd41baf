package kit

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/tierflow/tierflow/levels"
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

// RunSealed is RunOnJob with two jobs of the launched processes: one without TLS, and p.Sealed
// with it.
func (p *Problem) RunSealed(ctx context.Context, tls string, stdout, stderr io.Writer, f func(stdout, stderr io.Writer) error) error {
	if !IsLaunched() {
		return Usagef("--tls: goroutine ranks have no connections; start processes with tierflow run")
	}
	plain, out, notes, err := p.join(ctx, "off", stdout, stderr)
	if err != nil {
		return err
	}
	p.Job = plain
	sealed, _, _, err := p.join(ctx, tls, stdout, stderr)
	if err != nil {
		return errors.Join(err, plain.world.Close())
	}
	p.Sealed = sealed
	return errors.Join(f(out, notes), sealed.world.Close(), plain.world.Close())
}

// join enters the launched job of this process.
func (p *Problem) join(ctx context.Context, tls string, stdout, stderr io.Writer) (j launched, out, notes io.Writer, err error) {
	for _, flag := range []string{"topo", "link"} {
		if p.IsGiven(flag) {
			return j, nil, nil, Usagef("--%s: this process is a rank of a launched job, whose topology and links are real", flag)
		}
	}
	return joinJob(ctx, &planner.Options{Table: p.Table, TLS: tls, Managed: isManaged()}, stdout, stderr)
}

// SplitRanks returns the communicator of some ranks of c; nil on the others. All ranks of c call it.
func SplitRanks(ctx context.Context, c *planner.Comm, ranks []levels.Rank) (*planner.Comm, error) {
	color := planner.NoColor
	if slices.Contains(ranks, levels.Rank(c.Rank())) {
		color = 0
	}
	return c.Split(ctx, color, c.Rank())
}

// RunOnJob sets p.Job to a job of goroutines or to the launched one, and calls f with writers
// that print on rank 0 only.
func (p *Problem) RunOnJob(ctx context.Context, stdout, stderr io.Writer, f func(stdout, stderr io.Writer) error) error {
	if !IsLaunched() {
		g, err := p.ReadGoroutines()
		if err != nil {
			return err
		}
		p.Job = g
		return f(stdout, stderr)
	}
	j, stdout, stderr, err := p.join(ctx, "", stdout, stderr)
	if err != nil {
		return err
	}
	p.Job = j
	return errors.Join(f(stdout, stderr), j.world.Close())
}
