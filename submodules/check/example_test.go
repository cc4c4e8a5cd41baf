package check_test

import (
	"fmt"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/submodules/check"
	"github.com/tierflow/tierflow/tasks"
)

func ExampleRequest() {
	topo, _ := levels.Parse("4x2")
	plan, _ := tasks.ParsePlan("shape=han,fs=256KiB,w=4,i=adapt/binomial,s=sm")
	req := tasks.Request{Coll: tasks.Allreduce, Count: 1 << 18, Type: tasks.Float32, Op: tasks.Sum}
	report, err := check.Request(req, topo, plan, all.Submodules(), 0)
	fmt.Printf("%+v %v\n", report, err)
	// Output: {Steps:252 Messages:24 Sent:6291456 Copied:12582912 Reduced:7340032 Shared:0} <nil>
}
