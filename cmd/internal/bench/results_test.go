package bench

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// fakeJob is ranks that run nothing.
type fakeJob struct {
	kit.Job
	on *levels.Topology
}

func (f fakeJob) Topology() *levels.Topology { return f.on }

// drawTimes draws times of calls, µs, the shortest first.
func drawTimes(rng *rand.Rand) []float64 {
	times := make([]float64, 1+rng.IntN(300))
	for i := range times {
		times[i] = kit.Round(math.Exp(8*rng.Float64()), 1e3)
	}
	slices.Sort(times)
	return times
}

// Of any times a row has its least, its quantiles in order, and bandwidths that follow from the median.
func TestSumUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	on, plan := tasktest.Topology(t, "3x2"), tasktest.Plan(t, "shape=han,fs=all,w=4,i=adapt/chain,s=sm")
	for _, coll := range tasks.Requestable() {
		times := drawTimes(rng)
		r := tasktest.Request(coll, 4*(1+rng.Int64N(1<<20)))
		row := sumUp(on, r, plan, times)
		if row.Min != times[0] || row.P50 < row.Min || row.P99 < row.P50 || row.P99 > times[len(times)-1] || row.Mean < row.Min || row.Mean > times[len(times)-1]+0.001 {
			t.Errorf("%v: %+v of %d times from %v to %v", r, row, len(times), times[0], times[len(times)-1])
		}
		if below := slices.IndexFunc(times, func(v float64) bool { return v > row.P50 }); below >= 0 && 2*below < len(times) {
			t.Errorf("%v: %d of %d times are up to the median", r, below, len(times))
		}
		if row.Ranks != 6 || row.Nodes != 3 || row.Iters != len(times) || row.Bytes != r.Bytes() || row.Collective != coll.String() {
			t.Errorf("%v: %+v", r, row)
		}
		alg := float64(r.AllBytes(6)) / 1e3 / row.P50
		if math.Abs(row.AlgBW-alg) > 0.01*alg+1e-3 || math.Abs(row.BusBW-row.AlgBW*coll.BusFactor(6)) > 0.01*row.BusBW+1e-3 || row.OldAlgBW != row.AlgBW || row.OldBusBW != row.BusBW {
			t.Errorf("%v: %v and %v GB/s at %v µs", r, row.AlgBW, row.BusBW, row.P50)
		}
		for i := range times {
			times[i] *= 2
		}
		if twice := sumUp(on, r, plan, times); math.Abs(twice.P50-2*row.P50) > 0.002 || twice.AlgBW > 0.51*row.AlgBW+1e-3 {
			t.Errorf("%v: at twice the times %+v of %+v", r, twice, row)
		}
	}
}

// The spread over roots has those of the fastest and the slowest, whatever the order of roots.
func TestSpread(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 50 {
		p50 := drawTimes(rng)
		want := newSpread(1, p50, p50, p50)
		mixed := slices.Clone(p50)
		rng.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		s := newSpread(1, mixed, mixed, mixed)
		if s.Min != p50[0] || s.Max != p50[len(p50)-1] || s.Median != want.Median || s.Ratio != want.Ratio || s.Median < s.Min || s.Median > s.Max || s.Ratio < 1 || !slices.Equal(s.P50, mixed) {
			t.Errorf("%+v of %v", s, mixed)
		}
	}
	if s := newSpread(1, []float64{0, 1}, nil, nil); s.Ratio != 0 {
		t.Errorf("%+v: a ratio to no time", s)
	}
}

// Whatever columns there are, each row has as many cells as the head, and all lines are equally long.
func TestRowsHaveAllColumns(t *testing.T) {
	for bits := range 1 << 4 {
		var out bytes.Buffer
		r := &Results{Out: &out, wired: bits&1 > 0, sealed: bits&2 > 0, roots: bits&4 > 0, plain: bits&8 > 0}
		if err := r.printHead(); err != nil {
			t.Fatal(err)
		}
		for _, row := range []Result{
			{Collective: "bcast", Shape: "han", Bytes: 8, P50: 1.5, TLS: "job", ToPlain: 1.25, Roots: newSpread(1, []float64{1, 2}, nil, nil)},
			{Collective: "allreduce", Shape: "flat-ar", Bytes: 1 << 20, P50: 150.25},
		} {
			if err := r.addRow(row); err != nil {
				t.Fatal(err)
			}
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		heads := len(columns) + []int{0, 1, 2, 3}[bits&3] + []int{0, 4}[bits>>2&1]
		for _, line := range lines[1:] {
			if got := len(strings.Fields(line)); got != heads || len([]rune(line)) != len([]rune(lines[0])) || bits == 0 && len([]rune(line)) > 80 {
				t.Errorf("%04b: %d cells in a line of %d runes, want %d in %d:\n%s", bits, got, len([]rune(line)), heads, len([]rune(lines[0])), &out)
			}
		}
		if err := r.printEnd(); err != nil {
			t.Error(err)
		}
	}
}

// JSON comes at the end, with all rows. What was wrong is an error that says how much.
func TestPrintEnd(t *testing.T) {
	var out bytes.Buffer
	r := &Results{Out: &out, JSON: true}
	if err := r.printHead(); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []int64{0, 3, 0, 4} {
		if err := r.addRow(Result{Collective: "reduce", Wrong: wrong}); err != nil {
			t.Fatal(err)
		}
	}
	if out.Len() > 0 {
		t.Errorf("before the end there is\n%s", &out)
	}
	err := r.printEnd()
	if err == nil || err.Error() != "7 elements are wrong, in 2 of 4 rows" {
		t.Errorf("error %v", err)
	}
	var got struct{ Results []Result }
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got.Results) != 4 || got.Results[3].Wrong != 4 {
		t.Errorf("%v in\n%s", err, &out)
	}
}

// Plans tie if their intervals overlap with the fastest one's. One sample has no interval.
func TestTies(t *testing.T) {
	row := func(iters int, mean, half float64, asked string) Result {
		return Result{Iters: iters, Mean: mean, Half: half, Asked: asked}
	}
	for _, test := range []struct {
		rows []Result
		want string
	}{
		{nil, ""},
		{[]Result{row(9, 10, 5, "a")}, ""},
		{[]Result{row(9, 14, 2, "w=1"), row(9, 10, 2, "")}, "# tie: w=1, chosen\n"},
		{[]Result{row(9, 10, 1, "a"), row(9, 12.1, 1, "b"), row(9, 11, 0.5, "c")}, "# tie: a, c\n"},
		{[]Result{row(9, 10, 1, "a"), row(9, 12.1, 1, "b")}, ""},
		{[]Result{row(9, 10, 1, "a"), row(1, 10, 0, "b"), row(1, 5, 0, "c")}, ""},
		{[]Result{row(1, 10, 0, "a"), row(1, 10, 0, "b")}, ""},
	} {
		markTies(test.rows)
		if got := tieText(test.rows); got != test.want {
			t.Errorf("%+v: %q, want %q", test.rows, got, test.want)
		}
	}
}

// Half the interval is that of the mean as tasks have it, in three characters.
func TestPrecision(t *testing.T) {
	row := sumUp(tasktest.Topology(t, "2x1"), tasktest.Request(tasks.Bcast, 8), tasktest.Plan(t, "shape=flat"), []float64{10, 11, 12})
	if want := stats.Summarize([]float64{10, 11, 12}); row.Half != kit.Round(want.Half, 1e3) || row.Mean != want.Mean {
		t.Errorf("%v ± %v, want %+v", row.Mean, row.Half, want)
	}
	for want, row := range map[string]Result{
		"-":   {Iters: 1, Mean: 10},
		"2.5": {Iters: 5, Mean: 100, Half: 2.5},
		"13":  {Iters: 5, Mean: 100, Half: 12.6},
		"250": {Iters: 5, Mean: 100, Half: 250},
	} {
		if got := row.precision(); got != want {
			t.Errorf("%+v: %s, want %s", row, got, want)
		}
	}
}

// A curve is named by what was asked for.
func TestRowNames(t *testing.T) {
	for _, test := range []struct {
		row  Result
		want string
	}{
		{Result{Shape: "rsag"}, "chosen"},
		{Result{Shape: "flat", Asked: "shape=flat"}, "flat"},
		{Result{Shape: "han", Asked: "shape=han,fs=64KiB,i=adapt/chain", TLS: "job"}, "han fs=64KiB i=adapt/chain, TLS"},
		{Result{Shape: "han", Asked: "w=4"}, "w=4"},
	} {
		if got := test.row.Name(); got != test.want {
			t.Errorf("%+v: %q, want %q", test.row, got, test.want)
		}
	}
}

// Wrong flags of tasks on segments are one clear error each.
func TestSegmentFlags(t *testing.T) {
	for want, change := range map[string]func(b *Segments){
		"a segment has 1B to 256MiB": func(b *Segments) { b.Bytes = "1GiB" },
		"must be above 0":            func(b *Segments) { b.Stop.Budget = 0 },
		"at most":                    func(b *Segments) { b.given = make([]string, MaxPlans+1) },
		"2 sizes":                    func(b *Segments) { b.Bytes = "8,16" },
		"unknown shape \"nothing\"":  func(b *Segments) { b.given = []string{"shape=nothing"} },
	} {
		b := &Segments{Registry: all.Submodules(), Stop: stats.Stop{Budget: 1}}
		b.Bytes = "64KiB"
		change(b)
		if err := b.read(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	b := &Segments{Registry: all.Submodules(), Stop: stats.Stop{Budget: 1}}
	b.Bytes = "64KiB"
	if err := b.read(); err != nil || b.Segment != 64<<10 || len(b.Forced) != 1 {
		t.Errorf("%v: a segment of %d bytes, %d plans", err, b.Segment, len(b.Forced))
	}
}
