package measure_test

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/machine/machinetest"
	"github.com/tierflow/tierflow/costs/measure"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// measureUnits puts into book what a plan's time is made of.
func measureUnits(t *testing.T, bench *measure.Simulated, book *costs.Book, r tasks.Request, on *levels.Topology, p tasks.Plan) {
	t.Helper()
	m, err := costs.MakeupOf(r, on, p)
	if err != nil {
		t.Fatal(err)
	}
	units := m.Singles
	if costs.Segments(r, p) > 1 {
		units = m.Units()
	}
	for _, u := range units {
		if _, known := book.Pipeline(u.Key); known {
			continue
		}
		pipe, err := bench.Task(t.Context(), r, u.Plan(p), u.Phases, u.Segments(0), brief)
		if err != nil {
			t.Fatal(err)
		}
		book.AddPipeline(u.Key, pipe)
	}
}

// Tasks that were measured by themselves predict whole collectives of all shapes. error is
// the share by which they may be off, and pipelines by which a run of the first segments is.
func TestTasksPredict(t *testing.T) {
	for _, test := range []struct {
		coll             tasks.Collective
		topo             string
		plan             string
		error, pipelines float64
	}{
		{tasks.Bcast, "8x4", "shape=han,fs=64KiB,w=8,i=adapt/chain,s=sm", 0.02, 0.25},
		{tasks.Bcast, "4x2", "shape=han,fs=all,w=1,i=adapt/binary,s=solo", 0.001, 0},
		{tasks.Bcast, "4x2", "shape=han-lockstep,fs=128KiB,w=4,i=adapt/chain,s=sm", 0.02, 0},
		{tasks.Allreduce, "8x2", "shape=han-lockstep,fs=64KiB,w=4,i=adapt/chain,s=sm", 0.15, 0},
		{tasks.Bcast, "16x1", "shape=flat,fs=32KiB,w=4,i=adapt/binary", 0.02, 0.02},
		{tasks.Bcast, "4x2", "shape=sag,fs=256KiB,w=2,is=adapt/linear,iag=nbc/ring,s=sm", 0.15, 0.25},
		{tasks.Allreduce, "4x2", "shape=han,fs=64KiB,w=4,i=adapt/binomial,s=solo", 0.1, 0.1},
		{tasks.Allreduce, "4x2", "shape=han,fs=all,w=1,i=adapt/binomial,s=sm", 0.2, 0},
		{tasks.Allreduce, "4x2", "shape=rsag,fs=128KiB,w=4,irs=nbc/ring,iag=nbc/ring,s=sm", 0.05, 0.1},
		{tasks.Allreduce, "4x4", "shape=lanes,fs=128KiB,w=2,iar=nbc/ring,s=solo", 0.05, 0.1},
		{tasks.Reduce, "8x2", "shape=han,fs=64KiB,w=8,i=adapt/chain,s=sm", 0.05, 0.1},
		{tasks.Gather, "4x4", "shape=han,fs=all,w=1,i=adapt/linear,s=sm", 0.01, 0},
		{tasks.Allgather, "4x2", "shape=han,fs=all,w=1,i=nbc/ring,sg=sm,sb=sm", 0.01, 0},
		{tasks.Scan, "4x2", "shape=han,fs=64KiB,w=4,i=nbc/recdoubling,s=sm", 0.05, 0.1},
		{tasks.Alltoall, "4x2", "shape=han,fs=all,w=1,i=nbc/pairwise,s=sm", 0.01, 0},
	} {
		r, on, plan := tasktest.Request(test.coll, 4<<20), tasktest.Topology(t, test.topo), tasktest.Plan(t, test.plan)
		bench, book := measure.NewSimulated(on, machine.Assumed(), all.Submodules()), &costs.Book{}
		whole, err := bench.Collective(t.Context(), r, plan, brief)
		if err != nil {
			t.Errorf("%v on %s with %s: %v", r, test.topo, test.plan, err)
			continue
		}
		off := func(name string, p costs.Prediction, err error, most float64) {
			if by := p.NS/whole.Slowest.P50 - 1; err != nil || math.Abs(by) > most {
				t.Errorf("%v on %s with %s: by %s %.0f ns, simulated %.0f ns: %+.3f, %v", r, test.topo, test.plan, name, p.NS, whole.Slowest.P50, by, err)
			} else {
				t.Logf("%v on %s with %s: by %s %+.3f", r.Coll, test.topo, test.plan, name, by)
			}
		}
		measureUnits(t, bench, book, r, on, plan)
		p, err := costs.PredictByTasks(r, on, plan, book)
		off("tasks", p, err, test.error)
		if test.pipelines == 0 {
			continue
		}
		measurePipeline(t, bench, book, r, on, plan)
		p, err = costs.Predict(r, on, plan, book)
		off("its pipeline", p, err, test.pipelines)
	}
}

// Where memory is as fast as the wire, levels hinder each other: tasks together say what a message
// takes, and those alone say too little. Stages that were measured once serve messages of other sizes.
func TestTogether(t *testing.T) {
	m, on := machinetest.Speeds[2].Machine(), tasktest.Topology(t, "8x6")
	bench := measure.NewSimulated(on, m, all.Submodules())
	for _, tc := range []struct {
		coll tasks.Collective
		plan string
	}{
		{tasks.Reduce, "shape=han,fs=64KiB,w=8,i=adapt/binomial,s=sm"},
		{tasks.Allreduce, "shape=han,fs=64KiB,w=8,i=adapt/binomial,s=sm"},
		{tasks.Allreduce, "shape=ar,fs=64KiB,w=8,i=nbc/recdoubling,s=sm"},
	} {
		plan, alone, together := tasktest.Plan(t, tc.plan), &costs.Book{}, &costs.Book{}
		r := tasktest.Request(tc.coll, 4<<20)
		makeup, err := costs.MakeupOf(r, on, plan)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range []costs.Unit{makeup.One, makeup.Many} {
			pipe, err := bench.Task(t.Context(), r, u.Plan(plan), u.Phases, u.Segments(0), brief)
			if err != nil {
				t.Fatal(err)
			}
			together.AddPipeline(u.Key, pipe)
		}
		measureUnits(t, bench, alone, r, on, plan)
		for _, bytes := range []int64{1 << 20, 4 << 20} {
			r := tasktest.Request(tc.coll, bytes)
			whole, err := bench.Collective(t.Context(), r, plan, brief)
			if err != nil {
				t.Fatal(err)
			}
			least, err := costs.PredictByTasks(r, on, plan, alone)
			if err != nil {
				t.Fatal(err)
			}
			p, err := costs.PredictByTasks(r, on, plan, together)
			if is := whole.Slowest.P50; err != nil || math.Abs(p.NS/is-1) > 0.06 || least.NS > 0.9*is {
				t.Errorf("%v by %s takes %.0f ns: together %.0f, alone %.0f, %v", r, tc.plan, is, p.NS, least.NS, err)
			}
		}
	}
}

// Tasks of a bcast serve an allreduce and other sizes; what is missing is named.
func TestTasksAreReused(t *testing.T) {
	on := tasktest.Topology(t, "4x2")
	plan := tasktest.Plan(t, "shape=han,fs=all,w=1,i=adapt/binomial,s=sm")
	bench, book := measure.NewSimulated(on, machine.Assumed(), all.Submodules()), &costs.Book{}
	bcast := tasks.Request{Coll: tasks.Bcast, Type: tasks.Float32, Count: 1000}
	reduce := tasks.Request{Coll: tasks.Reduce, Type: tasks.Float32, Count: 1000, Op: tasks.Sum}
	sum := tasks.Request{Coll: tasks.Allreduce, Type: tasks.Float32, Count: 1000, Op: tasks.Sum}
	measureUnits(t, bench, book, bcast, on, plan)
	if _, err := costs.PredictByTasks(sum, on, plan, book); !errors.Is(err, costs.ErrUnmeasured) {
		t.Errorf("without the tasks of a reduction: %v", err)
	}
	measureUnits(t, bench, book, reduce, on, plan)
	if _, err := costs.PredictByTasks(sum, on, plan, book); err != nil {
		t.Error(err)
	}
	bcast.Count = 3000
	measureUnits(t, bench, book, bcast, on, plan)
	between := bcast
	between.Count = 2000
	p, err := costs.PredictByTasks(between, on, plan, book)
	if err != nil {
		t.Fatal(err)
	}
	small, _ := costs.PredictByTasks(tasks.Request{Coll: tasks.Bcast, Type: tasks.Float32, Count: 1000}, on, plan, book)
	large, _ := costs.PredictByTasks(bcast, on, plan, book)
	if want := (small.NS + large.NS) / 2; math.Abs(p.NS-want) > 1e-6*want {
		t.Errorf("halfway between %v and %v: %v", small.NS, large.NS, p.NS)
	}
}

// Nodes that do the same are simulated once, and it shows in no time.
func TestNodesAlikeAreSimulatedOnce(t *testing.T) {
	for _, c := range []struct {
		topo, plan string
		coll       tasks.Collective
		phases     []int
		idle       int
	}{
		{"5x3", "shape=han,fs=1KiB,w=2,ia=adapt/pairwise,sg=sm/slots,ss=sm/slots", tasks.Alltoall, []int{0}, 6},
		{"5x3", "shape=han,fs=1KiB,w=2,ia=adapt/pairwise,sg=sm/slots,ss=sm/slots", tasks.Alltoall, []int{2}, 6},
		{"5x3", "shape=han,fs=1KiB,w=2,ia=adapt/pairwise,sg=sm/slots,ss=sm/slots", tasks.Alltoall, []int{1}, 0},
		{"a:3,b:1,c:2,d:3,e:3,f:3", "shape=han,fs=1KiB,w=2,iag=adapt/ring,sb=sm/slots,sg=sm/slots", tasks.Allgather, []int{0}, 3},
		{"5x3", "shape=han,fs=1KiB,w=2,ib=adapt/chain,sb=sm/slots", tasks.Bcast, []int{1}, 0},
	} {
		on := tasktest.Topology(t, c.topo)
		s := measure.NewSimulated(on, machine.Assumed(), all.Submodules())
		r, p := tasks.Request{Coll: c.coll, Type: tasks.Float32, Op: tasks.Sum, Count: 4096}, tasktest.Plan(t, c.plan)
		some, err := s.Task(t.Context(), r, p, c.phases, 6, brief)
		if err != nil {
			t.Fatal(err)
		}
		every, err := s.TaskOfAll(r, p, c.phases, 6)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(every.Leaders, some.Leaders) {
			t.Errorf("%s %v %v: %v, with all ranks %v", c.topo, c.coll, c.phases, some.Leaders, every.Leaders)
		}
		if n := s.Idles(r, p, c.phases); n != c.idle {
			t.Errorf("%s %v %v: %d ranks idle, want %d", c.topo, c.coll, c.phases, n, c.idle)
		}
	}
}
