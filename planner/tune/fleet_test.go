package tune_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// watched is a simulated meter of parts, each of whose batches is looked at.
type watched struct {
	*tune.SimulatedParts
	saw func(parts []tune.Part, took []tune.Timed)
}

func (w watched) Parts(ctx context.Context, parts []tune.Part, stop stats.Stop) ([]tune.Timed, error) {
	took, err := w.SimulatedParts.Parts(ctx, parts, stop)
	w.saw(parts, took)
	return took, err
}

// newFleet is one for machines of one to eight nodes in four racks.
func newFleet(t *testing.T, alone bool) (*tune.Fleet, *tune.SimulatedParts) {
	t.Helper()
	on := tasktest.Topology(t, "4x4x1x2")
	f := &tune.Fleet{
		Search: tune.Search{
			Topology: on, Requests: tasktest.Requests("bcast", 1<<10, 32<<10, 256<<10),
			Space: tune.Space{
				Registry: all.Submodules(), Submodules: []string{"adapt", "sm"}, Shapes: []tasks.Shape{tasks.Flat, tasks.Han},
				Segments: []int64{64 << 10, tasks.Whole}, Windows: []int{2}, Inners: []int64{0}, Numbers: []int{0},
			},
		},
		Machines: []tune.Machine{{Nodes: 1, PerNode: 2}, {Nodes: 2, PerNode: 1}, {Nodes: 3, PerNode: 2}, {Nodes: 4, PerNode: 2}, {Nodes: 8, PerNode: 1}},
		Alone:    alone,
	}
	f.Learn.Trees = 15
	return f, tune.NewSimulatedParts(on, machine.Assumed(), all.Submodules())
}

// A fleet on a described machine ends with ctx, in the middle of measurements too, and its table has what was measured.
func TestFleetEndsWithContext(t *testing.T) {
	f, meter := newFleet(t, false)
	ctx, cancel := context.WithCancel(t.Context())
	made, err := f.Run(ctx, watched{meter, func([]tune.Part, []tune.Timed) {
		if f.Batches() == 3 {
			cancel()
		}
	}})
	if !errors.Is(err, tune.ErrInterrupted) || len(made.Measured) == 0 || len(made.Entries) == 0 {
		t.Errorf("%v; %d measurements, %d entries", err, len(made.Measured), len(made.Entries))
	}
}

// A fleet measures machines in different racks at one time. That takes far less time than one after
// the other, and comes to choices that are as good. What a machine takes in a batch is what it takes
// alone.
func TestFleet(t *testing.T) {
	alone(t)
	chosen := map[bool]float64{}
	spent := map[bool]time.Duration{}
	for _, single := range []bool{true, false} {
		f, meter := newFleet(t, single)
		most := 0
		made, err := f.Run(t.Context(), watched{meter, func(parts []tune.Part, took []tune.Timed) {
			most = max(most, len(parts))
			checkBatch(t, f.Topology, parts, took)
		}})
		if err != nil {
			t.Fatal(err)
		}
		if len(made.Entries) != len(f.Machines)*len(f.Requests) || made.Provenance.Configurations != len(made.Measured) {
			t.Errorf("%d entries, %d measurements of %d", len(made.Entries), made.Provenance.Configurations, len(made.Measured))
		}
		for _, e := range made.Entries {
			if e.Candidates[0].From == table.FromPredicted {
				t.Errorf("%s chooses what nobody has measured", e.Key())
			}
			chosen[single] += math.Log(e.Candidates[0].NS) / float64(len(made.Entries))
		}
		if spent[single] = meter.Spent(); single == (most > 1) || single == (f.Batches() < len(made.Measured)) {
			t.Errorf("alone %v: at most %d machines at one time, %d measurements in %d batches", single, most, len(made.Measured), f.Batches())
		}
	}
	if fast := float64(spent[true]) / float64(spent[false]); fast < 1.3 {
		t.Errorf("at one time it is %.2f times faster: %v, %v", fast, spent[false], spent[true])
	}
	if worse := math.Exp(chosen[false] - chosen[true]); worse > 1.02 || worse < .98 {
		t.Errorf("what is chosen takes %.3f times as long", worse)
	}
}

// checkBatch checks that parts share no rack, and take what they take alone on the first ranks.
func checkBatch(t *testing.T, on *levels.Topology, parts []tune.Part, took []tune.Timed) {
	t.Helper()
	racks := map[int32]int{}
	for i, p := range parts {
		for _, r := range p.Ranks {
			if by, used := racks[on.Rack(r)]; used && by != i {
				t.Fatalf("rack %d has parts of %v", on.Rack(r), parts)
			}
			racks[on.Rack(r)] = i
		}
		own, err := on.Sub(p.Ranks)
		if err != nil {
			t.Fatal(err)
		}
		first, err := on.Pick(own.Nodes(), own.Size()/own.Nodes())
		if err != nil {
			t.Fatal(err)
		}
		by := tune.NewSimulatedParts(on, machine.Assumed(), all.Submodules())
		one, err := by.Parts(t.Context(), []tune.Part{{Ranks: first, Request: p.Request, Plan: p.Plan}}, stats.Stop{})
		if err != nil || !reflect.DeepEqual(one[0], took[i]) {
			t.Errorf("%v by %v takes %v in a batch and %v alone, %v", p.Request, p.Plan, took[i].Timing.Series, one[0].Timing.Series, err)
		}
	}
}

// A fleet that is told to end writes what it knows.
func TestFleetEnds(t *testing.T) {
	alone(t)
	f, meter := newFleet(t, false)
	asked := 0
	f.Interrupted = func(context.Context) (bool, error) { asked++; return asked > 15+6, nil }
	made, err := f.Run(t.Context(), meter)
	if !errors.Is(err, tune.ErrInterrupted) || len(made.Measured) == 0 || len(made.Entries) == 0 {
		t.Errorf("%v: %d measurements, %d entries", err, len(made.Measured), len(made.Entries))
	}
	if f.Machines = nil; true {
		if _, err := f.Run(t.Context(), meter); err == nil || !strings.Contains(err.Error(), "no machines") {
			t.Error(err)
		}
	}
}

// Ranks measure parts at one time, again on the communicators of before, and all hear the same.
func TestRankParts(t *testing.T) {
	comms, err := planner.Local("2x2x1x1", nil) // two racks of two nodes
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	bcast := tasktest.Requests("bcast", 4<<10)[0]
	plan := func(text string) tasks.Plan {
		p := tasktest.Plan(t, text)
		return p
	}
	flat := plan("shape=flat,fs=all,w=1,ib=adapt/binomial,wb=adapt/binomial")
	batches := [][]tune.Part{
		{{[]levels.Rank{0, 1}, bcast, flat}, {[]levels.Rank{2, 3}, bcast, flat}},
		{{[]levels.Rank{0, 1}, bcast, flat}},
		{{[]levels.Rank{2, 3}, bcast, plan("shape=flat,fs=all,w=1,ib=sm/slots,wb=sm/slots")}, {[]levels.Rank{0}, bcast, flat}}, // nodes share no memory
		{{[]levels.Rank{0, 1, 2, 3}, bcast, flat}},
	}
	heard := make([]string, len(comms))
	var ranks sync.WaitGroup
	for rank, c := range comms {
		ranks.Go(func() {
			m := tune.NewRankParts(c, costs.Single)
			for _, parts := range batches {
				took, err := m.Parts(ctx, parts, stats.Stop{Least: 3, Most: 3})
				if err != nil {
					t.Error(err)
					return
				}
				for _, one := range took {
					heard[rank] += fmt.Sprintf("%v %v; ", one.Refused, one.Timing.Series)
				}
			}
			if err := errors.Join(m.Close(), c.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	ranks.Wait()
	if slices.Compact(slices.Clone(heard))[0] != heard[0] || len(slices.Compact(slices.Clone(heard))) != 1 {
		t.Errorf("ranks hear %q", heard)
	}
	words := strings.Split(heard[0], "; ")
	if len(words) != 7 || !strings.HasPrefix(words[3], "true []") || strings.Contains(words[0], "[]") || strings.Contains(words[5], "[]") {
		t.Errorf("heard %q", words)
	}
}
