package costs_test

import (
	"fmt"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// HAN's equation 3 for a bcast of 4 MiB in 64 segments, on the second of two leaders.
func ExamplePredict() {
	book, err := costs.Load("costs.json", []byte(`{"provenance": {"links": "10 Gbit/s"}, "pipelines": [], "costs": [
		{"key": "shape=han-lockstep task=ib levels=i2,s2 fs=64KiB by=ib:adapt/chain",
		 "n": 9, "min_ns": 70000, "mean_ns": 80000, "p50_ns": 80000, "p95_ns": 90000, "max_ns": 90000, "leaders_ns": [60000, 80000]},
		{"key": "shape=han-lockstep task=sb after=sbib levels=i2,s2 fs=64KiB by=sb:sm",
		 "n": 9, "min_ns": 20000, "mean_ns": 20000, "p50_ns": 20000, "p95_ns": 20000, "max_ns": 20000, "leaders_ns": [20000, 20000]},
		{"key": "shape=han-lockstep task=sbib after=ib levels=i2,s2 fs=64KiB by=ib:adapt/chain,sb:sm",
		 "n": 9, "min_ns": 80000, "mean_ns": 85000, "p50_ns": 85000, "p95_ns": 90000, "max_ns": 90000, "leaders_ns": [85000, 85000]}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	topology, _ := levels.Parse("2x2")
	plan, _ := tasks.ParsePlan("shape=han-lockstep,fs=64KiB,w=4,i=adapt/chain,s=sm")
	request := tasks.Request{Coll: tasks.Bcast, Type: tasks.Float32, Count: 1 << 20}
	prediction, err := costs.Predict(request, topology, plan, book)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(prediction.Explain())
	// Output:
	// bcast 1048576 f32 root 0, plan shape=han-lockstep,fs=64KiB,w=4,i=adapt/chain,s=sm
	//   predicted 5455.0 µs by stages: 64 segments, slowest is the leader of group 1
	//         80.0 µs =    1 ×      80.0  ib
	//       5355.0 µs =   63 ×      85.0  sbib
	//         20.0 µs =    1 ×      20.0  sb
}
