package measure_test

import (
	"context"
	"math"
	"testing"

	"github.com/tierflow/tierflow/costs/derived"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/measure"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// A machine whose wire is all that counts: γ(k) is k − 1, and a gather takes each message
// after the other.
func TestSimulatedExperiments(t *testing.T) {
	on := tasktest.Topology(t, "6x1")
	m, err := machine.ParseLogGOPS("L=1000,o=0,g=0,G=10,O=0")
	if err != nil {
		t.Fatal(err)
	}
	bench := measure.NewSimulated(on, m, all.Submodules())
	times, err := bench.Gamma(t.Context(), 4, 1e6, stats.Stop{})
	if err != nil || len(times) != 3 {
		t.Fatalf("%v, %v", times, err)
	}
	for i, ns := range times {
		if want := 10e6 * float64(i+1); math.Abs(ns-want) > 0.01*want {
			t.Errorf("a bcast between %d ranks takes %.0f ns, want %.0f", i+2, ns, want)
		}
	}
	g, err := bench.Gather(t.Context(), 1000, stats.Stop{})
	if want := (derived.Gather{First: 11000, Next: 10000}); err != nil || math.Abs(g.First-want.First) > 200 || math.Abs(g.Next-want.Next) > 200 {
		t.Errorf("a gather takes %+v, %v; want %+v", g, err, want)
	}
	r := tasks.Request{Coll: tasks.Bcast, Type: tasks.Uint8, Count: 1e6}
	s, err := bench.Followed(t.Context(), r, tasktest.Plan(t, "shape=flat,fs=all,w=1,ib=adapt/chain"), 1000, stats.Stop{})
	if want := 5*10e6 + 11e3; err != nil || s.P50 < want || s.P50 > 1.01*want {
		t.Errorf("a chain and a gather take %.0f ns, %v; want %.0f", s.P50, err, want)
	}
}

// The experiments run on ranks, and all get the same.
func TestExperiments(t *testing.T) {
	type found struct {
		Times  []float64
		Gather derived.Gather
		NS     float64
	}
	got := onRanks(t, "3x2", func(ctx context.Context, b *measure.Bench) (f found, err error) {
		if f.Times, err = b.Gamma(ctx, 8, 4096, brief); err != nil {
			return f, err
		}
		if f.Gather, err = b.Gather(ctx, 64, brief); err != nil {
			return f, err
		}
		s, err := b.Followed(ctx, tasktest.Request(tasks.Bcast, 4096), tasktest.Plan(t, "shape=flat,fs=all,w=1,ib=adapt/chain"), 64, brief)
		f.NS = s.P50
		return f, err
	})
	if len(got.Times) != 2 || !(got.Times[0] > 0) { // three nodes
		t.Errorf("γ from %v", got.Times)
	}
	if !(got.Gather.First > 0) || got.Gather.Next < 0 || !(got.NS > 0) {
		t.Errorf("%+v", got)
	}
}
