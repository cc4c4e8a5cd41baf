package tune_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/measure"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/planner/table/tabletest"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// thresholds is a meter on which blocks that differ go fastest with a threshold of 16 KiB.
type thresholds struct{ asked int }

func (m *thresholds) Collective(_ context.Context, r tasks.Request, p tasks.Plan, _ stats.Stop) (measure.Timing, error) {
	m.asked++
	ns := 1e6 + float64(r.MeanBytes()) + 10*float64(len(p.String()))
	if r.Differ() && strings.Contains(p.String(), "pairwise") {
		ns = ns/2 + 1e4*math.Abs(math.Log2(float64(max(p.Eager, 1)))-14)
	}
	return measure.Timing{Series: []float64{ns, ns, ns}}, nil
}

func (m *thresholds) Task(context.Context, tasks.Request, tasks.Plan, []int, int64, stats.Stop) (costs.Pipeline, error) {
	panic("a task of blocks that differ by itself")
}

func uneven(t *testing.T, mean int64, times, ranks int) tasks.Request {
	t.Helper()
	r, err := tasks.MakeUneven(tasks.Request{Coll: tasks.Alltoall, Type: tasks.Float32, Count: mean / 4}, times, ranks)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A search finds the threshold of blocks that differ, whatever the method; its table says for which
// blocks that is, and plans follow it for other blocks that differ as much.
func TestSearchFindsTheThreshold(t *testing.T) {
	on := tasktest.Topology(t, "8x1")
	for _, method := range tune.Searches() {
		m := &thresholds{}
		s := &tune.Search{Topology: on, Requests: []tasks.Request{uneven(t, 16<<10, 4, 8), uneven(t, 256<<10, 4, 8)}, Method: method, Space: tune.Space{Registry: all.Submodules()}}
		made, err := s.Run(context.Background(), m)
		if err != nil {
			t.Fatalf("%v: %v", method, err)
		}
		made, data := tabletest.RoundTrip(t, made)
		if len(made.Entries) != 2 || made.Entries[0].Uneven != 4 || made.Entries[0].Bytes != 16<<10 || made.Entries[0].Candidates[0].Parsed.Eager != 16<<10 {
			t.Fatalf("%v: %+v", method, made.Entries)
		}
		rows := make([][]int, 8)
		for i := range rows {
			rows[i] = []int{1, 1, 1, 1, 1, 1, 1, 1}
			rows[i][(i+3)%8] = 6000 // others, about as far from the mean
		}
		other, err := tasks.NewMatrix(rows)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []tasks.Request{uneven(t, 16<<10, 4, 8), uneven(t, 64<<10, 4, 8), {Coll: tasks.Alltoall, Type: tasks.Float32, Matrix: other, Count: 6000}} {
			d, err := raw.Inspect(r, on, &planner.Options{Table: "table", Files: fstest.MapFS{"table": {Data: data}}})
			if err != nil || d.Plan.Eager != 16<<10 {
				t.Errorf("%v: %v gets %v, %v", method, r, d, err)
			}
		}
		equal := made.Find(tasks.Request{Coll: tasks.Alltoall, Type: tasks.Float32, Count: 4096}, on, "", all.Submodules())
		if !strings.Contains(equal.Elsewhere, "the largest block 4 times the mean, here equal blocks") || equal.Estimates[0].From != table.FromElsewhere {
			t.Errorf("%v: of equal blocks it says %+v", method, equal)
		}
		n := m.asked
		s = &tune.Search{Topology: on, Requests: s.Requests, Method: method, Space: s.Space, Table: made}
		if _, err := s.Run(context.Background(), m); err != nil || m.asked != n {
			t.Errorf("%v: %d more measurements when it is resumed, %v", method, m.asked-n, err)
		}
	}
	s := &tune.Search{Topology: on, Requests: []tasks.Request{uneven(t, 16<<10, 4, 8)}, Method: tune.Learn, Space: tune.Space{Registry: all.Submodules()}}
	if _, err := s.Run(context.Background(), &thresholds{}); err == nil || !strings.Contains(err.Error(), "no blocks that differ") {
		t.Errorf("method learn: %v", err)
	}
}

// Thresholds are searched where blocks differ only, and where they part the blocks.
func TestThresholds(t *testing.T) {
	on := tasktest.Topology(t, "8x1")
	s := tune.Space{Registry: all.Submodules()}
	found := map[int64]bool{}
	for _, p := range s.Plans(uneven(t, 16<<10, 4, 8), on) {
		found[p.Eager] = true
		if p.Eager != 0 && !strings.Contains(p.String(), "pairwise") {
			t.Errorf("a threshold in %v", p)
		}
	}
	for n, want := range map[int64]bool{0: true, 16 << 10: true, 64 << 10: false, 1 << 20: false, tasks.Whole: true} {
		if found[n] != want {
			t.Errorf("eager=%s: %v", tasks.FormatBytes(n), found[n])
		}
	}
	for _, p := range s.Plans(tasks.Request{Coll: tasks.Alltoall, Type: tasks.Float32, Count: 16 << 10}, on) {
		if p.Eager != 0 {
			t.Errorf("a threshold for equal blocks: %v", p)
		}
	}
}
