package main

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/viz"
)

// unitNames and kindNames are the names in pictures and files.
var (
	unitNames = [units]string{"embed", "hidden", "output"}
	kindNames = [kinds]string{"forward", "gradient", "slopes", "descent"}
)

// callLog keeps when rank 0's collectives began and ended. The library calls note.
type callLog struct {
	epoch time.Time
	mu    sync.Mutex // guards all
	all   []trace.Event
}

func newCallLog() *callLog { return &callLog{epoch: time.Now()} }

func (l *callLog) hooks() trace.Hooks { return trace.Hooks{Epoch: l.epoch, Run: l.note} }

func (l *callLog) note(e trace.Event) {
	if e.Rank != 0 {
		return
	}
	l.mu.Lock()
	l.all = append(l.all, e)
	l.mu.Unlock()
}

// between returns the calls begun and ended in this time.
func (l *callLog) between(begin, end time.Time) (all []trace.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.all {
		if !l.epoch.Add(time.Duration(e.Begin)).Before(begin) && !l.epoch.Add(time.Duration(e.End)).After(end) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b trace.Event) int { return cmp.Compare(a.End, b.End) })
	return all
}

// drawStep draws the parts of one turn on rank 0: the turn of which as much hides as in the median.
func drawStep(s settings, calls *callLog, turns []turn) error {
	turns = slices.SortedFunc(slices.Values(turns), func(a, b turn) int { return cmp.Compare(a.hidden(), b.hidden()) })
	t := &turns[len(turns)/2]
	g := viz.Gantt{
		Title: fmt.Sprintf("a training step on rank 0 of %d: %.1f ms, %.1f ms without sums; %.0f%% of the sums hides", s.ranks, t.ms[whole], t.ms[computing], t.hidden()),
		Rows:  []viz.GanttRow{t.computed("step", whole), t.called("its sums", calls, whole), t.computed("without sums", computing), t.called("sums alone", calls, sums)},
	}
	svg, err := g.SVG()
	if err != nil {
		return err
	}
	return os.WriteFile(s.picture, svg, 0o644)
}

// computed returns a row with the computations of a part.
func (t *turn) computed(name string, part int) viz.GanttRow {
	row := viz.GanttRow{Name: name}
	for _, w := range t.did[part] {
		row.Bars = append(row.Bars, viz.GanttBar{Kind: kindNames[w.kind], Label: unitNames[w.unit], Begin: w.begin.Sub(t.begin[part]), End: w.end.Sub(t.begin[part])})
	}
	return row
}

// called returns a row with the buckets of a part. If several are on their way a bar begins at the end
// of the bucket before.
func (t *turn) called(name string, calls *callLog, part int) viz.GanttRow {
	row, before := viz.GanttRow{Name: name}, time.Duration(0)
	all, first := calls.between(t.begin[part], t.begin[part].Add(time.Duration(t.ms[part]*1e6))), uint32(math.MaxUint32)
	for _, e := range all {
		first = min(first, e.Run)
	}
	for _, e := range all {
		begin, end := calls.epoch.Add(time.Duration(e.Begin)).Sub(t.begin[part]), calls.epoch.Add(time.Duration(e.End)).Sub(t.begin[part])
		row.Bars = append(row.Bars, viz.GanttBar{Kind: "sum", Label: fmt.Sprintf("bucket %d", e.Run-first), Begin: max(begin, before), End: end})
		before = end
	}
	return row
}
