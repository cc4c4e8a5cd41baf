package main

import (
	"context"
	"errors"
	"io"

	"github.com/tierflow/tierflow/planner"
)

// goroutines is the job that --topo, --link and --table ask for.
func (p *problem) goroutines() (g goroutines, err error) {
	if g.topology, err = p.topology(); err != nil {
		return g, err
	}
	if g.link, err = parseLink(p.link, g.topology); err != nil {
		return g, usagef("--link: %w", err)
	}
	g.table = p.table
	return g, p.checkTable()
}

// onJob makes the job of goroutines, or joins the launched one, and calls f, whose
// writers are for rank 0.
func (p *problem) onJob(ctx context.Context, stdout, stderr io.Writer, f func(stdout, stderr io.Writer) error) error {
	if !isLaunched() {
		g, err := p.goroutines()
		if err != nil {
			return err
		}
		p.job = g
		return f(stdout, stderr)
	}
	for _, flag := range []string{"topo", "link"} {
		if p.isGiven(flag) {
			return usagef("--%s: this process is a rank of a launched job, whose topology and links are real", flag)
		}
	}
	j, stdout, stderr, err := joinJob(ctx, &planner.Options{Table: p.table}, stdout, stderr)
	if err != nil {
		return err
	}
	p.job = j
	return errors.Join(f(stdout, stderr), j.world.Close())
}
