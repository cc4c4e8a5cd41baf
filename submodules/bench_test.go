package submodules_test

import (
	"fmt"
	"testing"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// BenchmarkCompile compiles one rank, the one with most to do and, where data is
// divided, the last one too. The hierarchy is common to all ranks and requests of a
// communicator, so it is made outside.
func BenchmarkCompile(b *testing.B) {
	for _, c := range []struct {
		coll tasks.Collective
		topo string
		rank levels.Rank
		how  string
	}{
		{tasks.Allreduce, "4x2", 0, "i=adapt/binomial,s=sm"},
		{tasks.Allreduce, "128x32", 0, "i=adapt/binomial,s=sm"},
		{tasks.Allgather, "16x8", 0, "i=adapt/ring,s=sm"}, // of 128x32 it would take 5 GB
		{tasks.Allgather, "128x32", 4095, "i=adapt/ring,s=sm"},
		{tasks.Gather, "128x32", 0, "i=adapt/linear,s=sm"},
		{tasks.Gather, "128x32", 4095, "i=adapt/linear,s=sm"},
		{tasks.ReduceScatter, "16x8", 0, "i=adapt/ring,s=sm"},
		{tasks.ReduceScatter, "128x32", 4095, "i=adapt/ring,s=sm"},
		{tasks.Scatter, "128x32", 0, "i=adapt/linear,s=sm"},
		{tasks.Scatter, "128x32", 4095, "i=adapt/linear,s=sm"},
	} {
		b.Run(fmt.Sprintf("op=%v/topo=%s/rank=%d/segments=64", c.coll, c.topo, c.rank), func(b *testing.B) {
			benchmarkCompile(b, c.coll, c.topo, c.how, c.rank)
		})
	}
}

func benchmarkCompile(b *testing.B, coll tasks.Collective, topo, how string, rank levels.Rank) {
	const fs = 64 << 10
	t := tasktest.Topology(b, topo)
	p := tasktest.Plan(b, "shape=han,fs=64KiB,w=4,"+how)
	r := tasks.Request{Coll: coll, Count: 64 * fs / 4, Type: tasks.Float32, Op: tasks.Sum}
	h, err := tasks.Hierarchy(r, t, p)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	steps := 0
	for b.Loop() {
		prog, err := submodules.CompileFor(r, h, p, rank, all.Submodules())
		if err != nil {
			b.Fatal(err)
		}
		steps = prog.Len()
	}
	b.ReportMetric(float64(steps), "steps")
}
