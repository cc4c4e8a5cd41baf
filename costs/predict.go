package costs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// ErrUnmeasured is wrapped by errors of predictions without a cost in the book.
var ErrUnmeasured = errors.New("cost has not been measured")

// The models, as [Prediction.Model] names them.
const (
	StageModel    = "stages"        // fill, stable, drain
	CriticalModel = "critical path" // of single tasks
	TaskModel     = "tasks"         // measured by themselves, see [Makeup]
	PipelineModel = "pipeline"      // segment completions
)

// Prediction is the predicted time of one request with one plan.
type Prediction struct {
	Request  tasks.Request
	Plan     tasks.Plan
	Model    string
	NS       float64 // of the slowest leader
	Leader   int     // the slowest: a group of level 0
	Segments int64
	Terms    []Term // of that leader; they add up to NS
}

// Term is one summand: Count times NS.
type Term struct {
	Name  string // a stage or task kind: sbib; of a pipeline: one by itself, each stable, …
	Count int64
	NS    float64 // once
	Key   Key     // of the entry it was taken from
}

// Explain says what the prediction is made of, a line per term, times in
// microseconds.
func (p Prediction) Explain() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v, plan %v\n", p.Request, p.Plan)
	fmt.Fprintf(&b, "  predicted %.1f µs by %s: %d segment%s, slowest is the leader of group %d\n",
		p.NS/1e3, p.Model, p.Segments, pluralEnd(p.Segments), p.Leader)
	for _, t := range p.Terms {
		fmt.Fprintf(&b, "  %10.1f µs = %4d × %9.1f  %s\n", float64(t.Count)*t.NS/1e3, t.Count, t.NS/1e3, t.Name)
	}
	return b.String()
}

func pluralEnd(n int64) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// Predict prices a request with a plan from the book's costs, and names the entries it used in its terms. Lockstep is
// priced by stage tasks, dataflow shapes by their pipeline; of these a flat shape, or one segment,
// along the critical path of single tasks if the book has no pipeline. If such costs are missing,
// tasks measured by themselves serve. A missing cost is [ErrUnmeasured], and names its key.
func Predict(r tasks.Request, t *levels.Topology, p tasks.Plan, b *Book) (Prediction, error) {
	x := pricing{book: b, Prediction: Prediction{Request: r, Plan: p, Segments: Segments(r, p)}}
	key, err := PipelineKey(r, t, p)
	if err != nil {
		return x.Prediction, err
	}
	switch _, known := b.Pipeline(key); {
	case x.Segments == 0:
		return x.Prediction, nil
	case p.Shape == tasks.HanLockstep:
		x.Model = StageModel
		err = x.priceSlowest(t, x.priceStages)
	case known:
		x.Model = PipelineModel
		err = x.pricePipeline(key)
	case p.Shape.IsFlat() || x.Segments == 1:
		// Without other phases to overlap with, a leader's tasks are a chain.
		x.Model = CriticalModel
		err = x.priceSlowest(t, x.priceStages)
	default:
		err = fmt.Errorf("%w: pipeline %v", ErrUnmeasured, key)
	}
	if errors.Is(err, ErrUnmeasured) && x.byTasks(t) == nil {
		err = nil
	}
	if err != nil {
		return x.Prediction, fmt.Errorf("predict %v: %w", r, err)
	}
	return x.Prediction, nil
}

// pricing is a prediction in the making.
type pricing struct {
	Prediction
	book *Book
}

// pricePasses calls price for a whole pass and for the rest, and joins their terms: a
// pass ends before the next one begins.
func (x *pricing) pricePasses(price func(u int64) ([]Term, error)) ([]Term, error) {
	n, rest := x.Segments/tasks.MaxSegments, x.Segments%tasks.MaxSegments
	var all []Term
	if n > 0 {
		terms, err := price(tasks.MaxSegments)
		if err != nil {
			return nil, err
		}
		for _, t := range terms {
			t.Count *= n
			all = append(all, t)
		}
	}
	if rest == 0 {
		return all, nil
	}
	terms, err := price(rest)
	return append(all, terms...), err
}

// priceSlowest takes the terms of the slowest leader.
func (x *pricing) priceSlowest(t *levels.Topology, price func(t *levels.Topology, group int, lead levels.Rank, u int64) ([]Term, error)) error {
	h, err := tasks.Hierarchy(x.Request, t, x.Plan)
	if err != nil {
		return err
	}
	for i, g := range h.Groups(0) {
		terms, err := x.pricePasses(func(u int64) ([]Term, error) { return price(t, i, g.Lead(), u) })
		if err != nil {
			return err
		}
		x.keepSlower(i, terms)
	}
	return nil
}

// keepSlower makes a leader's terms the prediction's if they take longer.
func (x *pricing) keepSlower(leader int, terms []Term) {
	ns := 0.0
	for _, t := range terms {
		ns += float64(t.Count) * t.NS
	}
	if ns > x.NS || x.Terms == nil {
		x.NS, x.Leader, x.Terms = ns, leader, terms
	}
}

// priceStages prices u segments on one leader. With as many segments as phases, k, each stage of
// the pipeline comes once. Each further segment adds a stage with all phases in flight (HAN,
// equations 3 and 4).
//
//	k = 2    ib  sbib × (1 + u−k)  sb
func (x *pricing) priceStages(t *levels.Topology, group int, lead levels.Rank, u int64) ([]Term, error) {
	g, err := tasks.Expand(First(x.Request, x.Plan, min(u, tasks.MaxSegments)), t, x.Plan, lead)
	if err != nil {
		return nil, err
	}
	k := int64(len(g.Phases))
	if u > k {
		if g, err = tasks.Expand(First(x.Request, x.Plan, k), t, x.Plan, lead); err != nil {
			return nil, err
		}
	}
	stages, keys, err := StageKeys(g)
	if err != nil {
		return nil, err
	}
	var terms []Term
	for i, s := range stages {
		count := int64(1)
		if int64(s.Index) == k-1 && u > k {
			count += u - k
		}
		if last := len(terms) - 1; last >= 0 && terms[last].Key == keys[i] {
			terms[last].Count += count
			continue
		}
		c, ok := x.book.Cost(keys[i])
		if !ok {
			return nil, fmt.Errorf("%w: %v", ErrUnmeasured, keys[i])
		}
		terms = append(terms, Term{Name: s.Name, Count: count, NS: c.leaderTime(group), Key: keys[i]})
	}
	return terms, nil
}

// leaderTime returns the time of a group's leader. Under another root that leader may not
// have had the task; then it is P50, the slowest leader's time.
func (c Cost) leaderTime(group int) float64 {
	if group < len(c.Leaders) && c.Leaders[group] > 0 {
		return c.Leaders[group]
	}
	return c.P50
}

// pricePipeline prices by segment completions.
func (x *pricing) pricePipeline(key Key) error {
	p, _ := x.book.Pipeline(key)
	for i, c := range p.Leaders {
		terms, err := x.pricePasses(func(u int64) ([]Term, error) {
			if _, err := p.NS(u); err != nil {
				return nil, err
			}
			return c.termsOf(u, key), nil
		})
		if err != nil {
			return err
		}
		x.keepSlower(i, terms)
	}
	return nil
}

// termsOf are the summands of [Completion.timeOf].
func (c Completion) termsOf(u int64, key Key) []Term {
	terms := []Term{{"one by itself", 1, c.Alone, key}}
	n := int64(len(c.Done))
	if few := min(u, n) - 1; few > 0 {
		terms = append(terms, Term{"each as measured", few, c.eachTime(), key})
	}
	if more := u - n; more > 0 {
		terms = append(terms, Term{"each stable", more, c.Stable, key})
	}
	return terms
}
