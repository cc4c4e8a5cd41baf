package adapt_test

import (
	"fmt"
	"testing"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/internal/adapt"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// program compiles one task of eight ranks, led by rank 2, in pieces of 64 bytes.
func program(t *testing.T, op tasks.Collective, algorithm string, rank levels.Rank, pieces int64) *submodules.Program {
	t.Helper()
	topo := tasktest.Topology(t, "8")
	shape := "flat"
	r := tasks.Request{Coll: op, Root: 2, Type: tasks.Uint8, Count: 64 * pieces, Op: tasks.Sum}
	if op == tasks.Allreduce {
		shape = "ar"
		r.Count *= 8 // each rank's shard has as many pieces
	}
	p := tasktest.Plan(t, "shape="+shape+",fs=all,w=1,s=adapt/"+algorithm+"/64")
	prog, err := submodules.CompileFor(r, topo.Flat(2), p, rank, submodules.Registry{adapt.Adapt{}})
	if err != nil {
		t.Fatal(err)
	}
	return prog
}

// each runs a test for all algorithms, operations and ranks.
func each(t *testing.T, pieces int64, test func(t *testing.T, op tasks.Collective, p *submodules.Program)) {
	for _, a := range (adapt.Adapt{}).Algorithms() {
		for _, op := range a.Ops {
			for rank := range levels.Rank(8) {
				t.Run(fmt.Sprintf("%s/%v/r%d", a.Name, op, rank), func(t *testing.T) {
					test(t, op, program(t, op, a.Name, rank, pieces))
				})
			}
		}
	}
}

// TestInFlight: of what comes from a rank at most MaxReceives are posted, of what
// goes to a rank at most MaxSends are on their way; and as many may be.
func TestInFlight(t *testing.T) {
	each(t, 12, func(t *testing.T, _ tasks.Collective, p *submodules.Program) {
		for _, peer := range p.Peers {
			for _, flow := range []struct {
				steps []dag.ID
				most  int
			}{{peer.In, adapt.MaxReceives}, {peer.Out, adapt.MaxSends}} {
				// A half of the message, split in two, has half of the pieces; a ring
				// takes seven ranks' parts from one of them, an allreduce twice.
				if n := len(flow.steps); n != 12 && n != 6 && n != 7*12 && n != 14*12 && n != 0 {
					t.Fatalf("%d messages between %d and %d", len(flow.steps), p.Rank, peer.Rank)
				}
				for i := flow.most; i < len(flow.steps); i++ {
					if !p.Reaches([][2]dag.ID{{flow.steps[i-flow.most], flow.steps[i]}})[0] {
						t.Errorf("%s doesn't wait for the one %d before", p.Label(p.Step(flow.steps[i])), flow.most)
					}
				}
			}
		}
	})
}

// TestScratch: a reduction needs MaxReceives pieces per child, however many there
// are, and room for its partial result where it isn't the root; a bcast needs none. In an
// exscan a sum waits until it is sent.
func TestScratch(t *testing.T) {
	for _, pieces := range []int64{1, 3, 40} {
		each(t, pieces, func(t *testing.T, op tasks.Collective, p *submodules.Program) {
			children := int64(0)
			for _, peer := range p.Peers {
				for _, id := range peer.In[:min(1, len(peer.In))] {
					if p.Step(id).Dst.Region == tasks.Scratch {
						children++
					}
				}
			}
			want := children * 64 * min(pieces, adapt.MaxReceives)
			if op == tasks.Reduce && p.Rank != 2 && children > 0 {
				want += 64 * pieces
			}
			if (op == tasks.ReduceScatter || op == tasks.Allreduce) && children == 1 { // a ring: six others' sums and its own pass through
				want = children * 64 * min(7*pieces, adapt.MaxReceives)
			}
			if op == tasks.Exscan && p.Rank > 0 && int(p.Rank) < p.Size-1 { // sums that are only sent on
				want = 64 * min(pieces, adapt.MaxSends)
			}
			if p.Scratch != want {
				t.Errorf("%d bytes of scratch for %d children, want %d", p.Scratch, children, want)
			}
			if op == tasks.Bcast && children > 0 {
				t.Errorf("a bcast received into scratch from %d ranks", children)
			}
		})
	}
}

// ExampleAdapt shows the second of two inner segments on its way through a chain.
func ExampleAdapt() {
	topo, _ := levels.Parse("3")
	plan, _ := tasks.ParsePlan("shape=flat,fs=all,w=1,s=adapt/chain/32KiB")
	req := tasks.Request{Coll: tasks.Bcast, Count: 64 << 10, Type: tasks.Uint8}
	prog, err := submodules.CompileFor(req, topo.Flat(0), plan, 1, submodules.Registry{adapt.Adapt{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(prog)
	// Output:
	// rank 1: 4 steps, 0B scratch, 0B slots
	//   0 sb#0 recv r0>r1 32KiB    recv[0:32768]
	//   1 sb#0 send r1>r2 32KiB    recv[0:32768]                                   after 0
	//   2 sb#0 recv r0>r1 32KiB    recv[32768:65536]
	//   3 sb#0 send r1>r2 32KiB    recv[32768:65536]                               after 2
}
