package costs

import (
	"fmt"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Priced is a [Makeup] with the curves of a book. It prices any size of message and
// segment, as far as the book has them by then.
type Priced struct {
	makeup  *Makeup
	singles []*Curve
	flows   [][]flowing
	one     *Curve // all phases, one segment
	many    *Curve // and many
}

// flowing is a unit of many segments.
type flowing struct {
	curve  *Curve
	phases []int
}

// On returns the makeup with the curves of a book.
func (m *Makeup) On(b *Book) *Priced {
	x := &Priced{makeup: m, one: b.Curve(m.One.Key), many: b.Curve(m.Many.Key)}
	for _, s := range m.Singles {
		x.singles = append(x.singles, b.Curve(s.Key))
	}
	for _, level := range m.Flows {
		var all []flowing
		for _, f := range level {
			all = append(all, flowing{b.Curve(f.Key), f.Phases})
		}
		x.flows = append(x.flows, all)
	}
	return x
}

// Cut is how a message is cut into segments.
type Cut struct {
	Bytes    int64   // of a full segment
	Segments int64   // 1 or more
	Last     float64 // share of a full segment in the last one; 1: it is full
}

// CutOf returns how a plan cuts a request.
func CutOf(r tasks.Request, p tasks.Plan) Cut {
	c := Cut{Bytes: SegmentBytes(r, p), Last: 1}
	elems, n := tasks.Segments(r, p)
	if c.Segments = max(n, 1); n > 1 && elems > 0 {
		c.Last = float64(r.Count-(n-1)*elems) / float64(elems)
	}
	return c
}

// Time returns the time of a cut message, ns. Its first segment takes fill, and each further one
// each. A pass over a graph ends before the next one begins.
func (c Cut) Time(fill, each float64) float64 {
	whole := int64(0)
	if c.Segments > tasks.MaxSegments {
		whole = (c.Segments - 1) / tasks.MaxSegments
	}
	ns := float64(whole) * (fill + (tasks.MaxSegments-1)*each)
	if rest := c.Segments - whole*tasks.MaxSegments; rest > 1 {
		return ns + fill + (float64(rest-2)+c.Last)*each
	}
	return ns + fill
}

// NS predicts the time of a cut message:
//
//	fill + (segments − 1) × the slowest level
//
// Fill is the phases one after the other, as a segment passes through them. Levels overlap.
// Within nodes the phases share the processors, so their times add up. It is false if the
// book lacks a unit for any size of segment.
func (x *Priced) NS(c Cut) (float64, bool) {
	fill, known := x.Fill(c.Bytes)
	if !known || c.Segments < 2 {
		return c.Time(fill, 0), known
	}
	each, known := x.Each(c.Bytes)
	return c.Time(fill, each), known
}

// Fill returns the time of the phases one after the other with a segment of some bytes, ns.
func (x *Priced) Fill(bytes int64) (ns float64, known bool) {
	for _, s := range x.singles {
		one, known := s.Alone(bytes)
		if !known {
			return 0, false
		}
		ns += one
	}
	return ns, true
}

// Each returns the time added by each further segment, ns.
func (x *Priced) Each(bytes int64) (ns float64, known bool) {
	_, ns, known = x.slowestLevel(bytes)
	return ns, known
}

// Makeup returns the priced units.
func (x *Priced) Makeup() *Makeup { return x.makeup }

// slowestLevel returns the level that adds most for each further segment, and how much, ns.
func (x *Priced) slowestLevel(bytes int64) (level int, ns float64, known bool) {
	for k, all := range x.flows {
		sum := 0.0
		for i := range all {
			one, known := x.eachFurther(&all[i], bytes)
			if !known {
				return 0, 0, false
			}
			sum += one
		}
		if sum > ns {
			level, ns = k, sum
		}
	}
	return level, ns, len(x.flows) > 0
}

// eachFurther returns a unit's time for a further segment: the mean over all measured ones but the
// first. Times from one completion to the next say less. Kernels queue messages, so segments
// complete late at first and early in the end.
func (x *Priced) eachFurther(f *flowing, bytes int64) (float64, bool) {
	fill := func(bytes int64) (ns float64) {
		for _, at := range f.phases {
			one, _ := x.singles[at].Alone(bytes)
			ns += one
		}
		return ns
	}
	ns, known := f.curve.valueAt(bytes, func(p *point) float64 { return p.meanPace(fill(p.bytes)) })
	if only := f.curve.points; len(only) == 1 {
		ns *= fill(bytes) / max(fill(only[0].bytes), 1) // as one segment grows
	}
	return ns, known
}

// Flows lists the units of many segments.
func (x *Priced) Flows() (all []Unit) {
	for _, level := range x.makeup.Flows {
		all = append(all, level...)
	}
	return all
}

// Missing returns the first unit without a measurement in the book; of one segment if cut is false.
func (x *Priced) Missing(cut bool) (Unit, bool) {
	for i, s := range x.singles {
		if len(s.points) == 0 {
			return x.makeup.Singles[i], true
		}
	}
	for k, level := range x.flows {
		for i := range level {
			if cut && len(level[i].curve.points) == 0 {
				return x.makeup.Flows[k][i], true
			}
		}
	}
	return Unit{}, false
}

// Together returns the time of the first of several segments, and that of each further one, ns.
// They are of all phases measured together, with segments of so many bytes. So each further one is
// the stable stage with its company: levels overlap in part, and hinder each other (HAN, section
// III-A2, equations 3 and 4).
func (x *Priced) Together(bytes int64) (first, each float64, known bool) {
	at, known := x.one.findPoint(bytes)
	if !known {
		return 0, 0, false
	}
	first = x.one.points[at].alone
	each = x.many.Pace(bytes, first)
	return first, each, each > 0
}

// termsOf returns the summands of NS, or those of [Priced.Together] if it is known.
func (x *Priced) termsOf(c Cut) ([]Term, error) {
	if first, each, known := x.Together(c.Bytes); known && c.Segments > 1 {
		key := x.makeup.Many.Key
		key.Segment = c.Bytes
		return append([]Term{{Name: "first " + key.Task, Count: 1, NS: first, Key: key}}, c.furtherTerms(key, each)...), nil
	}
	if u, missing := x.Missing(c.Segments > 1); missing {
		return nil, fmt.Errorf("%w: %v", ErrUnmeasured, u.Key)
	}
	var terms []Term
	for i, s := range x.singles {
		one, _ := s.Alone(c.Bytes)
		key := x.makeup.Singles[i].Key
		terms = append(terms, Term{Name: key.Task, Count: 1, NS: one, Key: key})
	}
	if c.Segments < 2 {
		return terms, nil
	}
	level, each, _ := x.slowestLevel(c.Bytes)
	key := x.makeup.Flows[level][0].Key
	return append(terms, c.furtherTerms(key, each)...), nil
}

// furtherTerms are the terms of all segments after the first.
func (c Cut) furtherTerms(key Key, each float64) []Term {
	return []Term{
		{Name: "each " + key.Task, Count: c.Segments - 2, NS: each, Key: key},
		{Name: "the last", Count: 1, NS: c.Last * each, Key: key},
	}
}

// PredictByTasks is [Predict] from tasks alone. These were measured by themselves, or all together.
func PredictByTasks(r tasks.Request, t *levels.Topology, p tasks.Plan, b *Book) (Prediction, error) {
	x := pricing{book: b, Prediction: Prediction{Request: r, Plan: p, Segments: Segments(r, p)}}
	err := x.byTasks(t)
	if err != nil {
		return x.Prediction, fmt.Errorf("predict %v: %w", r, err)
	}
	return x.Prediction, nil
}

func (x *pricing) byTasks(t *levels.Topology) error {
	m, err := MakeupOf(x.Request, t, x.Plan)
	if err != nil {
		return err
	}
	cut := CutOf(x.Request, x.Plan)
	priced := m.On(x.book)
	terms, err := x.pricePasses(func(u int64) ([]Term, error) {
		part := Cut{Bytes: cut.Bytes, Segments: u, Last: 1}
		if u == x.Segments%tasks.MaxSegments {
			part.Last = cut.Last
		}
		return priced.termsOf(part)
	})
	if err != nil {
		return err
	}
	x.Model = TaskModel
	x.keepSlower(0, terms)
	return nil
}
