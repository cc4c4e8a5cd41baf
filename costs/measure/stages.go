package measure

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// mostExtra bounds how long a pipeline is made until its stages settle.
const mostExtra = 2 * costs.Extra

// Stages fills book for [costs.Predict] to price a request by its stage or single tasks. All tasks
// before one are really run before it. So ranks begin it as skewed as in the collective (HAN,
// section III-A): one run of [costs.Extra] segments more than phases shows each stage in its place,
// and the stable one often. It is repeated with more until the stable stages settle.
//
// A request of fewer segments than phases has stages of its own. Costs in rank 0's book aren't
// measured again; if it has all, nothing runs. It returns how the frequent stages settled.
func (b *Bench) Stages(ctx context.Context, r tasks.Request, p tasks.Plan, stop stats.Stop, book *costs.Book) ([]costs.Series, error) {
	return stagesOf(r, p, b.topology, b.Rank(), book, func(l *line, missing int64) (f findings, some bool, err error) {
		if missing, err = b.tellNumber(ctx, missing); err == nil && missing > 0 {
			some = true
			f, err = b.run(ctx, l, stop)
		}
		return f, some, err
	})
}

// stagesOf is Stages. run measures a line if something is missing, and says whether it did.
func stagesOf(r tasks.Request, p tasks.Plan, t *levels.Topology, rank levels.Rank, book *costs.Book, run func(l *line, missing int64) (findings, bool, error)) ([]costs.Series, error) {
	if p.Shape == tasks.Han { // with one segment it is as in lockstep
		p.Shape = tasks.HanLockstep
	}
	one, err := tasks.Expand(costs.First(r, p, 1), t, p, rank)
	if err != nil {
		return nil, fmt.Errorf("measure: %w", err)
	}
	u, k := costs.Segments(r, p), int64(len(one.Phases))
	for extra := int64(costs.Extra); ; extra *= 2 {
		n := k + extra
		switch {
		case p.Shape.IsFlat():
			n = 1 // there are no stages
		case u < k:
			n = u
		}
		l, err := newLine(r, p, t, max(n, 1))
		if err != nil {
			return nil, fmt.Errorf("measure: %w", err)
		}
		found, some, err := run(l, l.missingStages(book))
		if err != nil {
			return nil, fmt.Errorf("measure the stages of %v: %w", l.request, err)
		}
		if !some {
			return nil, nil
		}
		if found.Settled || n != k+extra || extra >= mostExtra {
			for _, e := range found.Entries {
				book.Add(e.Key, e.Cost)
			}
			return found.Series, nil
		}
	}
}

// line is a pipeline in lockstep, as all leaders take part in it.
type line struct {
	request tasks.Request
	plan    tasks.Plan
	leaders []leader
}

// leader is the stages of a leader of a group of level 0.
type leader struct {
	rank   levels.Rank
	stages []tasks.Stage
	keys   []costs.Key // by stage
}

// fullSegments is a request and plan of n full segments, as large as those of r.
func fullSegments(r tasks.Request, p tasks.Plan, n int64) (tasks.Request, tasks.Plan) {
	if bytes := costs.SegmentBytes(r, p); bytes > 0 {
		r.Count, p.Segment = n*(bytes/int64(r.Type.Size())), bytes
	}
	r.Pitch = 0
	return r, p
}

func newLine(r tasks.Request, p tasks.Plan, t *levels.Topology, n int64) (*line, error) {
	l := &line{}
	l.request, l.plan = fullSegments(r, p, n)
	h, err := tasks.Hierarchy(l.request, t, l.plan)
	if err != nil {
		return nil, err
	}
	for _, group := range h.Groups(0) {
		g, err := tasks.ExpandOn(l.request, h, l.plan, group.Lead())
		if err != nil {
			return nil, err
		}
		lead := leader{rank: group.Lead()}
		if lead.stages, lead.keys, err = costs.StageKeys(g); err != nil {
			return nil, err
		}
		l.leaders = append(l.leaders, lead)
	}
	return l, nil
}

// missingStages is how many stages the book doesn't have.
func (l *line) missingStages(book *costs.Book) (n int64) {
	for _, lead := range l.leaders {
		for _, k := range lead.keys {
			if _, ok := book.Cost(k); !ok {
				n++
			}
		}
	}
	return n
}

// findings are rank 0's results from its samples.
type findings struct {
	Entries []entry
	Series  []costs.Series
	Settled bool // all series are
}

type entry struct {
	Key  costs.Key
	Cost costs.Cost
}

// run measures a line.
func (b *Bench) run(ctx context.Context, l *line, stop stats.Stop) (f findings, err error) {
	g, err := tasks.Expand(l.request, b.topology, l.plan, b.Rank())
	if err != nil {
		return f, err
	}
	stages, err := g.Stages()
	if err != nil {
		return f, err
	}
	x, err := b.bindGraph(g, " in stages")
	if err != nil {
		return f, err
	}
	columns := stageColumns(g)
	all, err := b.repeatInTurns(ctx, stop, func(ctx context.Context) ([]float64, error) {
		total, err := x.runOnce(ctx)
		return stageTimes(float64(total), func(id dag.ID) float64 { return float64(x.ends[id]) }, stages, columns), err
	})
	if err != nil {
		return f, err
	}
	if b.Rank() == 0 {
		f = l.findings(all[0])
	}
	return f, b.shareJSON(ctx, &f)
}

// stageColumns returns how many numbers a rank has of a graph: its time, and that of each stage.
func stageColumns(g *tasks.Graph) int { return 1 + g.Segments + max(len(g.Phases)-1, 0) }

// stageTimes returns this rank's time and that of each of its stages, by index: from the end of the
// stage before to that of its last task. taskEnd says when a task ended, ns.
func stageTimes(total float64, taskEnd func(dag.ID) float64, stages []tasks.Stage, columns int) []float64 {
	values := make([]float64, columns)
	values[0] = total
	before := 0.0
	for _, s := range stages {
		end := before
		for _, id := range s.Tasks {
			end = max(end, taskEnd(id))
		}
		values[1+s.Index] = end - before
		before = end
	}
	return values
}

// findings derives the cost of each key on each leader.
func (l *line) findings(s samples) findings {
	f := findings{Settled: true}
	times := map[costs.Key][][]float64{} // by leader, by repetition
	for i, lead := range l.leaders {
		at := map[costs.Key][]int{} // the stages of a key
		for j, k := range lead.keys {
			at[k] = append(at[k], lead.stages[j].Index)
		}
		for _, k := range slices.SortedFunc(maps.Keys(at), costs.Key.Compare) {
			if times[k] == nil {
				times[k] = make([][]float64, len(l.leaders))
			}
			from := 0
			if len(at[k]) > 1 {
				series := s.series(k.Task, i, lead.rank, at[k])
				f.Series = append(f.Series, series)
				f.Settled = f.Settled && series.Settled
				from = series.From
			}
			times[k][i] = s.meanOver(lead.rank, at[k][from:])
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(times), costs.Key.Compare) {
		f.Entries = append(f.Entries, entry{k, cost(times[k])})
	}
	return f
}

// series is a stage's median time at each of its occurrences.
func (s samples) series(name string, leader int, rank levels.Rank, at []int) costs.Series {
	series := costs.Series{Name: name, Leader: leader}
	for _, index := range at {
		series.NS = append(series.NS, costs.Median(s.column(rank, 1+index)))
	}
	series.From, series.Settled = costs.Settle(series.NS)
	return series
}

// meanOver returns the mean time of some stages of a rank, by repetition: all of them together
// count, not the usual one.
func (s samples) meanOver(rank levels.Rank, stages []int) []float64 {
	return s.eachTime(func(ranks [][]float64) (mean float64) {
		for _, index := range stages {
			mean += ranks[rank][1+index] / float64(len(stages))
		}
		return mean
	})
}

// cost sums up times by leader and repetition; nil for a leader without the task.
func cost(byLeader [][]float64) costs.Cost {
	var c costs.Cost
	var slowest []float64
	for _, times := range byLeader {
		if times == nil {
			c.Leaders = append(c.Leaders, 0)
			continue
		}
		c.Leaders = append(c.Leaders, max(1, costs.Median(times))) // 0 would be none
		if slowest == nil {
			slowest = make([]float64, len(times))
		}
		for rep, ns := range times {
			slowest[rep] = max(slowest[rep], ns)
		}
	}
	c.Summary = stats.Summarize(slowest)
	return c
}
