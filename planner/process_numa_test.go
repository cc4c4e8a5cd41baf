package planner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// Ranks that say they are bound to NUMA domains make a job of three levels, and
// collectives go over all of them.
func TestProcessesThreeLevels(t *testing.T) {
	for _, plan := range []string{"", "m=solo,s=sm,fs=64KiB,w=2", "m=sm,s=adapt/chain,i=nbc/binomial"} {
		t.Run(plan, func(t *testing.T) {
			comms := joinPlaced(t, 8, &planner.Options{Plan: plan}, func(r int, cfg *join.Config) {
				cfg.Node, cfg.NUMA = fmt.Sprintf("node%d", r/4), fmt.Sprintf("numa%d", r/2%2)
			})
			for r, err := range each(comms, sumsOverThreeLevels) {
				if err != nil {
					t.Errorf("rank %d: %v", r, err)
				}
			}
			closeAll(t, comms)
		})
	}
}

func sumsOverThreeLevels(ctx context.Context, c *planner.Comm) error {
	if top := c.Topology(); top.Depth() != 3 || top.Nodes() != 2 || top.Domains(0) != 4 || top.Level(0).Symbol != 'm' {
		return fmt.Errorf("topology %v, want 2x2x2", top)
	}
	return allreduces(ctx, c)
}

// Processes on machines of three and four levels, with groups of unequal size, run
// every collective by each submodule on all levels that it reaches, segments
// overlapping.
func TestProcessesDeepMachines(t *testing.T) {
	for _, machine := range []string{ // levels; NUMA domain, node and site of each rank
		"msi: 0/a 0/a 1/a 0/a 0/b 0/c 1/c",
		"msi: 0/a 0/a 1/a 1/a 0/b 0/c 1/c", // node by node
		"msiw: 0/a/east 0/a/east 1/a/east 0/b/east 0/c/west 0/a/east 1/c/west 0/c/west",
	} {
		symbols, places, _ := strings.Cut(machine, ":")
		ranks := strings.Fields(places)
		for _, s := range all.Submodules() {
			plan := fmt.Sprintf("shape=han,fs=128B,w=3,w=adapt,i=adapt,s=%[1]s,m=%[1]s", s.Name())
			if s.Reach() == submodules.Anywhere {
				plan = fmt.Sprintf("shape=han,fs=128B,w=3,w=%[1]s,i=%[1]s,s=%[1]s,m=%[1]s", s.Name())
			}
			t.Run(symbols+"/"+s.Name(), func(t *testing.T) {
				comms := joinPlaced(t, len(ranks), &planner.Options{Plan: plan}, func(r int, cfg *join.Config) {
					at := append(strings.Split(ranks[r], "/"), "")
					cfg.NUMA, cfg.Node, cfg.Site = at[0], at[1], at[2]
				})
				for r, err := range each(comms, func(ctx context.Context, c *planner.Comm) error { return runDeep(ctx, c, symbols) }) {
					if err != nil {
						t.Errorf("rank %d: %v", r, err)
					}
				}
				closeAll(t, comms)
			})
		}
	}
}

// runDeep runs all collectives on a topology with levels of these symbols.
func runDeep(ctx context.Context, c *planner.Comm, symbols string) error {
	got := ""
	for k := range c.Topology().Depth() {
		got += string(c.Topology().Level(k).Symbol)
	}
	if got != symbols {
		return fmt.Errorf("the levels are %s, want %s", got, symbols)
	}
	for _, coll := range tasks.Requestable() {
		r := tasks.Request{Coll: coll}
		if coll != tasks.Barrier {
			r.Count, r.Type = 150, tasks.Int32
		}
		if r.Rooted() {
			r.Root = 3
		}
		if r.Reduces() {
			r.Op = tasks.Sum
		}
		if err := runAny(ctx, c, r); err != nil && !((r.Blocks() || coll.Scans()) && (errors.Is(err, submodules.ErrUnsupported) || errors.Is(err, tasks.ErrPlan))) {
			return fmt.Errorf("%v: %w", r, err)
		}
	}
	return nil
}
