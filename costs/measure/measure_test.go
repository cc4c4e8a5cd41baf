package measure_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/measure"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/local"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// brief is few repetitions: tests look at what is measured, not at how long it takes.
var brief = stats.Stop{Least: 3, Most: 3}

// onRanks calls f on goroutine ranks and returns what each got; all must get the same.
func onRanks[T any](t *testing.T, topology string, f func(ctx context.Context, b *measure.Bench) (T, error)) T {
	t.Helper()
	topo := tasktest.Topology(t, topology)
	w := local.NewShaped(topo.Size(), executor.Config{}, local.NewNetwork(topo, 1e9, 10*time.Microsecond))
	defer w.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got := make([]T, topo.Size())
	var ranks errgroup.Group
	for r := range got {
		ranks.Go(func() error {
			b, err := measure.New(ctx, w.Endpoint(levels.Rank(r)).Comm(0), topo, all.Submodules())
			if err == nil {
				got[r], err = f(ctx, b)
			}
			if err != nil {
				w.Fail(levels.Rank(r), err)
			}
			return err
		})
	}
	if err := ranks.Wait(); err != nil {
		t.Fatal(err)
	}
	for r := range got {
		if !reflect.DeepEqual(got[r], got[0]) {
			t.Fatalf("rank %d got\n%+v\nrank 0\n%+v", r, got[r], got[0])
		}
	}
	return got[0]
}

const choices = ",fs=4KiB,w=4,i=adapt/binomial,s=sm,ig=adapt/linear,is=adapt/linear,iag=adapt/ring,irs=adapt/ring,ix=adapt/chain,iex=adapt/chain,ia=adapt/linear"

func TestCollective(t *testing.T) {
	for _, shape := range []string{"flat", "han", "han-lockstep"} {
		for _, coll := range tasks.Requestable() {
			p := tasktest.Plan(t, "shape="+shape+choices)
			got := onRanks(t, "2x2", func(ctx context.Context, b *measure.Bench) (measure.Timing, error) {
				return b.Collective(ctx, tasktest.Request(coll, 20<<10), p, brief)
			})
			if got.Slowest.N != 3 || len(got.Series) != 3 || len(got.Ranks) != 4 || got.Slowest.Min <= 0 {
				t.Errorf("%v with %v: %+v; want 3 samples on 4 ranks", coll, p, got)
			}
		}
	}
}

func TestCallsOfSample(t *testing.T) {
	for ns, want := range map[float64]int64{0: 2000, 1000: 2000, 10e3: 500, 2.6e6: 1, 1e9: 1} {
		if got := measure.CallsOfSample(ns); got != want {
			t.Errorf("%g ns: a sample is %d calls, want %d", ns, got, want)
		}
	}
}

// Back to back a sample is as many short calls as take 5 ms, or a single long one. Each root's
// neighbours are on other nodes.
func TestCollectiveBackToBack(t *testing.T) {
	for _, test := range []struct {
		topology, plan string
		request        tasks.Request
		roots          []levels.Rank
		took           time.Duration // by a call
		each           int           // calls in a sample
	}{
		{"2x2", "shape=han" + choices, tasktest.Request(tasks.Bcast, 64), []levels.Rank{0, 2, 1, 3}, 10 * time.Microsecond, 500},
		{"2x2", "shape=han" + choices, tasktest.Request(tasks.Allreduce, 64), []levels.Rank{0}, 2 * time.Millisecond, 2},
		{"2x1", "shape=flat" + choices, tasktest.Request(tasks.Reduce, 4<<20), []levels.Rank{0, 1}, 6 * time.Millisecond, 1},
	} {
		type result struct {
			timing measure.Timing
			follow measure.Following
		}
		got := onRanks(t, test.topology, func(ctx context.Context, b *measure.Bench) (r result, err error) {
			b.Regime = costs.BackToBack
			r.timing, err = b.Collective(ctx, test.request, tasktest.Plan(t, test.plan), brief)
			if err == nil {
				b.StepClock(test.took)
				r.follow, err = b.Follow(ctx, test.request, tasktest.Plan(t, test.plan))
			}
			return r, err
		})
		if !slices.Equal(got.follow.Roots, test.roots) || got.follow.Each != test.each {
			t.Errorf("%v on %s: %+v; want %d calls of roots %v", test.request, test.topology, got.follow, test.each, test.roots)
		}
		if got.timing.Slowest.N != 3 || got.timing.Slowest.Min <= 0 {
			t.Errorf("%v on %s: %+v; want 3 samples", test.request, test.topology, got.timing)
		}
	}
}

// More than a thousand segments run in passes.
func TestCollectiveInPasses(t *testing.T) {
	got := onRanks(t, "2x1", func(ctx context.Context, b *measure.Bench) (measure.Timing, error) {
		return b.Collective(ctx, tasktest.Request(tasks.Bcast, 4*3000), tasktest.Plan(t, "shape=han,fs=4,w=4,i=adapt"), brief)
	})
	if got.Slowest.N != 3 {
		t.Errorf("%+v", got)
	}
}

func TestPipeline(t *testing.T) {
	for _, shape := range []string{"flat", "han"} {
		for _, coll := range tasks.Requestable() {
			p, r := tasktest.Plan(t, "shape="+shape+choices), tasktest.Request(coll, 1<<20)
			got := onRanks(t, "a:3,b:1", func(ctx context.Context, b *measure.Bench) (costs.Pipeline, error) {
				return b.Pipeline(ctx, r, p, brief)
			})
			want := got.Phases + costs.Extra
			if coll == tasks.Barrier {
				want = 1
			}
			leaders := 2
			if shape == "flat" {
				leaders = 1
			}
			if got.Segments != want || len(got.Leaders) != leaders || got.Whole.N != 3 {
				t.Errorf("%v with %v: %d segments, %d leaders, %d samples; want %d, %d, 3", r, p, got.Segments, len(got.Leaders), got.Whole.N, want, leaders)
			}
			book := &costs.Book{}
			topo, _ := levels.Parse("a:3,b:1")
			key, err := costs.PipelineKey(r, topo, p)
			if err != nil {
				t.Fatal(err)
			}
			book.AddPipeline(key, got)
			if x, err := costs.Predict(r, topo, p, book); err != nil || x.NS <= 0 || x.Model != costs.PipelineModel {
				t.Errorf("prediction %+v, error %v", x, err)
			}
		}
	}
}

// Stages finds all that Predict needs, for any number of segments, and measures
// nothing twice.
func TestStagesFillTheBook(t *testing.T) {
	topo, _ := levels.Parse("2x2")
	book := &costs.Book{}
	type found struct {
		Keys   []costs.Key
		Series []costs.Series
	}
	for _, coll := range tasks.Requestable() {
		for _, segments := range []int64{1, 2, 3, 20} {
			p, r := tasktest.Plan(t, "shape=han-lockstep"+choices), tasktest.Request(coll, segments<<12)
			var filled *costs.Book
			got := onRanks(t, "2x2", func(ctx context.Context, b *measure.Bench) (found, error) {
				mine := &costs.Book{}
				for _, k := range book.Keys() {
					c, _ := book.Cost(k)
					mine.Add(k, c)
				}
				series, err := b.Stages(ctx, r, p, brief, mine)
				if b.Rank() == 0 {
					filled = mine
				}
				return found{mine.Keys(), series}, err
			})
			book = filled
			x, err := costs.Predict(r, topo, p, book)
			if err != nil || x.NS <= 0 || x.Model != costs.StageModel {
				t.Errorf("%v: prediction %+v, error %v\nbook %v", r, x, err, got.Keys)
			}
		}
	}
	for _, name := range strings.Fields("sr ir ib sb irsr ibir sbib ibirsr sbibir sbibirsr sg iag") {
		found := false
		for _, k := range book.Keys() {
			found = found || k.Task == name
		}
		if !found {
			t.Errorf("the book has no %s", name)
		}
	}
	series := onRanks(t, "2x2", func(ctx context.Context, b *measure.Bench) ([]costs.Series, error) {
		return b.Stages(ctx, tasktest.Request(tasks.Bcast, 80<<10), tasktest.Plan(t, "shape=han-lockstep"+choices), brief, book)
	})
	if series != nil {
		t.Errorf("measured again: %v", series)
	}
}

func TestStagesSettle(t *testing.T) {
	got := onRanks(t, "3x2", func(ctx context.Context, b *measure.Bench) ([]costs.Series, error) {
		return b.Stages(ctx, tasktest.Request(tasks.Bcast, 80<<10), tasktest.Plan(t, "shape=han-lockstep"+choices), brief, &costs.Book{})
	})
	if len(got) != 3 {
		t.Fatalf("%d series, want one of sbib on each of 3 leaders", len(got))
	}
	for i, s := range got {
		if s.Name != "sbib" || s.Leader != i || len(s.NS) <= costs.Extra {
			t.Errorf("series %d: %+v", i, s)
		}
	}
}

func TestOverlap(t *testing.T) {
	kinds := [2]tasks.Kind{{Symbol: 'i', Op: tasks.Bcast}, {Symbol: 's', Op: tasks.Bcast}}
	got := onRanks(t, "3x2", func(ctx context.Context, b *measure.Bench) (measure.Overlapped, error) {
		return b.Overlap(ctx, tasktest.Request(tasks.Bcast, 64<<10), tasktest.Plan(t, "shape=han"+choices), kinds, brief)
	})
	for _, c := range []costs.Cost{got.Alone[0], got.Alone[1], got.Together} {
		if c.N != 3 || len(c.Leaders) != 3 || c.Min <= 0 {
			t.Errorf("%+v", c)
		}
	}
}
