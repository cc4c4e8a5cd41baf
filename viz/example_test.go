package viz_test

import (
	"fmt"
	"os"

	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/viz"
)

// graph is the task graph of one rank for an allreduce of some 64 KiB segments over
// two nodes of two ranks.
func graph(rank levels.Rank, segments int64) *tasks.Graph {
	topology, err := levels.Parse("2x2")
	if err != nil {
		panic(err)
	}
	plan, err := tasks.ParsePlan("shape=han,fs=64KiB,w=4,i=adapt/chain,s=sm")
	if err != nil {
		panic(err)
	}
	request := tasks.Request{Coll: tasks.Allreduce, Count: segments * 16384, Type: tasks.Float32, Op: tasks.Sum}
	g, err := tasks.Expand(request, topology, plan, rank)
	if err != nil {
		panic(err)
	}
	return g
}

func program(rank levels.Rank) *submodules.Program {
	p, err := submodules.Compile(graph(rank, 1), 4, all.Submodules())
	if err != nil {
		panic(err)
	}
	return p
}

// The pipeline of a node leader: figure 5 of the HAN paper.
func ExampleStageTable() {
	table, err := viz.StageTable(graph(0, 4))
	if err != nil {
		fmt.Println(err)
		return
	}
	os.Stdout.Write(table)
	// Output:
	// stage  0   1     2       3         4       5     6
	//        sr  irsr  ibirsr  sbibirsr  sbibir  sbib  sb
	// #0     sr  ir    ib      sb
	// #1         sr    ir      ib        sb
	// #2               sr      ir        ib      sb
	// #3                       sr        ir      ib    sb
}

func ExampleTasks() {
	d, err := viz.Tasks([]*tasks.Graph{graph(1, 2)}, viz.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	os.Stdout.Write(d.Text())
	// Output:
	// allreduce 32768 f32 sum on 2x2
	// shape=han,fs=64KiB,w=4,i=adapt/chain,s=sm
	//
	// rank 1, node0
	//    sr#0  s  r0* r1 send[0:65536] > recv[0:65536]
	//    sb#0  s  r0* r1 recv[0:65536] > recv[0:65536]            after sr#0
	//    sr#1  s  r0* r1 send[65536:131072] > recv[65536:131072]  after sr#0 (order)
	//    sb#1  s  r0* r1 recv[65536:131072] > recv[65536:131072]  after sb#0 (order), sr#1
}

func ExampleSteps() {
	d, err := viz.Steps([]*submodules.Program{program(0), program(2)}, viz.Options{Reduce: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range d.Edges {
		if e.Kind == viz.Message {
			fmt.Println(d.Nodes[e.From].Label, "->", d.Nodes[e.To].Label)
		}
	}
	// Output:
	// ir#0 send r2>r0 64KiB -> ir#0 recv r2>r0 64KiB
	// ib#0 send r0>r2 64KiB -> ib#0 recv r0>r2 64KiB
}

func ExampleTimeline() {
	p := program(1)
	rec := trace.NewRecorder()
	hooks := rec.Hooks() // what an executor would call
	for i, id := range p.Order() {
		begin := int64(i) * 1000
		hooks.Step(trace.Event{Source: p, Rank: 1, Step: int32(id), Begin: begin, End: begin + 1000})
	}
	os.Stdout.Write(viz.Timeline(rec.Events(), 12))
	// Output:
	// 6µs from 0s; a column is 500ns
	// rank 1  s  rrrrrrbbbbbb
}

func ExamplePerfetto() {
	p := program(1)
	os.Stdout.Write(viz.Perfetto([]trace.Event{{Source: p, Rank: 1, Step: 0, Begin: 1500, End: 4250}}))
	// Output:
	// {"displayTimeUnit": "ns", "traceEvents": [
	// {"name":"process_name","ph":"M","pid":1,"tid":0,"args":{"name":"rank 1"}},
	// {"name":"process_sort_index","ph":"M","pid":1,"tid":0,"args":{"sort_index":1}},
	// {"name":"thread_name","ph":"M","pid":1,"tid":1,"args":{"name":"s"}},
	// {"name":"thread_sort_index","ph":"M","pid":1,"tid":1,"args":{"sort_index":1}},
	// {"name":"sr#0 copy r1 64KiB","cat":"sr","ph":"X","ts":1.500,"dur":2.750,"pid":1,"tid":1,"args":{"task":"sr#0","bytes":65536,"run":0,"pass":0}}]}
}

// How much a leader's work between nodes and inside its node happens at once.
func ExampleOverlap() {
	p := program(0)
	events := []trace.Event{
		{Source: p, Step: find(p, "ib#0 send r0>r2 64KiB"), Begin: 0, End: 700},
		{Source: p, Step: find(p, "sb#0 copy r0 64KiB"), Begin: 200, End: 500},
		{Source: p, Step: find(p, "sb#0 await r1>r0"), Begin: 600, End: 800},
	}
	both, network, node := viz.Overlap(events, 0, 'i', 's')
	fmt.Println(both, "of", network, "between nodes and", node, "inside")
	// Output: 400ns of 700ns between nodes and 500ns inside
}

func find(p *submodules.Program, label string) int32 {
	for i := range p.Steps() {
		if p.Label(&p.Steps()[i]) == label {
			return int32(i)
		}
	}
	panic("no step " + label)
}

func ExampleDrawing_DOT() {
	d, err := viz.Tasks([]*tasks.Graph{graph(1, 1)}, viz.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	os.Stdout.Write(d.DOT()) // dot -Tsvg draws it
	// Output:
	// digraph {
	// 	graph [rankdir=LR, newrank=true, nodesep=0.15, ranksep=0.3, fontname="Helvetica", fontsize=11, labelloc=t, labeljust=l, label="allreduce 16384 f32 sum on 2x2\lshape=han,fs=64KiB,w=4,i=adapt/chain,s=sm\lsolid: data\l"];
	// 	node [shape=box, style="rounded,filled", color="#555555", fontname="Helvetica", fontsize=10, width=0.5, height=0.28, margin="0.08,0.04"];
	// 	edge [color="#555555", arrowsize=0.6];
	// 	graph [layout=nop2, outputorder=nodesfirst];
	// 	"rank 1" [label="", color="#BBBBBB", fillcolor="#F4F4F4", pos="194,68", width=5.389, height=1.653];
	// 	"label of rank 1" [label="rank 1, node0\l", shape=plaintext, style="", fontsize=11, pos="198,117", width=5.389, height=0.194];
	// 	"rank 1 s" [label="", color="#3399CC", fillcolor=white, pos="180,61", width=4.778, height=1.250];
	// 	"label of rank 1 s" [label="s/node\l", shape=plaintext, style="", fontsize=11, pos="184,96", width=4.778, height=0.194];
	// 	"r1.sr#0" [label="sr#0", tooltip="sr#0: r0* r1 send[0:65536] > recv[0:65536]", fixedsize=true, fillcolor="#99DDFF", pos="103,80", width=0.528, height=0.292];
	// 	"r1.sb#0" [label="sb#0", tooltip="sb#0: r0* r1 recv[0:65536] > recv[0:65536]", fixedsize=true, fillcolor="#99DDFF", pos="325,43", width=0.528, height=0.292];
	// 	"r1.sr#0" -> "r1.sb#0" [pos="e,306,43 122,80 144,80 144,43 166,43 166,43 300,43 300,43"];
	// }
}

func ExampleDrawing_JSON() {
	d, err := viz.Tasks([]*tasks.Graph{graph(1, 1)}, viz.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	os.Stdout.Write(d.JSON())
	// Output:
	// {"title": ["allreduce 16384 f32 sum on 2x2","shape=han,fs=64KiB,w=4,i=adapt/chain,s=sm"],
	// "nodes": [
	// {"id":"r1.sr#0","label":"sr#0","rank":1,"level":"s","segment":0,"detail":"r0* r1 send[0:65536] > recv[0:65536]"},
	// {"id":"r1.sb#0","label":"sb#0","rank":1,"level":"s","segment":0,"detail":"r0* r1 recv[0:65536] > recv[0:65536]"}],
	// "edges": [
	// {"from":"r1.sr#0","to":"r1.sb#0","kind":"data"}]}
}
