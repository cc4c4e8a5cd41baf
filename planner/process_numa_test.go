package planner_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// Ranks that say they are bound to NUMA domains make a job of three levels, and
// collectives go over all of them.
func TestProcessesThreeLevels(t *testing.T) {
	const n = 8
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for _, plan := range []string{"", "m=solo,s=sm,fs=64KiB,w=2", "m=sm,s=adapt/chain,i=nbc/binomial"} {
		t.Run(plan, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			comms := make([]*planner.Comm, n)
			var g errgroup.Group
			for r := range n {
				g.Go(func() (err error) {
					cfg := join.Config{
						Rank: levels.Rank(r), Size: n, Rendezvous: []string{l.Addr().String()}, Secret: "a test",
						Node: fmt.Sprintf("node%d", r/4), NUMA: fmt.Sprintf("numa%d", r/2%2),
					}
					if r == 0 {
						cfg.Listener = l
					}
					comms[r], err = planner.JoinAs(ctx, cfg, &planner.Options{Plan: plan})
					return err
				})
			}
			if err := g.Wait(); err != nil {
				t.Fatal(err)
			}
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
	for _, n := range []int{1, 300_001} {
		send, recv := make([]int64, n), make([]int64, n)
		for i := range send {
			send[i] = int64(i + c.Rank())
		}
		sum, err := planner.Allreduce(c, send, recv, tasks.Sum)
		if err != nil {
			return err
		}
		for range 2 {
			clear(recv)
			if err := sum.Run(ctx); err != nil {
				return err
			}
			p := int64(c.Size())
			for i, got := range recv {
				if want := p*int64(i) + p*(p-1)/2; got != want {
					return fmt.Errorf("element %d of %d: %d, want %d", i, n, got, want)
				}
			}
		}
	}
	return nil
}
