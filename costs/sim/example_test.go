package sim_test

import (
	"fmt"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// How long a bcast of 1 MiB takes on 64 nodes of 12 ranks that don't exist.
func Example() {
	topology, err := levels.Parse("64x12")
	if err != nil {
		fmt.Println(err)
		return
	}
	request := tasks.Request{Coll: tasks.Bcast, Type: tasks.Uint8, Count: 1 << 20}
	for _, text := range []string{"shape=han,fs=32KiB,w=4,i=adapt/chain,s=sm", "shape=han,fs=all,w=1,i=adapt/binomial,s=sm"} {
		plan, err := tasks.ParsePlan(text)
		if err != nil {
			fmt.Println(err)
			return
		}
		job, err := sim.Compile(request, topology, plan, all.Submodules())
		if err != nil {
			fmt.Println(err)
			return
		}
		result, err := job.Run(machine.Assumed(), sim.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d steps of %d programs: %v\n", job.Steps(), job.Forms(), result.Time)
	}
	// Output:
	// 120512 steps of 4 programs: 29.577733ms
	// 3710 steps of 8 programs: 53.682168ms
}
