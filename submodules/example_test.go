package submodules_test

import (
	"fmt"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// The program of one node's leader: it combines what rank 3 shows in its slot,
// sends the sum to rank 0, receives the total and shows it to rank 3.
func ExampleCompile() {
	topo, _ := levels.Parse("2x2")
	plan, _ := tasks.ParsePlan("shape=han,fs=64KiB,w=2,i=adapt/chain,s=sm")
	req := tasks.Request{Coll: tasks.Allreduce, Count: 16 << 10, Type: tasks.Float32, Op: tasks.Sum}
	g, err := tasks.Expand(req, topo, plan, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	prog, err := submodules.Compile(g, topo.Size(), all.Submodules())
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range prog.Steps() {
		fmt.Println(prog.Label(prog.Step(prog.Order()[i])))
	}
	// Output:
	// sr#0 await r3>r2
	// sr#0 reduce r2 64KiB
	// sr#0 notify r2>r3
	// ir#0 send r2>r0 64KiB
	// ib#0 recv r0>r2 64KiB
	// sb#0 copy r2 64KiB
	// sb#0 notify r2>r3
	// sb#0 await r3>r2
}

func ExampleProgram_String() {
	topo, _ := levels.Parse("3")
	plan, _ := tasks.ParsePlan("shape=flat,fs=all,w=1,s=adapt/chain")
	h := topo.Flat(0)
	prog, err := submodules.CompileFor(tasks.Request{Coll: tasks.Bcast, Count: 100, Type: tasks.Uint8}, h, plan, 1, all.Submodules())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(prog)
	// Output:
	// rank 1: 2 steps, 0B scratch, 0B slots
	//   0 sb#0 recv r0>r1 100B     recv[0:100]
	//   1 sb#0 send r1>r2 100B     recv[0:100]                                     after 0
}

func ExampleRegistry_Check() {
	plan, _ := tasks.ParsePlan("i=adapt/star")
	fmt.Println(all.Submodules().Check(plan))
	// Output: i=adapt/star: unknown algorithm "star"; adapt has binomial, chain, kchain, binary, linear, ring, direct, pairwise, inorderbinary, inorderbinomial, splitbinary
}
