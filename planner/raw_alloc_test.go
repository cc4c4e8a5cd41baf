package planner_test

import (
	"testing"

	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

// From the second call of a request on, a call by bytes allocates nothing.
func TestPrepareNowAllocatesNothing(t *testing.T) {
	comms := localComms(t, "1", nil)
	defer comms[0].Close()
	in, out := make([]byte, 64), make([]byte, 64)
	r := tasks.Request{Coll: tasks.Allreduce, Count: 8, Type: tasks.Float64, Op: tasks.Sum}
	call := func() {
		if err := raw.Run(t.Context(), comms[0], r, in, out); err != nil {
			t.Fatal(err)
		}
	}
	call()
	if n := testing.AllocsPerRun(100, call); n > 0 {
		t.Errorf("%v allocations per call", n)
	}
}

// BenchmarkRunRequest shows what a call by bytes costs over the run of a prepared one.
func BenchmarkRunRequest(b *testing.B) {
	comms := localComms(b, "1", nil)
	defer comms[0].Close()
	in, out := make([]byte, 64), make([]byte, 64)
	r := tasks.Request{Coll: tasks.Allreduce, Count: 8, Type: tasks.Float64, Op: tasks.Sum}
	prepared, err := raw.Prepare(b.Context(), comms[0], r, in, out)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("call=prepared", func(b *testing.B) {
		for b.Loop() {
			if err := prepared.Run(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("call=now", func(b *testing.B) {
		for b.Loop() {
			if err := raw.Run(b.Context(), comms[0], r, in, out); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkPrepare shows what it costs to prepare a collective of a size not seen before.
func BenchmarkPrepare(b *testing.B) {
	for _, topology := range []string{"4x2", "64x12"} {
		b.Run("topo="+topology, func(b *testing.B) {
			comms := localComms(b, topology, nil)
			for _, c := range comms {
				defer c.Close()
			}
			in, out := make([]byte, 4<<20), make([]byte, 4<<20)
			for n := int64(0); b.Loop(); n++ {
				r := tasks.Request{Coll: tasks.Allreduce, Count: 1000 + n%500_000, Type: tasks.Float64, Op: tasks.Sum}
				if _, err := raw.Prepare(b.Context(), comms[0], r, in[:8*r.Count], out[:8*r.Count]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
