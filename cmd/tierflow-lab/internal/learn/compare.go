package learn

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/charts"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/learn"
	"github.com/tierflow/tierflow/planner/tune"
)

// contests are the ways to compare.
var contests = []learningWay{
	{Name: "random", Options: learn.Options{Words: learn.AsNumbers, Pick: learn.AtRandom, NoPrior: true}},
	{Name: "paper", Options: learn.Options{Words: learn.AsNumbers, Pick: learn.BySpread, NoPrior: true}},
	{Name: "gain of numbers", Options: learn.Options{Words: learn.AsNumbers, NoPrior: true}},
	{Name: "gain", Options: learn.Options{NoPrior: true}},
	{Name: "learn with assumed prices", assumed: true},
	{Name: "learn"},
}

// wayNames lists the names of contests.
func wayNames() []string { return kit.Words(contests, func(c learningWay) string { return c.Name }) }

// longest is the share of the time of all measurements that a way has at most.
const longest = 0.5

// good is the mean slowdown that contents the paper.
const good = 1.03

// setResult is how the ways do with one set.
type setResult struct {
	Set  string      `json:"set"`
	Ways []wayResult `json:"ways"`
}

// wayResult is how one way does: means over seeds, but for Worst.
type wayResult struct {
	Name         string  `json:"name"`
	To           float64 `json:"seconds_to_1.03"` // of measurements, until the mean slowdown was at most 1.03; −1: it never was
	Seconds      float64 `json:"seconds"`         // until the way stopped
	Slowdown     float64 `json:"slowdown"`        // then, over sizes of powers of two
	Odd          float64 `json:"odd_slowdown"`    // over others
	Worst        float64 `json:"worst"`           // of all points and seeds
	Measurements float64 `json:"measurements"`
	Checked      float64 `json:"seconds_checked,omitempty"` // of learn: until the choices were measured, too
	CheckedWorst float64 `json:"worst_checked,omitempty"`   // then, of all points and seeds

	steps []progress // of the first seed
}

// trial says how ways are compared.
type trial struct {
	ways  []string // names; empty: all
	seed  uint64   // the first one
	seeds int
	racks int // of equally many nodes; machines in different racks are measured at one time; 0: none is beside another
}

// places returns the slots of machines measured at one time; nil: machines are measured one at a time.
func (t trial) places(s *recordedSet, name string) (*tune.Slots, error) {
	if t.racks == 0 {
		return nil, nil
	}
	most := 0
	for _, r := range s.Points {
		most = max(most, r.Nodes)
	}
	if most%t.racks != 0 {
		return nil, kit.Usagef("--racks %d: %s has machines of up to %d nodes; allowed are numbers that divide these", t.racks, name, most)
	}
	on, err := levels.Parse(fmt.Sprintf("%dx%dx1x1", t.racks, most/t.racks))
	if err != nil {
		return nil, err
	}
	return tune.NewSlots(on), nil
}

// compare lets all ways learn a set. Choices by prices come first: they need no measurements.
func compare(ctx context.Context, s *recordedSet, name string, t trial) (setResult, error) {
	all := setResult{Set: name}
	places, err := t.places(s, name)
	if err != nil {
		return all, err
	}
	every, n := s.everything()
	all.Ways = append(all.Ways, wayResult{Name: "exhaustive", To: every, Seconds: every, Slowdown: 1, Odd: 1, Worst: 1, Measurements: n})
	for _, o := range s.Methods {
		slow := make([]float64, len(o.NS))
		for i, ns := range o.NS {
			slow[i] = ns / s.Points[i].best()
		}
		all.Ways = append(all.Ways, s.fillUnlearned(wayResult{Name: o.Method, To: o.Seconds, Seconds: o.Seconds}, slow))
	}
	known := s.Machine
	if known == nil {
		known = machine.Assumed()
	}
	for _, c := range contests {
		m := known
		if c.assumed {
			m = machine.Assumed()
		}
		prices, err := s.prices(m)
		if err != nil {
			return all, err
		}
		if c.Options == (learn.Options{}) {
			slow := s.slowdowns(func(row int) int { return cheapest(prices[row]) })
			way := wayResult{Name: "prices"}
			if c.assumed {
				way.Name = "assumed prices"
			}
			all.Ways = append(all.Ways, s.fillUnlearned(way, slow))
		}
		if len(t.ways) > 0 && !slices.Contains(t.ways, c.Name) {
			continue
		}
		way := wayResult{Name: c.Name}
		for k := range t.seeds {
			c.Options.Seed = t.seed + uint64(k)
			r := s.newReplayed(c, prices)
			steps := r.replay(ctx, every*longest, places)
			if ctx.Err() != nil {
				return all, fmt.Errorf("interrupted: %w", context.Cause(ctx))
			}
			if k == 0 {
				way.steps = steps
			}
			way.add(steps, float64(t.seeds))
			if c.Options.Pick == learn.ByGain {
				checked := r.check(steps[len(steps)-1])
				way.Checked, way.CheckedWorst = way.Checked+checked.Seconds/float64(t.seeds), max(way.CheckedWorst, checked.Worst)
			}
		}
		all.Ways = append(all.Ways, way)
	}
	return all, nil
}

// everything returns how long it takes to measure the whole set, seconds, and the number of
// measurements.
func (s *recordedSet) everything() (seconds, n float64) {
	for i, r := range s.Points {
		for k, ns := range r.NS {
			if ns > 0 {
				seconds, n = seconds+s.spent(i, k), n+1
			}
		}
	}
	return seconds, n
}

// fillUnlearned fills in a way by its choices' slowdowns, if it learns nothing.
func (s *recordedSet) fillUnlearned(w wayResult, slow []float64) wayResult {
	end := s.sum(slow, progress{})
	w.Slowdown, w.Odd, w.Worst = end.Slowdown, end.Odd, end.Worst
	if end.All > good {
		w.To = -1
	}
	return w
}

// add counts one of some seeds. A way has to be good at some time with all of them.
func (w *wayResult) add(steps []progress, seeds float64) {
	first, end := -1.0, steps[len(steps)-1]
	for _, st := range steps {
		if st.All <= good {
			first = st.Seconds
			break
		}
	}
	if first < 0 || w.To < 0 {
		w.To = -1
	} else {
		w.To += first / seeds
	}
	w.Seconds, w.Slowdown, w.Odd = w.Seconds+end.Seconds/seeds, w.Slowdown+end.Slowdown/seeds, w.Odd+end.Odd/seeds
	w.Worst, w.Measurements = max(w.Worst, end.Worst), w.Measurements+float64(len(steps))/seeds
}

// cheapest returns the plan with the lowest price; −1: there is none.
func cheapest(prices []float64) int {
	best := -1
	for k, ns := range prices {
		if ns > 0 && (best < 0 || ns < prices[best]) {
			best = k
		}
	}
	return best
}

// figure draws the mean slowdown over the time of all measurements so far, a plot for each set,
// as figures 3 and 10 of the paper.
func figure(all []setResult) charts.Panels {
	panels := charts.Panels{Title: "slowdown of what is chosen after some time of measuring, first seed"}
	for _, one := range all {
		p := charts.Plot{Title: one.Set, X: "s of measurements", Y: "mean slowdown − 1", LogY: true, Style: charts.Lines}
		every := one.Ways[0].Seconds
		var times []float64
		for k := range 25 {
			at := every * math.Pow(10, float64(k-24)/6)
			times = append(times, at)
			name := ""
			if k%6 == 0 {
				name = fmt.Sprintf("%.2g", at)
			}
			p.Names = append(p.Names, name)
		}
		for _, way := range one.Ways {
			series := charts.Series{Name: way.Name}
			for _, at := range times {
				series.Values = append(series.Values, way.at(at))
			}
			p.Series = append(p.Series, series)
		}
		panels.Plots = append(panels.Plots, p)
	}
	return panels
}

// least is drawn in place of a slowdown of 1, less 1.
const least = 1e-4

// at returns the slowdown less 1 after some seconds; NaN: nothing was measured. A way without
// steps knows all at its end.
func (w *wayResult) at(seconds float64) float64 {
	slow := math.NaN()
	if w.steps == nil && w.Seconds <= seconds*(1+1e-9) {
		return max(w.Slowdown-1, least)
	}
	for _, st := range w.steps {
		if st.Seconds > seconds {
			break
		}
		slow = max(st.Slowdown-1, least)
	}
	if math.IsInf(slow, 0) {
		return math.NaN()
	}
	return slow
}
