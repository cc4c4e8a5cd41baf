package tasks_test

import (
	"fmt"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

func ExampleExpand() {
	topo, _ := levels.Parse("4x2")
	plan, _ := tasks.ParsePlan("shape=han,fs=64KiB,w=4")
	req := tasks.Request{Coll: tasks.Allreduce, Count: 20_000, Type: tasks.Float32, Op: tasks.Sum}
	g, err := tasks.Expand(req, topo, plan, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	for id := range dag.ID(g.Len()) {
		t := g.Node(id)
		fmt.Println(t, t.Group.Ranks, t.Src, t.Dst)
	}
	// Output:
	// sr#0 [2 3] send[0:65536] recv[0:65536]
	// ir#0 [0 2 4 6] recv[0:65536] recv[0:65536]
	// ib#0 [0 2 4 6] recv[0:65536] recv[0:65536]
	// sb#0 [2 3] recv[0:65536] recv[0:65536]
	// sr#1 [2 3] send[65536:80000] recv[65536:80000]
	// ir#1 [0 2 4 6] recv[65536:80000] recv[65536:80000]
	// ib#1 [0 2 4 6] recv[65536:80000] recv[65536:80000]
	// sb#1 [2 3] recv[65536:80000] recv[65536:80000]
}

// The seven kinds of stage tasks of an allreduce in five segments, on a leader.
func ExampleGraph_Stages() {
	topo, _ := levels.Parse("4x2")
	plan, _ := tasks.ParsePlan("shape=han,fs=1KiB,w=4")
	req := tasks.Request{Coll: tasks.Allreduce, Count: 5 << 10, Type: tasks.Uint8, Op: tasks.Max}
	g, err := tasks.Expand(req, topo, plan, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	stages, err := g.Stages()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range stages {
		fmt.Print(s.Index, " ", s.Name, ":")
		for _, id := range s.Tasks {
			fmt.Print(" ", g.Node(id))
		}
		fmt.Println()
	}
	// Output:
	// 0 sr: sr#0
	// 1 irsr: ir#0 sr#1
	// 2 ibirsr: ib#0 ir#1 sr#2
	// 3 sbibirsr: sb#0 ib#1 ir#2 sr#3
	// 4 sbibirsr: sb#1 ib#2 ir#3 sr#4
	// 5 sbibir: sb#2 ib#3 ir#4
	// 6 sbib: sb#3 ib#4
	// 7 sb: sb#4
}

func ExampleParsePlan() {
	p, err := tasks.ParsePlan("shape=han, fs=256K, i=adapt/chain/32K, ib=adapt/binomial")
	fmt.Println(p, err)
	ib, _ := p.For(tasks.Kind{Symbol: 'i', Op: tasks.Bcast})
	ir, _ := p.For(tasks.Kind{Symbol: 'i', Op: tasks.Reduce})
	fmt.Println("ib by", ib, "and ir by", ir)

	_, err = tasks.ParsePlan("shape=star")
	fmt.Println(err)
	// Output:
	// shape=han,fs=256KiB,i=adapt/chain/32KiB,ib=adapt/binomial <nil>
	// ib by adapt/binomial and ir by adapt/chain/32KiB
	// plan "shape=star": unknown shape "star"; known are flat, han, han-lockstep, rotate, ar, rsag, lanes, sag, flat-ar, flat-rsag, flat-sag
}

func ExampleParseForced() {
	forced, err := tasks.ParseForced("w=8; allreduce: shape=flat,w=2")
	fmt.Println(err)
	fmt.Println("bcast:", forced.For(tasks.Bcast))
	fmt.Println("allreduce:", forced.For(tasks.Allreduce))
	// Output:
	// <nil>
	// bcast: w=8
	// allreduce: shape=flat,w=2
}

func ExampleRequest_Validate() {
	r := tasks.Request{Coll: tasks.Bcast, Count: -1, Root: 8}
	fmt.Println(r.Validate(8))
	// Output:
	// datatype Datatype(0) is not an element type
	// count -1 is not between 0 and 2^63 bytes
	// root 8: ranks are 0 to 7
}

func ExamplePasses() {
	plan, _ := tasks.ParsePlan("fs=1MiB")
	plan.Window = 4
	req := tasks.Request{Coll: tasks.Bcast, Count: 5 << 30, Type: tasks.Uint8}
	whole, n, rest, err := tasks.Passes(req, plan)
	fmt.Println(n, "×", whole, "and", rest, err)
	// Output: 5 × bcast 1073741824 u8 root 0 and bcast 0 u8 root 0 <nil>
}

// The rows tell the collectives apart.
func ExampleCollective_Row() {
	for _, c := range tasks.Requestable() {
		row := c.Row()
		fmt.Printf("%-13v in: %v; out: %v, %v\n", c, row.Input, row.Output, row.From)
	}
	// Output:
	// bcast         in: the root, the message; out: every rank, the message, of the root
	// reduce        in: every rank, the message; out: the root, the message, of all, combined
	// allreduce     in: every rank, the message; out: every rank, the message, of all, combined
	// allgather     in: every rank, its own block; out: every rank, all blocks, of the owners
	// gather        in: every rank, its own block; out: the root, all blocks, of the owners
	// scatter       in: the root, all blocks; out: every rank, its own block, of the root
	// reducescatter in: every rank, all blocks; out: every rank, its own block, of all, combined
	// alltoall      in: every rank, all blocks; out: every rank, all blocks, of the owners
	// barrier       in: every rank, nothing; out: every rank, nothing, of nobody
	// scan          in: every rank, the message; out: every rank, the message, of ranks through its own, combined
	// exscan        in: every rank, the message; out: every rank, the message, of ranks below its own, combined
}
