package planner_test

import (
	"fmt"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// BenchmarkDecide asks for plans by the built-in rule, a table, and by price: such as were decided before, for
// one again and again or for several in turns, and such as never were.
func BenchmarkDecide(b *testing.B) {
	data, err := machine.Assumed().Format()
	if err != nil {
		b.Fatal(err)
	}
	for by, o := range map[string]*planner.Options{"rule": {}, "table": {Table: recordedFile}, "price": {Machine: "machine", Files: inMemory("machine", data)}} {
		for _, sizes := range [][]int64{{1 << 16}, {1 << 8, 1 << 12, 1 << 16, 1 << 20}} {
			b.Run(fmt.Sprintf("by=%s/known=true/requests=%d", by, len(sizes)), func(b *testing.B) { decideCached(b, o, sizes) })
		}
		b.Run("by="+by+"/known=false", func(b *testing.B) { decideNew(b, o) })
	}
}

func decideCached(b *testing.B, o *planner.Options, sizes []int64) {
	comms := localComms(b, "4x2", o)
	defer closeComms(comms)
	all := tasktest.Requests("allreduce", sizes...)
	for _, r := range all {
		if _, err := comms[0].Decide(r); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := comms[0].Decide(all[i%len(all)]); err != nil {
			b.Fatal(err)
		}
	}
}

func decideNew(b *testing.B, o *planner.Options) {
	comms := localComms(b, "4x2", o)
	defer closeComms(comms)
	r := tasks.Request{Coll: tasks.Allreduce, Type: tasks.Float32, Op: tasks.Sum}
	b.ReportAllocs()
	for b.Loop() {
		r.Count++
		if _, err := comms[0].Decide(r); err != nil {
			b.Fatal(err)
		}
	}
}

func closeComms(comms []*planner.Comm) {
	for _, c := range comms {
		_ = c.Close()
	}
}
