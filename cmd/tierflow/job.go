package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
)

// job is where ranks come from: goroutines of this process, or the processes of a
// launched job, of which this one is a rank.
type job interface {
	// Topology is where all ranks are.
	Topology() *levels.Topology
	// Local makes a communicator that runs with the given plans, in the grammar of
	// planner.Options.Plan, and returns the ends of this process's ranks.
	Local(plan string) ([]*planner.Comm, error)
	// String says what kind of ranks and links these are.
	String() string
}

// goroutines is the job whose ranks are all in this process.
type goroutines struct {
	topology *levels.Topology
	link     *link
	table    string // of decisions; empty: the environment's
	hooks    trace.Hooks
}

var _ job = goroutines{}

// Topology is the one that was asked for.
func (g goroutines) Topology() *levels.Topology { return g.topology }

// Local makes a world of its own for each communicator.
func (g goroutines) Local(plan string) ([]*planner.Comm, error) {
	return planner.LocalOn(g.topology, &planner.Options{Plan: plan, Table: g.table, Hooks: g.hooks, Link: g.link.shaper(g.topology)})
}

// String is for headers.
func (g goroutines) String() string {
	return fmt.Sprintf("%v: %s; %v", g.topology, ranksOn(g.topology), g.link)
}

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
		if p.command.Flags().Changed(flag) {
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

func ranksOn(t *levels.Topology) string {
	return fmt.Sprintf("%d goroutine rank%s on %d node%s", t.Size(), plural(t.Size()), t.Nodes(), plural(t.Nodes()))
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// runRanks makes one communicator for each plan and calls f once for each rank of
// this process, with that rank's ends in the order of plans. It closes them, and
// returns the first error.
func runRanks(ctx context.Context, j job, plans []string, f func(ctx context.Context, comms []*planner.Comm) error) error {
	ends := map[int][]*planner.Comm{} // by rank
	var first []*planner.Comm
	for i, plan := range plans {
		local, err := j.Local(plan)
		if err != nil {
			closeAll(ends)
			return err
		}
		if i == 0 {
			first = local
		}
		for _, c := range local {
			ends[c.Rank()] = append(ends[c.Rank()], c)
		}
	}
	defer closeAll(ends)
	return planner.Each(ctx, first, func(ctx context.Context, c *planner.Comm) error {
		// Whoever fails leaves all communicators, so that nobody waits for it in
		// another one than the first.
		defer closeEnds(ends[c.Rank()][1:])
		return f(ctx, ends[c.Rank()])
	})
}

func closeAll(ends map[int][]*planner.Comm) {
	for _, comms := range ends {
		closeEnds(comms)
	}
}

// closeEnds drops errors: what a failed communicator says at its end has been
// said before.
func closeEnds(comms []*planner.Comm) {
	for _, c := range comms {
		_ = c.Close()
	}
}
