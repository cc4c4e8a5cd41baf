package measure

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// Stages follow each other: together they take as long as the last task of all, and none takes a
// negative time, in whatever order tasks end.
func TestStageTimes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, text := range []string{"shape=han-lockstep,fs=1KiB,w=4,i=adapt/chain,s=sm", "shape=han-lockstep,fs=4KiB,w=4,i=adapt/binomial,s=sm"} {
		r, on, plan := tasktest.Request(tasks.Allreduce, 16<<10), tasktest.Topology(t, "3x2"), tasktest.Plan(t, text)
		for rank := range levels.Rank(on.Size()) {
			g, err := tasks.Expand(r, on, plan, rank)
			if err != nil {
				t.Fatal(err)
			}
			stages, err := g.Stages()
			if err != nil {
				t.Fatal(err)
			}
			ends, last := map[dag.ID]float64{}, 0.0
			for _, s := range stages {
				for _, id := range s.Tasks {
					ends[id] = 1000 * rng.Float64()
					last = max(last, ends[id])
				}
			}
			columns := 1 + g.Segments + len(g.Phases) - 1
			values := stageTimes(1234, func(id dag.ID) float64 { return ends[id] }, stages, columns)
			sum := 0.0
			for i, v := range values[1:] {
				if sum += v; v < 0 {
					t.Errorf("%s, rank %d: stage %d takes %v", text, rank, i, v)
				}
			}
			if values[0] != 1234 || math.Abs(sum-last) > 1e-6 {
				t.Errorf("%s, rank %d: stages take %v of %v, in all %v", text, rank, sum, last, values[0])
			}
		}
	}
}

// drawSamples draws so many numbers of some ranks, again and again.
func drawSamples(rng *rand.Rand, ranks, numbers, times int) samples {
	s := make(samples, times)
	for rep := range s {
		s[rep] = make([][]float64, ranks)
		for rank := range s[rep] {
			for range numbers {
				s[rep][rank] = append(s[rep][rank], 10+1000*rng.Float64())
			}
		}
	}
	return s
}

// Sums over samples have the slowest rank's time, and means lie between what they are of.
func TestSamples(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 50 {
		ranks, stages, times := 1+rng.IntN(5), 1+rng.IntN(6), 3+rng.IntN(9)
		s := drawSamples(rng, ranks, 1+stages, times)
		totals := s.totals()
		for rank := range ranks {
			for rep, ns := range s.column(levels.Rank(rank), 0) {
				if ns != s[rep][rank][0] || totals[rep] < ns {
					t.Errorf("rank %d takes %v, in the column %v, the slowest %v", rank, s[rep][rank][0], ns, totals[rep])
				}
			}
			at := rng.Perm(stages)[:1+rng.IntN(stages)]
			for rep, mean := range s.meanOver(levels.Rank(rank), at) {
				least, most := math.Inf(1), 0.0
				for _, index := range at {
					least, most = min(least, s[rep][rank][1+index]), max(most, s[rep][rank][1+index])
				}
				if mean < least-1e-9 || mean > most+1e-9 {
					t.Errorf("a mean of %v, over stages of %v to %v", mean, least, most)
				}
			}
			series := s.series("sbib", 0, levels.Rank(rank), at)
			if len(series.NS) != len(at) || series.From < 0 || series.From > len(at) {
				t.Errorf("a series of %d stages: %+v", len(at), series)
			}
		}
	}
}

// A cost has the slowest leader's time in each repetition, and 0 of leaders without the task.
func TestCostOfLeaders(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 50 {
		times, byLeader := 3+rng.IntN(20), make([][]float64, 1+rng.IntN(4))
		idle := rng.IntN(2 * len(byLeader))
		for i := range byLeader {
			for range times {
				if i != idle || len(byLeader) == 1 {
					byLeader[i] = append(byLeader[i], 10+100*rng.Float64())
				}
			}
		}
		c := cost(byLeader)
		least, most := math.Inf(1), 0.0
		for rep := range times {
			slowest := 0.0
			for i := range byLeader {
				if byLeader[i] != nil {
					slowest = max(slowest, byLeader[i][rep])
				}
			}
			least, most = min(least, slowest), max(most, slowest)
		}
		if c.N != times || c.Min != least || c.Max != most || len(c.Leaders) != len(byLeader) {
			t.Errorf("%d leaders, %d times from %v to %v: %+v", len(byLeader), times, least, most, c)
		}
		for i, ns := range c.Leaders {
			if want := costs.Median(byLeader[i]); byLeader[i] == nil && ns != 0 || byLeader[i] != nil && ns != want {
				t.Errorf("leader %d takes %v, the median is %v", i, ns, want)
			}
		}
	}
}

// drawnTopologies are machines of two and three levels, some of unequal nodes.
var drawnTopologies = []string{"2x1", "1x5", "5x3", "4x2/rr", "2x2x3", "3x2x2", "a:1,b:4,c:2", "1x1"}

// shares reports whether two ranks share a domain of level k and none inside it.
func shares(on *levels.Topology, k int, p pair) bool {
	return on.Domain(p.a, k) == on.Domain(p.b, k) && (k == 0 || on.Domain(p.a, k-1) != on.Domain(p.b, k-1))
}

// Pairs that speak at a level are of ranks that meet there. No rank is in two of them, and no two
// ranks that could be a pair are left over.
func TestPairs(t *testing.T) {
	for _, spec := range drawnTopologies {
		on := tasktest.Topology(t, spec)
		for k := range on.Depth() {
			all := everybody(on, k)
			taken := map[levels.Rank]bool{}
			for _, p := range all {
				if !shares(on, k, p) || taken[p.a] || taken[p.b] {
					t.Errorf("%s, level %d: %v in %v", spec, k, p, all)
				}
				taken[p.a], taken[p.b] = true, true
			}
			meet := false
			for a := range levels.Rank(on.Size()) {
				for b := range a {
					if p := (pair{b, a}); shares(on, k, p) {
						meet = true
						if !taken[a] && !taken[b] {
							t.Errorf("%s, level %d: %v is left over by %v", spec, k, p, all)
						}
					}
				}
			}
			some := partners(on, k)
			if meet != (len(some) > 0) {
				t.Errorf("%s, level %d: partners %v, but ranks meet: %t", spec, k, some, meet)
			}
			for i, p := range some {
				if !shares(on, k, p) || slices.ContainsFunc(some[:i], func(q pair) bool { return q.a == p.a || q.b == p.b }) {
					t.Errorf("%s, level %d: partners %v", spec, k, some)
				}
				if k > 0 && (on.Domain(p.a, k-1) != on.Domain(some[0].a, k-1) || on.Domain(p.b, k-1) != on.Domain(some[0].b, k-1)) {
					t.Errorf("%s, level %d: %v is of other domains than %v", spec, k, p, some[0])
				}
			}
		}
	}
}

// The name of a way is read again, and no other name is one.
func TestWayNames(t *testing.T) {
	for w := Turns; w < maxWay; w++ {
		text, err := w.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var again Way
		if err := again.UnmarshalText(text); err != nil || again != w {
			t.Errorf("%v was written as %q and read as %v, %v", w, text, again, err)
		}
	}
	var w Way
	for _, text := range []string{"", "invalid", "Turns"} {
		if err := w.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is %v", text, w)
		}
	}
	if got := maxWay.String() + Way(0).String(); got != "invalidinvalid" {
		t.Errorf("ways that are none are %s", got)
	}
}

// A line has as many segments as it is to have, as large as those of the request, and a pitch of its own.
func TestFullSegments(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for range 100 {
		r := tasktest.Request(tasks.Bcast, 4*(1+rng.Int64N(1<<20)))
		p := tasks.Plan{Shape: tasks.HanLockstep, Segment: 4 << rng.IntN(14), Window: 4}
		n := 1 + rng.Int64N(30)
		of, cut := fullSegments(r, p, n)
		if got := costs.Segments(of, cut); got != n || cut.Segment > p.Segment || cut.Segment != costs.SegmentBytes(r, p) || of.Pitch != 0 {
			t.Errorf("%v by %v: %d segments of %d bytes, want %d of %d", r, p, got, cut.Segment, n, costs.SegmentBytes(r, p))
		}
	}
}
