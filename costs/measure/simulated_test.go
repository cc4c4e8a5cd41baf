package measure_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/measure"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// measurePipeline adds the pipeline of a plan to a book.
func measurePipeline(t *testing.T, bench *measure.Simulated, book *costs.Book, r tasks.Request, on *levels.Topology, plan tasks.Plan) {
	t.Helper()
	key, err := costs.PipelineKey(r, on, plan)
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := bench.Pipeline(t.Context(), r, plan, brief)
	if err != nil {
		t.Fatal(err)
	}
	book.AddPipeline(key, pipe)
}

// What pipelines and stages show on simulated time predicts whole collectives there.
func TestSimulatedPredicts(t *testing.T) {
	for _, test := range []struct {
		coll  tasks.Collective
		topo  string
		plan  string
		error float64 // share
	}{
		{tasks.Bcast, "8x4", "shape=han,fs=64KiB,w=4,i=adapt/chain,s=sm", 0.03},
		{tasks.Bcast, "16x1", "shape=flat,fs=32KiB,w=4,i=adapt/binary", 0.03},
		{tasks.Allreduce, "4x2", "shape=han,fs=64KiB,w=4,i=adapt/binomial,s=solo", 0.1},
		{tasks.Allreduce, "4x2", "shape=han-lockstep,fs=64KiB,w=4,i=adapt/binomial,s=sm", 0.1},
		{tasks.Bcast, "4x2", "shape=han-lockstep,fs=128KiB,w=4,i=adapt/chain,s=sm", 0.05},
	} {
		r, topo, plan := tasktest.Request(test.coll, 4<<20), tasktest.Topology(t, test.topo), tasktest.Plan(t, test.plan)
		bench, book := measure.NewSimulated(topo, machine.Assumed(), all.Submodules()), &costs.Book{}
		if plan.Shape == tasks.HanLockstep {
			if _, err := bench.Stages(t.Context(), r, plan, brief, book); err != nil {
				t.Fatal(err)
			}
		} else {
			measurePipeline(t, bench, book, r, topo, plan)
		}
		predicted, err := costs.Predict(r, topo, plan, book)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := bench.Collective(t.Context(), r, plan, brief)
		if err != nil {
			t.Fatal(err)
		}
		if off := predicted.NS/whole.Slowest.P50 - 1; math.Abs(off) > test.error {
			t.Errorf("%v on %s with %s: predicted %.0f ns, simulated %.0f ns: %+.1f%%", r, test.topo, test.plan, predicted.NS, whole.Slowest.P50, 100*off)
		}
	}
}

// Without noise one sample says all; with noise samples differ, and repeat.
func TestSimulatedSamples(t *testing.T) {
	topo := tasktest.Topology(t, "4x1")
	plan := tasktest.Plan(t, "shape=flat,fs=all,w=1,i=adapt/chain")
	r := tasks.Request{Coll: tasks.Bcast, Type: tasks.Uint8, Count: 1000}
	m := machine.Assumed()
	bench := measure.NewSimulated(topo, m, all.Submodules())
	quiet, err := bench.Collective(t.Context(), r, plan, brief)
	if err != nil || len(quiet.Series) != 1 || len(quiet.Ranks) != 4 || quiet.Ranks[3] != quiet.Series[0] {
		t.Errorf("%+v, %v", quiet, err)
	}
	m.Noise = 0.1
	noisy, err := bench.Collective(t.Context(), r, plan, brief)
	if err != nil || len(noisy.Series) < 3 || noisy.Series[0] == noisy.Series[1] || noisy.Series[0] <= quiet.Series[0] {
		t.Errorf("%+v, %v", noisy, err)
	}
	if again, err := bench.Collective(t.Context(), r, plan, brief); err != nil || !reflect.DeepEqual(again, noisy) {
		t.Errorf("%+v, then %+v, %v", noisy, again, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := bench.Collective(ended, r, plan, brief); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
}
