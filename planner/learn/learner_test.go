package learn_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/planner/learn"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// trial is a collective with three algorithms on machines of 2 to 64 nodes, with sizes of 8 bytes
// to 1 MiB, and prices that are wrong by up to a third.
func trial() (points []learn.Point, ns []float64) {
	choice := 0
	for nodes := 2.0; nodes <= 64; nodes *= 2 {
		for bytes := 8.0; bytes <= 1<<20; bytes *= 2 {
			rounds := math.Log2(nodes)
			for k, t := range []float64{rounds * (20e3 + bytes), 2*rounds*20e3 + 2*bytes, (rounds+nodes)*20e3 + 1.5*bytes} {
				points = append(points, learn.Point{
					Choice: choice, Features: []float64{rounds, 0, math.Log2(bytes), float64(k)},
					Prior: t * (1 + math.Sin(bytes+float64(k))/3),
				})
				ns = append(ns, t)
			}
			choice++
		}
	}
	return points, ns
}

// run lets a learner measure until it has converged. It returns how many points that took, the
// mean slowdown of its choices, and what it asked for.
func run(o learn.Options) (n int, slow float64, asked []string) {
	points, ns := trial()
	l := learn.New(points, o)
	for !l.Converged() {
		next, ok := l.Next()
		if !ok {
			break
		}
		n++
		l.Learn(next.At, ns[next.At])
		asked = append(asked, fmt.Sprintf("%d %v %s", next.At, next.Odd, next.Why))
	}
	l.Train()
	choices := points[len(points)-1].Choice + 1
	for c := range choices {
		best := math.Inf(1)
		for i, p := range points {
			if p.Choice == c {
				best = min(best, ns[i])
			}
		}
		slow += ns[l.Best(c)] / best / float64(choices)
	}
	return n, slow, asked
}

// A learner that converges has measured a part of the points, and chooses well.
func TestLearner(t *testing.T) {
	points, _ := trial()
	for _, c := range []struct {
		words string
		most  float64 // slowdown
		part  float64 // of the points
	}{
		{"", 1.03, .7},
		{"no-prior", 1.03, .8},
		{"cost-blind", 1.03, .8},
		{"variance,no-prior,numbers", 1.2, .9},
		{"variance,bootstrap", 1.2, 1},
	} {
		o, err := learn.ParseOptions(c.words)
		if err != nil {
			t.Fatal(err)
		}
		o.Seed, o.Trees = 3, 15
		n, slow, asked := run(o)
		if slow > c.most || float64(n) > c.part*float64(len(points)) {
			t.Errorf("%q: %d of %d points, slowdown %.3f", c.words, n, len(points), slow)
		}
		odd := 0
		for _, text := range asked {
			if strings.Contains(text, "true") {
				odd++
			}
		}
		if odd != n/5 {
			t.Errorf("%q: %d of %d are odd, want every fifth", c.words, odd, n)
		}
		if _, _, again := run(o); !slices.Equal(asked, again) {
			t.Errorf("%q: asked otherwise the second time: %s", c.words, cmp.Diff(asked, again))
		}
	}
}

// What fails, or stands aside, is not asked for and not chosen.
func TestLearnerPassesOver(t *testing.T) {
	points, ns := trial()
	for i := range points {
		points[i].Aside = points[i].Choice%4 == 1
	}
	l := learn.New(points, learn.Options{Trees: 20, Pick: learn.AtRandom})
	for n, ok := l.Next(); ok; n, ok = l.Next() {
		if points[n.At].Aside {
			t.Fatalf("asks for %+v, which stands aside", points[n.At])
		}
		if n.At%3 == 0 {
			l.Fail(n.At)
		} else {
			l.Learn(n.At, ns[n.At])
		}
	}
	l.Train()
	for c := range points[len(points)-1].Choice + 1 {
		if best := l.Best(c); best%3 == 0 && !points[best].Aside || points[best].Choice != c {
			t.Errorf("choice %d: %d is best", c, best)
		}
	}
}

// Answers change nothing: a learner that is asked and trained at drawn moments asks for the same as
// one that nobody asks.
func TestAnswersChangeNothing(t *testing.T) {
	points, ns := trial()
	for seed := range uint64(4) {
		o := learn.Options{Seed: seed, Trees: 8, Pick: []learn.Pick{learn.ByGain, learn.BySpread}[seed%2]}
		quiet, busy := learn.New(points, o), learn.New(points, o)
		rng := rand.New(rand.NewPCG(seed, 9))
		for range 90 {
			want, _ := quiet.Next()
			for range rng.IntN(3) {
				at := rng.IntN(len(points))
				busy.Predict(at)
				busy.Least(at)
				busy.Best(points[at].Choice)
				if rng.IntN(2) == 0 {
					busy.Train()
				}
			}
			got, _ := busy.Next()
			if got != want || quiet.Converged() != busy.Converged() {
				t.Fatalf("seed %d: asked for %+v, want %+v", seed, got, want)
			}
			quiet.Learn(want.At, ns[want.At])
			busy.Learn(want.At, ns[want.At])
		}
		quiet.Train()
		busy.Train()
		for i := range points {
			if quiet.Predict(i) != busy.Predict(i) {
				t.Fatalf("seed %d, point %d: %v and %v", seed, i, quiet.Predict(i), busy.Predict(i))
			}
		}
	}
}

// Words of plans get a column for each kind; numbers are one column.
func TestCoder(t *testing.T) {
	var plans []tasks.Plan
	for _, text := range []string{
		"shape=flat,fs=all,w=1,ib=adapt/chain/32KiB", "shape=han,fs=64KiB,w=2,ib=nbc/binomial,sb=sm/slots", "shape=flat,fs=all,w=1,ib=nbc/binomial",
	} {
		p := tasktest.Plan(t, text)
		plans = append(plans, p)
	}
	for _, c := range []struct {
		words learn.Words
		plan  int
		want  []float64
	}{
		{learn.InWords, 0, []float64{3, 1, 20, 1, 20, 0, 1, 15, 0, 0}},
		{learn.InWords, 1, []float64{3, 1, 20, 2, 16, 1, 2, -1, 1, -1}},
		{learn.AsNumbers, 0, []float64{3, 1, 20, 1}},
		{learn.AsNumbers, 1, []float64{3, 1, 20, 3}},
	} {
		got := learn.NewCoder(plans, c.words).Features(8, 2, 1<<20, plans[c.plan])
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%v: %s", plans[c.plan], diff)
		}
	}
}

func TestParseOptions(t *testing.T) {
	o, err := learn.ParseOptions("variance,bootstrap,numbers,no-prior,cost-blind")
	if want := (learn.Options{Pick: learn.BySpread, Words: learn.AsNumbers, Bootstrap: true, NoPrior: true, CostBlind: true}); err != nil || o != want {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := learn.ParseOptions("variance,luck"); err == nil || !strings.Contains(err.Error(), `unknown word "luck"; known are variance, random`) {
		t.Error(err)
	}
}
