package costs

import (
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// TaskModel prices by tasks that were measured by themselves, see [Makeup].
const TaskModel = "tasks"

// curve finds the entries of a unit for other segments than its key's: those next to it in
// size, from below and above. exact says that the book has it for the very size.
func (b *Book) curve(k Key) (low, high int64, exact bool, n int) {
	want := k.Segment
	k.Segment = 0
	all := b.sizes[k]
	at, exact := slices.BinarySearch(all, want)
	switch {
	case exact:
		return want, want, true, len(all)
	case len(all) == 0:
		return 0, 0, false, 0
	case at == 0:
		return all[0], all[0], false, len(all)
	case at == len(all) && at > 1:
		return all[at-2], all[at-1], false, len(all)
	case at == len(all):
		return all[at-1], all[at-1], false, 1
	}
	return all[at-1], all[at], false, len(all)
}

// Measured lists the segment sizes for which the book has a unit, the smallest first.
func (b *Book) Measured(k Key) []int64 {
	k.Segment = 0
	return b.sizes[k]
}

// Time returns a number of a unit for the segment that its key names: as measured, or on
// the straight line through the two nearest sizes. It is false where the book has none.
// Only a single size, or one below all that were measured, counts as it is.
func (b *Book) Time(k Key, of func(Completion) float64) (ns float64, known bool) {
	low, high, _, n := b.curve(k)
	if n == 0 {
		return 0, false
	}
	at := func(bytes int64) float64 {
		key := k
		key.Segment = bytes
		return of(b.pipelines[key].Leaders[0])
	}
	from := at(low)
	if low == high {
		return from, true
	}
	to := at(high)
	part := float64(k.Segment-low) / float64(high-low)
	return max(float64((1-part)*from)+float64(part*to), min(from, to)/2), true
}

// fewWindows is how many windows of segments show the pace at which they complete.
const fewWindows = 4

// flow is what one level of a plan adds for each further segment, ns.
type flow struct {
	each   float64 // up to as many segments as were measured
	stable float64 // beyond
}

// Price predicts the time of u segments from units, of the sizes that their keys name:
//
//	fill + (u−1) × the slowest level
//
// Fill is the phases one after the other, as a segment passes through them. Levels overlap.
// Within nodes the phases share the processors, so their times add up. The last segment is
// a part of a whole one, 1 if it is full. Missing units are an error that names the first one.
func (m *Makeup) Price(b *Book, u int64, last float64) (terms []Term, err error) {
	for _, s := range m.Singles {
		one, known := b.Time(s.Key, func(c Completion) float64 { return c.Alone })
		if !known {
			return nil, fmt.Errorf("%w: %v", ErrUnmeasured, s.Key)
		}
		terms = append(terms, Term{Name: s.Key.Task, Count: 1, NS: one, Key: s.Key})
	}
	if u < 2 {
		return terms, nil
	}
	slowest, measured := Term{}, int64(0)
	stable := 0.0
	for _, level := range m.Flows {
		sum, n := flow{}, int64(0)
		for _, f := range level {
			one, segments, err := m.flow(b, f)
			if err != nil {
				return nil, err
			}
			sum.each += one.each
			sum.stable += one.stable
			n = max(n, segments)
		}
		if sum.each > slowest.NS || slowest.Name == "" {
			slowest = Term{Name: "each " + level[0].Key.Task, NS: sum.each, Key: level[0].Key}
			measured = n
		}
		stable = max(stable, sum.stable)
	}
	slowest.Count = min(u-1, measured) - 1
	terms = append(terms, slowest)
	rest := slowest.NS
	if more := u - 1 - measured; more > 0 {
		terms = append(terms, Term{Name: "each stable", Count: more, NS: stable, Key: slowest.Key})
		rest = stable
	}
	return append(terms, Term{Name: "the last", Count: 1, NS: last * rest, Key: slowest.Key}), nil
}

// flow returns what a unit adds for each further segment, and how many were measured.
func (m *Makeup) flow(b *Book, f Unit) (one flow, segments int64, err error) {
	fill := 0.0
	for _, at := range f.Phases {
		ns, known := b.Time(m.Singles[at].Key, func(c Completion) float64 { return c.Alone })
		if !known {
			return one, 0, fmt.Errorf("%w: %v", ErrUnmeasured, m.Singles[at].Key)
		}
		fill += ns
	}
	n := 0
	end, known := b.Time(f.Key, func(c Completion) float64 { n = max(n, len(c.Done)); return c.all() })
	if !known {
		return one, 0, fmt.Errorf("%w: %v", ErrUnmeasured, f.Key)
	}
	one.stable, _ = b.Time(f.Key, func(c Completion) float64 { return c.Stable })
	one.each = max(0, end-fill) / float64(max(n-1, 1))
	if one.stable == 0 || n < fewWindows*f.Key.Window {
		one.stable = one.each // segments complete a window at a time: few of them show no pace
	}
	return one, int64(n), nil
}

// PredictByTasks is [Predict] from tasks that were measured by themselves, whatever else
// the book has.
func PredictByTasks(r tasks.Request, t *levels.Topology, p tasks.Plan, b *Book) (Prediction, error) {
	x := pricing{book: b, Prediction: Prediction{Request: r, Plan: p, Model: TaskModel, Segments: Segments(r, p)}}
	m, err := MakeupOf(r, t, p)
	if err != nil {
		return x.Prediction, err
	}
	terms, err := x.passes(func(u int64) ([]Term, error) { return m.Price(b, u, lastPart(r, p)) })
	if err != nil {
		return x.Prediction, fmt.Errorf("predict %v: %w", r, err)
	}
	x.keep(0, terms)
	x.count()
	return x.Prediction, nil
}

// lastPart is how much of a full segment the last one of a request is.
func lastPart(r tasks.Request, p tasks.Plan) float64 {
	elems, n := tasks.Segments(r, p)
	if n < 2 || elems == 0 {
		return 1
	}
	return float64(r.Count-(n-1)*elems) / float64(elems)
}
