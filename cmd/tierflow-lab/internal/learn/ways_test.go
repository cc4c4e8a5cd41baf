package learn

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Ways that are named are replayed, beside what learns nothing; plans of a catalogue can be drawn.
func TestWays(t *testing.T) {
	set, s := record(t, "--topo", "2x1", "--op", "bcast", "--bytes", "1KiB", "--catalogue", "--plans", "20")
	if len(s.Plans) != 20 {
		t.Fatalf("%d plans; want 20", len(s.Plans))
	}
	var names []string
	for _, way := range replay(t, set, "--seeds", "1", "--ways", "learn") {
		names = append(names, way.Name)
	}
	if diff := cmp.Diff([]string{"exhaustive", "tasks", "tasks+heuristics", "assumed prices", "prices", "learn"}, names); diff != "" {
		t.Error(diff)
	}
	lab.RefusesAll(t, "learn", map[string]string{
		"--replay " + set + " --ways luck":       "--ways luck: allowed are random, paper",
		"--record x.json --plans 9":              "--plans 9: from 1 on, with --catalogue",
		"--record x.json --plans -9 --catalogue": "--plans -9: from 1 on",
	})
}

// With racks machines are measured at one time: that takes less time, and chooses as well. Racks that
// nodes don't fill are refused.
func TestReplayInRacks(t *testing.T) {
	set, _ := record(t, "--topo", "8x2", "--op", "allreduce", "--bytes", "8:64KiB:x2")
	took := map[string]wayResult{}
	for _, racks := range []string{"0", "1", "4"} {
		ways := replay(t, set, "--seeds", "2", "--ways", "learn", "--racks", racks)
		took[racks] = ways[len(ways)-1]
	}
	if off := took["1"].Seconds / took["0"].Seconds; off < .8 || off > 1.25 { // what is next is asked for one measurement earlier
		t.Errorf("in one rack it takes %.2f of the time: %+v", off, took)
	}
	each := func(racks string) float64 { return took[racks].Seconds / took[racks].Measurements }
	if each("4") >= each("1") || took["4"].Slowdown > 1.01*took["0"].Slowdown {
		t.Errorf("by racks: %+v", took)
	}
	if alone := took["0"]; alone.Checked <= alone.Seconds || alone.CheckedWorst > alone.Worst {
		t.Errorf("what would be chosen was measured, and then: %+v", alone)
	}
	lab.Refuses(t, "--racks 3: set.json has machines of up to 8 nodes; allowed are numbers that divide these", "learn", "--replay", set, "--racks", "3")
}

// In the figure a search that doesn't learn knows all at its end. One that learns knows then what its
// last step says.
func TestFigureValues(t *testing.T) {
	search := &wayResult{Seconds: 10, Slowdown: 1.02}
	learned := &wayResult{steps: []progress{{Seconds: 1, Slowdown: math.Inf(1)}, {Seconds: 2, Slowdown: 1.5}, {Seconds: 4, Slowdown: 1}}}
	for _, c := range []struct {
		way         *wayResult
		after, want float64 // NaN: nothing is drawn
	}{
		{search, 9, math.NaN()},
		{search, 10, .02},
		{learned, .5, math.NaN()},
		{learned, 1.5, math.NaN()},
		{learned, 3, .5},
		{learned, 4, least},
	} {
		if got := c.way.at(c.after); math.Abs(got-c.want) > 1e-12 || math.IsNaN(got) != math.IsNaN(c.want) {
			t.Errorf("%+v after %v s: %v, want %v", c.way, c.after, got, c.want)
		}
	}
}

// A way that was never good with one seed never was.
func TestAddSeeds(t *testing.T) {
	good := []progress{{Seconds: 1, Slowdown: 1.2, All: 1.2}, {Seconds: 2, Slowdown: 1.01, All: 1.01, Worst: 1.1}}
	bad := []progress{{Seconds: 3, Slowdown: 1.5, All: 1.5, Worst: 2}}
	w := wayResult{}
	w.add(good, 2)
	w.add(good, 2)
	if w.To != 2 || w.Seconds != 2 || w.Worst != 1.1 || w.Measurements != 2 {
		t.Errorf("%+v", w)
	}
	w = wayResult{}
	w.add(bad, 2)
	w.add(good, 2)
	if w.To != -1 || w.Worst != 2 || w.Seconds != 2.5 {
		t.Errorf("%+v", w)
	}
}

// Slowdowns are told apart by sizes of powers of two and others. A point without a choice is infinitely
// slow, and the mean of all counts each point once.
func TestSlowdowns(t *testing.T) {
	s := &recordedSet{Points: []setRow{{Bytes: 8, NS: []float64{2, 4}}, {Bytes: 16, NS: []float64{0, 5}}, {Bytes: 12, NS: []float64{3, 9}}}}
	slow := s.slowdowns(func(int) int { return 1 })
	if diff := cmp.Diff([]float64{2, 1, 3}, slow); diff != "" {
		t.Error(diff)
	}
	st := s.sum(slow, progress{Seconds: 7})
	if diff := cmp.Diff(progress{Seconds: 7, Slowdown: 1.5, Odd: 3, All: 2, Worst: 3}, st); diff != "" {
		t.Error(diff)
	}
	if slow := s.slowdowns(func(row int) int { return row - 1 }); !math.IsInf(slow[0], 1) {
		t.Errorf("without a choice the slowdown is %v", slow[0])
	}
	for prices, want := range map[[3]float64]int{{0, 3, 2}: 2, {0, 0, 0}: -1, {1, 1, 0}: 0} {
		if got := cheapest(prices[:]); got != want {
			t.Errorf("the cheapest of %v is %d, want %d", prices, got, want)
		}
	}
}
