package derived_test

import (
	"math"
	"slices"
	"testing"

	"github.com/tierflow/tierflow/costs/derived"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// Messages of a gather come one after the other, and none before its sender has ended.
func TestGatherAfter(t *testing.T) {
	g := derived.Gather{First: 100, Next: 10}
	for _, test := range []struct {
		ends []float64
		want float64
	}{
		{[]float64{50}, 50},                // nobody sends
		{[]float64{50, 0}, 100},            // one message
		{[]float64{500, 0}, 510},           // it waits for the root
		{[]float64{0, 0, 0, 0}, 120},       // all at once
		{[]float64{0, 0, 1000, 500}, 1100}, // the last one is late
		{[]float64{0, 7, 7, 7, 50}, 150},   // 107, 117, 127, and then 150
		{[]float64{0, 7, 7, 7, 20}, 137},   // the fourth waits for three others
	} {
		before := slices.Clone(test.ends)
		if got := g.After(test.ends); got != test.want {
			t.Errorf("ends %v: the gather ends at %v, want %v", test.ends, got, test.want)
		}
		if !slices.Equal(before, test.ends) {
			t.Errorf("ends %v became %v", before, test.ends)
		}
	}
}

// experimentsOf are experiments with a model's algorithm among six nodes, as a line has them.
func experimentsOf(t *testing.T, m derived.Model, g derived.Gamma, l derived.Line, gather derived.Gather) (all []derived.Experiment) {
	t.Helper()
	on := tasktest.Topology(t, "6x1")
	for bytes := int64(1 << 10); bytes <= 1<<20; bytes *= 4 {
		r := tasks.Request{Coll: tasks.Bcast, Type: tasks.Uint8, Count: bytes}
		x := derived.Experiment{Request: r, Plan: m.Plan(on, 8<<10), Gather: gather}
		paths, err := derived.WalkRanks(r, on, x.Plan, registry, g, l)
		if err != nil {
			t.Fatal(err)
		}
		path, err := derived.WalkRequest(r, on, x.Plan, registry, g, l)
		if err != nil {
			t.Fatal(err)
		}
		ends := make([]float64, len(paths))
		for rank, c := range paths {
			ends[rank] = l.NS(c)
		}
		x.NS = l.NS(path) + gather.After(ends) - slices.Max(ends)
		all = append(all, x)
	}
	return all
}

var registry = all.Submodules()

// What experiments were made of is found again, and they deviate from it by nothing.
func TestEstimateFindsTheLine(t *testing.T) {
	on, g := tasktest.Topology(t, "6x1"), gamma(t, "Grisou")
	want := derived.Line{Alpha: 30e3, Beta: 8}
	for _, m := range derived.Models() {
		xs := experimentsOf(t, m, g, want, derived.Gather{First: 20e3, Next: 2e3})
		got, err := derived.Estimate(on, registry, g, 0, xs)
		if err != nil || off(got.Alpha, want.Alpha) > 0.02 || off(got.Beta, want.Beta) > 0.02 {
			t.Errorf("%s: %+v, %v; want %+v", m.Algorithm, got, err, want)
		}
		deviations, err := derived.Deviations(on, registry, g, want, xs)
		if err != nil || len(deviations) != len(xs) {
			t.Errorf("%s: %v, %v", m.Algorithm, deviations, err)
		}
		for i, d := range deviations {
			if d.Bytes != xs[i].Request.Bytes() || math.Abs(d.Factor-1) > 1e-6 {
				t.Errorf("%s: %+v", m.Algorithm, d)
			}
		}
	}
}

// A size whose experiment took longer than its line is believed to, and sizes around it in part.
func TestDeviations(t *testing.T) {
	on, g, line := tasktest.Topology(t, "6x1"), gamma(t, "Grisou"), derived.Line{Alpha: 30e3, Beta: 8}
	m, _ := derived.Bcast(submodules.Binomial)
	xs := experimentsOf(t, m, g, line, derived.Gather{})
	xs[2].NS *= 3
	slices.Reverse(xs)
	deviations, err := derived.Deviations(on, registry, g, line, xs)
	if err != nil {
		t.Fatal(err)
	}
	p := derived.Parameters{Gamma: g, Algorithms: map[string]derived.Algorithm{m.Algorithm: {Line: line, Off: deviations}}}
	plain := derived.Parameters{Gamma: g, Algorithms: map[string]derived.Algorithm{m.Algorithm: {Line: line}}}
	for bytes, want := range map[int64]float64{16: 1, 1 << 10: 1, 4 << 10: 1, 8 << 10: math.Sqrt(3), 16 << 10: 3, 32 << 10: math.Sqrt(3), 64 << 10: 1, 16 << 20: 1} {
		ns, ok := p.NS(m.Algorithm, 6, bytes, 8<<10)
		without, _ := plain.NS(m.Algorithm, 6, bytes, 8<<10)
		if !ok || math.Abs(ns/without-want) > 1e-6 {
			t.Errorf("%d bytes take %.4f times as long, want %.4f", bytes, ns/without, want)
		}
	}
}

// Algorithms come by their times, the fastest first, and only those with parameters.
func TestRank(t *testing.T) {
	p := derived.Parameters{Gamma: gamma(t, "Gros"), Algorithms: map[string]derived.Algorithm{}}
	if got := p.Rank(8, 1000, 0); len(got) != 0 {
		t.Errorf("without parameters: %v", got)
	}
	for i, m := range derived.Models() {
		if i != 1 {
			p.Algorithms[m.Algorithm] = derived.Algorithm{Line: derived.Line{Alpha: float64(10e3 * (i + 1)), Beta: 1}}
		}
	}
	p.Algorithms["none"] = derived.Algorithm{}
	for _, bytes := range []int64{0, 100, 1 << 20, 64 << 20} {
		got := p.Rank(64, bytes, 8<<10)
		if len(got) != len(derived.Models())-1 || !slices.IsSortedFunc(got, func(a, b derived.Priced) int { return int(math.Copysign(1, a.NS-b.NS)) }) {
			t.Errorf("%d bytes: %v", bytes, got)
		}
		for _, one := range got {
			segment := int64(8 << 10)
			if m, _ := derived.Bcast(one.Algorithm); !m.Segmented {
				segment = 0
			}
			if ns, ok := p.NS(one.Algorithm, 64, bytes, segment); !ok || ns != one.NS {
				t.Errorf("%d bytes by %s: %v and %v, %t", bytes, one.Algorithm, one.NS, ns, ok)
			}
		}
	}
	if _, ok := p.NS("none", 8, 100, 0); ok {
		t.Error("an algorithm without a model has a time")
	}
}

// The plan of a model is one that its algorithm does, in segments if it takes them.
func TestPlansOfModels(t *testing.T) {
	for _, m := range derived.Models() {
		for _, spec := range []string{"6x1", "3x4", "2x2x2"} {
			on := tasktest.Topology(t, spec)
			p := m.Plan(on, 4<<10)
			choice, ok := p.Choice(string(on.Level(on.Depth()-1).Symbol) + "b")
			if !ok || choice.Algorithm != m.Algorithm || (choice.Inner > 0) != m.Segmented || registry.Check(p) != nil {
				t.Errorf("%s on %s: %v, %v", m.Algorithm, spec, p, registry.Check(p))
			}
			if _, err := derived.WalkRequest(tasktest.Request(tasks.Bcast, 64<<10), on, p, registry, derived.Gamma{}, derived.Line{Alpha: 1}); err != nil {
				t.Errorf("%s on %s: %v", m.Algorithm, spec, err)
			}
		}
	}
}
