package forest_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs/forest"
)

func train(t testing.TB, x [][]float64, y []float64, o forest.Options) *forest.Forest {
	t.Helper()
	f, err := forest.Train(x, y, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A forest explains as much of what it has not seen as the trees of the reference do.
func TestReference(t *testing.T) {
	for _, d := range datasets {
		rng := rand.New(rand.NewPCG(7, 1))
		x, y := d.draw(100, rng)
		unseen, truth := d.draw(400, rng)
		f, all := train(t, x, y, forest.Options{Seed: 3, Trees: 400}), bagged(x, y, 40, 5)
		is, want := make([]float64, len(truth)), make([]float64, len(truth))
		for i, row := range unseen {
			is[i] = f.Predict(row)
			for _, one := range all {
				want[i] += one.predict(row) / float64(len(all))
			}
		}
		if got, ref := explained(is, truth), explained(want, truth); math.Abs(got-ref) > .02 || ref < .7 {
			t.Errorf("%s: R² %.3f, of the reference %.3f", d.name, got, ref)
		}
		wrong, guess := 0.0, 0.0
		for i := range is {
			wrong += (is[i] - truth[i]) * (is[i] - truth[i]) / float64(len(is))
		}
		for i, p := range f.Unseen() { // each of 400 bags lacks a third
			guess += (p - y[i]) * (p - y[i]) / float64(len(y))
		}
		if guess < wrong/4 || guess > 4*wrong {
			t.Errorf("%s: the forest thinks that it is wrong by %.3f; it is by %.3f", d.name, guess, wrong)
		}
	}
}

// With one feature no two cuts are alike, and each tree is the reference's of its bag.
func TestTreesAreTheReferences(t *testing.T) {
	one := dataset{"one", 1, func(x []float64, rng *rand.Rand) float64 { return math.Sin(9*x[0]) + rng.NormFloat64() }}
	rng := rand.New(rand.NewPCG(11, 1))
	x, y := one.draw(60, rng)
	o := forest.Options{Seed: 2, Trees: 20}
	f := train(t, x, y, o)
	bags, _ := forest.Grown(x, y, o, 20)
	for k, bag := range bags {
		var r rows
		for i := range y {
			for range int(bag[i]) {
				r.x, r.y = append(r.x, x[i]), append(r.y, y[i])
			}
		}
		want := r.grow()
		for at := 0.0; at < 1; at += 1e-3 {
			row := []float64{at}
			if is, ref := f.PredictedBy(k, row), want.predict(row); math.Abs(is-ref) > 1e-9 {
				t.Fatalf("tree %d at %.3f: %v, the reference %v", k, at, is, ref)
			}
		}
	}
}

// Each split leaves no more squared errors than any other cut would, and a leaf with different
// values can't be cut.
func TestSplitsAreTheBest(t *testing.T) {
	for _, d := range datasets {
		x, y := d.draw(50, rand.New(rand.NewPCG(13, 1)))
		for i := range x {
			x[i][0] = math.Round(4 * x[i][0]) // equal values, and equal rows
			if i%7 == 0 {
				x[i] = x[0]
			}
		}
		_, all := forest.Grown(x, y, forest.Options{Seed: 1}, 5)
		for _, tree := range all {
			for _, s := range tree {
				var r rows
				for i := range y {
					for range int(s.Weight[i]) {
						r.x, r.y = append(r.x, x[i]), append(r.y, y[i])
					}
				}
				_, _, least, found := r.best()
				switch {
				case s.Feature < 0 && math.Abs(s.Threshold-mean(r.y)) > 1e-9:
					t.Errorf("%s: a leaf predicts %v of %v", d.name, s.Threshold, r.y)
				case s.Feature < 0 && found && squares(r.y) > 1e-12:
					t.Errorf("%s: a leaf of %v could be cut", d.name, r.y)
				case s.Feature >= 0 && r.error(s.Feature, s.Threshold) > least+1e-9:
					t.Errorf("%s: a cut leaves %v; the best %v", d.name, r.error(s.Feature, s.Threshold), least)
				}
			}
		}
	}
}

// A step is learned exactly, and where its examples are far apart the trees are least sure.
func TestStep(t *testing.T) {
	var x [][]float64
	var y []float64
	for i := range 40 {
		x, y = append(x, []float64{float64(i)}), append(y, float64(i/20))
	}
	f := train(t, x, y, forest.Options{})
	for i := range 40 {
		if i < 17 || i > 22 {
			if p := f.Predict(x[i]); p != y[i] || f.Spread(x[i]) != 0 || f.AfterBootstrap(x[i]) > 1e-20 {
				t.Errorf("%d: %v, want %v; spread %v, %v", i, p, y[i], f.Spread(x[i]), f.AfterBootstrap(x[i]))
			}
		}
	}
	if f.Spread([]float64{19.5}) == 0 {
		t.Error("the forest is sure at the step")
	}
}

// The spread is the paper's jackknife as it is written: leave out one tree after the other.
func TestSpreadIsTheJackknife(t *testing.T) {
	d := datasets[0]
	rng := rand.New(rand.NewPCG(17, 1))
	x, y := d.draw(80, rng)
	f := train(t, x, y, forest.Options{Trees: 30})
	rows, _ := d.draw(20, rng)
	for _, row := range rows {
		p := make([]float64, 30)
		for k := range p {
			p[k] = f.PredictedBy(k, row)
		}
		want := 0.0
		for i := range p {
			without := append(append([]float64{}, p[:i]...), p[i+1:]...)
			off := mean(p) - mean(without)
			want += off * off / float64(len(p)-1)
		}
		if got := f.Spread(row); math.Abs(got-want) > 1e-9*want {
			t.Errorf("%v, by leaving out trees %v", got, want)
		}
	}
}

// Both variances are larger where forests of other examples differ more: their orders agree
// with what retraining shows.
func TestVariancesTellWhereForestsDiffer(t *testing.T) {
	d := datasets[2]
	rng := rand.New(rand.NewPCG(19, 1))
	rows, _ := d.draw(60, rng)
	predicted := make([][]float64, len(rows))
	for range 30 {
		x, y := d.draw(60, rng)
		f := train(t, x, y, forest.Options{Trees: 50})
		for i, row := range rows {
			predicted[i] = append(predicted[i], f.Predict(row))
		}
	}
	x, y := d.draw(60, rng)
	f := train(t, x, y, forest.Options{Trees: 400})
	truth := func(i int) float64 { return squares(predicted[i]) / float64(len(predicted[i])-1) }
	for name, of := range map[string]func([]float64) float64{"over trees": f.Spread, "after bootstrap": f.AfterBootstrap} {
		all := order(len(rows), func(i int) float64 { return of(rows[i]) })
		low, high := 0.0, 0.0
		for k, i := range all {
			if k < len(all)/2 {
				low += truth(i)
			} else {
				high += truth(i)
			}
		}
		if high < 2*low {
			t.Errorf("%s: where it is larger forests differ by %.3f, elsewhere by %.3f", name, high, low)
		}
	}
	sum, is := 0.0, 0.0
	for i, row := range rows {
		sum, is = sum+truth(i), is+f.AfterBootstrap(row)
	}
	if is < sum/4 || is > 4*sum {
		t.Errorf("after bootstrap the variances add up to %.2f; of retrained forests to %.2f", is, sum)
	}
}

// Equal seeds give equal forests, whatever was trained before; other seeds give others.
func TestSeeds(t *testing.T) {
	d := datasets[1]
	x, y := d.draw(50, rand.New(rand.NewPCG(23, 1)))
	say := func(seed uint64) string {
		f := train(t, x, y, forest.Options{Seed: seed, Trees: 10})
		return fmt.Sprintln(f.Predict(x[3]), f.Spread([]float64{.5, .5, .5}), f.AfterBootstrap(x[9]))
	}
	one := say(1)
	if two := say(2); one == two {
		t.Error("seeds 1 and 2 give the same")
	}
	if again := say(1); one != again {
		t.Errorf("%s, and again %s", one, again)
	}
}

// A leaf has examples of one value, and constant or equal features split nothing.
func TestLeaves(t *testing.T) {
	d := datasets[2]
	x, y := d.draw(60, rand.New(rand.NewPCG(29, 1)))
	_, all := forest.Grown(x, y, forest.Options{}, 3)
	for _, tree := range all {
		for _, s := range tree {
			for i := range s.Weight {
				if s.Feature < 0 && math.Abs(y[i]-s.Threshold) > 1e-9 {
					t.Errorf("a leaf of %v has an example of %v", s.Threshold, y[i])
				}
			}
		}
	}
	same := [][]float64{{1, 2}, {1, 2}, {1, 2}}
	f := train(t, same, []float64{1, 2, 3}, forest.Options{})
	if p := f.Predict([]float64{0, 9}); p < 1.8 || p > 2.2 {
		t.Errorf("equal rows: %v", p)
	}
}

func TestTrainErrors(t *testing.T) {
	for _, c := range []struct {
		x    [][]float64
		y    []float64
		o    forest.Options
		want string
	}{
		{nil, nil, forest.Options{}, "0 rows and 0 values"},
		{[][]float64{{1}}, []float64{1, 2}, forest.Options{}, "1 rows and 2 values"},
		{[][]float64{{}}, []float64{1}, forest.Options{}, "row 0 has 0 features"},
		{[][]float64{{1}, {1, 2}}, []float64{1, 2}, forest.Options{}, "row 1 has 2 features"},
		{[][]float64{{math.NaN()}}, []float64{1}, forest.Options{}, "feature 0 is NaN"},
		{[][]float64{{1}}, []float64{math.Inf(1)}, forest.Options{}, "value 0 is +Inf"},
		{[][]float64{{1}}, []float64{1}, forest.Options{Trees: -1}, "-1 trees"},
	} {
		if _, err := forest.Train(c.x, c.y, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// Training on 300 examples takes at most 20 ms.
func BenchmarkTrain(b *testing.B) {
	for _, width := range []int{4, 12} {
		b.Run(fmt.Sprintf("examples=300/trees=100/features=%d", width), func(b *testing.B) {
			d := dataset{"", width, datasets[1].of}
			x, y := d.draw(300, rand.New(rand.NewPCG(1, 1)))
			for b.Loop() {
				train(b, x, y, forest.Options{})
			}
		})
	}
}

func BenchmarkSpread(b *testing.B) {
	x, y := datasets[1].draw(300, rand.New(rand.NewPCG(1, 1)))
	f := train(b, x, y, forest.Options{})
	for b.Loop() {
		f.Both(x[7])
	}
}
