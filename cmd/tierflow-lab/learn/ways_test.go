package learn

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/cmd/tierflow/kit/kittest"
)

// Ways that are named are replayed, beside what learns nothing; plans of a catalogue can be drawn.
func TestWays(t *testing.T) {
	set := filepath.Join(t.TempDir(), "set.json")
	if status, _, errs := lab(t, "learn", "--record", set, "--topo", "2x1", "--op", "bcast", "--bytes", "1KiB", "--catalogue", "--plans", "20"); status != 0 {
		t.Fatal(errs)
	}
	s, err := ReadSet(set)
	if err != nil || len(s.Plans) != 20 {
		t.Fatalf("%d plans, %v; want 20", len(s.Plans), err)
	}
	status, out, errs := lab(t, "learn", "--replay", set, "--seeds", "1", "--ways", "learn", "--json")
	if status != 0 {
		t.Fatal(errs)
	}
	var names []string
	for _, way := range kittest.Decode[[]Compared](t, out)[0].Ways {
		names = append(names, way.Name)
	}
	if diff := cmp.Diff([]string{"exhaustive", "tasks", "tasks+heuristics", "assumed prices", "prices", "learn"}, names); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--replay", set, "--ways", "luck"}, "--ways luck: allowed are random, paper"},
		{[]string{"--record", "x.json", "--plans", "9"}, "--plans 9: from 1 on, with --catalogue"},
		{[]string{"--record", "x.json", "--plans", "-9", "--catalogue"}, "--plans -9: from 1 on"},
	} {
		if status, _, errs := lab(t, append([]string{"learn"}, c.args...)...); status != 2 || !strings.Contains(errs, c.want) {
			t.Errorf("%v: status %d, %q, want %q", c.args, status, errs, c.want)
		}
	}
}

// With racks machines are measured at one time: that takes less time, and chooses as well. Racks that
// nodes don't fill are refused.
func TestReplayInRacks(t *testing.T) {
	set := filepath.Join(t.TempDir(), "set.json")
	if status, _, errs := lab(t, "learn", "--record", set, "--topo", "8x2", "--op", "allreduce", "--bytes", "8:64KiB:x2"); status != 0 {
		t.Fatal(errs)
	}
	took := map[string]Way{}
	for _, racks := range []string{"0", "1", "4"} {
		status, out, errs := lab(t, "learn", "--replay", set, "--seeds", "2", "--ways", "learn", "--racks", racks, "--json")
		if status != 0 {
			t.Fatal(errs)
		}
		ways := kittest.Decode[[]Compared](t, out)[0].Ways
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
	if status, _, errs := lab(t, "learn", "--replay", set, "--racks", "3"); status != 2 || !strings.Contains(errs, "--racks 3: set.json has machines of up to 8 nodes; allowed are numbers that divide these") {
		t.Errorf("status %d, %q", status, errs)
	}
}

// In the figure a search that doesn't learn knows all at its end. One that learns knows then what its
// last step says.
func TestFigureValues(t *testing.T) {
	search := &Way{Seconds: 10, Slowdown: 1.02}
	learned := &Way{steps: []Step{{Seconds: 1, Slowdown: math.Inf(1)}, {Seconds: 2, Slowdown: 1.5}, {Seconds: 4, Slowdown: 1}}}
	for _, c := range []struct {
		way         *Way
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

// What has no price is thought to cost the mean of the others.
func TestGeometricMean(t *testing.T) {
	for _, c := range []struct {
		all  []float64
		want float64
	}{{nil, 0}, {[]float64{0, 0}, 0}, {[]float64{2, 0, 8}, 4}} {
		if got := geometricMean(c.all); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v: %v, want %v", c.all, got, c.want)
		}
	}
}

// A way that was never good with one seed never was.
func TestAddSeeds(t *testing.T) {
	s := &Set{Points: []Row{{Bytes: 8}}}
	good := []Step{{Seconds: 1, Slowdown: 1.2}, {Seconds: 2, Slowdown: 1.01, Worst: 1.1}}
	bad := []Step{{Seconds: 3, Slowdown: 1.5, Worst: 2}}
	w := Way{}
	w.add(s, good, 2)
	w.add(s, good, 2)
	if w.To != 2 || w.Seconds != 2 || w.Worst != 1.1 || w.Measurements != 2 {
		t.Errorf("%+v", w)
	}
	w = Way{}
	w.add(s, bad, 2)
	w.add(s, good, 2)
	if w.To != -1 || w.Worst != 2 || w.Seconds != 2.5 {
		t.Errorf("%+v", w)
	}
}
