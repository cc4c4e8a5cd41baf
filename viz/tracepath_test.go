package viz_test

import (
	"fmt"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
	"github.com/tierflow/tierflow/viz"
)

// compiled returns the programs of all ranks.
func compiled(t *testing.T, coll tasks.Collective, bytes int64, topo, plan string) (*levels.Topology, []submodules.Compiled) {
	t.Helper()
	topology := tasktest.Topology(t, topo)
	p := tasktest.Plan(t, plan)
	r := tasks.Request{Coll: coll, Type: tasks.Uint8, Count: bytes}
	if r.Reduces() {
		r.Op = tasks.Sum
	}
	progs := make([]submodules.Compiled, topology.Size())
	for rank := range progs {
		var err error
		if progs[rank], err = submodules.CompileRequest(r, topology, p, levels.Rank(rank), all.Submodules()); err != nil {
			t.Fatal(err)
		}
	}
	return topology, progs
}

// A chain of three ranks: rank 0 begins late, rank 1 receives and does something else
// before it sends, rank 2 is there early.
func TestTracePath(t *testing.T) {
	_, progs := compiled(t, tasks.Bcast, 100, "3x1", "shape=flat,fs=all,w=1,i=adapt/chain")
	step := func(rank levels.Rank, kind submodules.StepKind, begin, end int64) trace.Event {
		for id, s := range progs[rank].Rest.Steps() {
			if s.Kind == kind {
				return trace.Event{Source: progs[rank].Rest, Rank: rank, Step: int32(id), Begin: begin, End: end}
			}
		}
		t.Fatalf("rank %d has no %v", rank, kind)
		return trace.Event{}
	}
	path := viz.TracePath([]trace.Event{
		step(0, submodules.SendStep, 1000, 1100),
		step(1, submodules.RecvStep, 10, 3000), step(1, submodules.SendStep, 3500, 3600),
		step(2, submodules.RecvStep, 20, 5000),
		{Source: progs[0].Rest, Rank: 0, Step: trace.WholeRun, Begin: 0, End: 9000},
	})
	var got string
	for _, p := range path {
		got += fmt.Sprintf("%d-%d %s: %s\n", p.Begin, p.End, p.Cause, p.Label)
	}
	const want = `1000-3000 message: ib#0 recv r0>r1 100B
3000-3500 engine: ib#0 send r1>r2 100B
3500-5000 message: ib#0 recv r1>r2 100B
`
	if got != want {
		t.Errorf("path\n%swant\n%s", got, want)
	}
	if path := viz.TracePath(nil); path != nil {
		t.Errorf("of nothing: %v", path)
	}
}

// The path of any run leads from its end to where something began, without a gap.
func TestTracePathOfRuns(t *testing.T) {
	for _, test := range []struct {
		coll tasks.Collective
		plan string
	}{
		{tasks.Bcast, "shape=han,fs=16KiB,w=2,i=adapt/binomial,s=sm"},
		{tasks.Allreduce, "shape=han,fs=16KiB,w=2,i=adapt/chain,s=solo"},
		{tasks.Allreduce, "shape=rsag,fs=all,w=1,i=nbc/ring,s=sm"},
	} {
		topology, progs := compiled(t, test.coll, 200_000, "4x3", test.plan)
		job, err := sim.New(topology, progs)
		if err != nil {
			t.Fatal(err)
		}
		var events []trace.Event
		result, err := job.Run(machine.Assumed(), sim.Options{Watch: func(e sim.Event) {
			events = append(events, trace.Event{
				Source: progs[e.Rank].Rest, Rank: e.Rank, Step: e.Step, Begin: int64(e.Begin.Duration()), End: int64(e.End.Duration()),
			})
		}})
		if err != nil {
			t.Fatal(err)
		}
		path := viz.TracePath(events)
		if len(path) < 5 || path[len(path)-1].End != int64(result.Time.Duration()) || path[0].Begin > int64(result.Time.Duration())/100 {
			t.Errorf("%v %s: path of %d pieces, to %v", test.coll, test.plan, len(path), result.Time)
		}
		messages := int64(0)
		for i, p := range path {
			if p.End <= p.Begin || i > 0 && p.Begin != path[i-1].End {
				t.Errorf("%v %s: piece %d is %+v after %+v", test.coll, test.plan, i, p, path[max(i-1, 0)])
			}
			if p.Cause == "message" {
				messages += p.End - p.Begin
			}
		}
		if share := float64(messages) / float64(result.Time.Duration()); share < 0.5 {
			t.Errorf("%v %s: %.2f of the path are messages; the links are slow", test.coll, test.plan, share)
		}
	}
}
