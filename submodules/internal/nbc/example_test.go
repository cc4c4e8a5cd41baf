package nbc_test

import (
	"fmt"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/internal/nbc"
	"github.com/tierflow/tierflow/tasks"
)

// The leader of four ranks takes its two children in turn: while it combines what
// came from rank 1, rank 2's arrives. The join is the end of that round.
func ExampleNBC() {
	topo, _ := levels.Parse("4")
	plan, _ := tasks.ParsePlan("shape=flat,fs=all,w=1,s=nbc/binomial")
	req := tasks.Request{Coll: tasks.Allreduce, Count: 16, Type: tasks.Float32, Op: tasks.Sum}
	prog, err := submodules.CompileFor(req, topo.Flat(0), plan, 0, submodules.Registry{nbc.NBC{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(prog)
	// Output:
	// rank 0: 7 steps, 128B scratch, 0B slots
	//   0 sr#0 recv r1>r0 64B      scratch[0:64]
	//   1 sr#0 recv r2>r0 64B      scratch[64:128]                                 after 0
	//   2 sr#0 reduce r0 64B       recv[0:64] = send[0:64] ⊕ scratch[0:64]         after 0
	//   3 sr#0 join r0                                                             after 1 2
	//   4 sr#0 reduce r0 64B       recv[0:64] = recv[0:64] ⊕ scratch[64:128]       after 3
	//   5 sb#0 send r0>r2 64B      recv[0:64]                                      after 4
	//   6 sb#0 send r0>r1 64B      recv[0:64]                                      after 4
}
