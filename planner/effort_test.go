package planner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/tasks"
)

const sayTried = "measured by these ranks in "

// summed makes an allreduce twice on each rank, runs it, and returns what rank 0 says of its plan.
// All ranks must have the same.
func summed(t *testing.T, comms []*planner.Comm) string {
	t.Helper()
	texts := make([]string, len(comms))
	errs := each(comms, func(ctx context.Context, c *planner.Comm) error {
		for range 2 {
			send, recv := make([]int64, 500), make([]int64, 500)
			for i := range send {
				send[i] = int64(c.Rank() + i)
			}
			col, err := planner.PrepareAllreduce(ctx, c, send, recv, tasks.Sum)
			if err != nil {
				return err
			}
			if err := col.Run(ctx); err != nil {
				return err
			}
			n := int64(len(comms))
			for i, v := range recv {
				if v != n*(n-1)/2+n*int64(i) {
					t.Errorf("rank %d: element %d is %d", c.Rank(), i, v)
				}
			}
			if before := texts[c.Rank()]; before != "" && before != col.Explain() {
				t.Errorf("it was tried again:\n%s", col.Explain())
			}
			texts[c.Rank()] = col.Explain()
		}
		return planner.Allreduce(ctx, c, make([]int64, 500), make([]int64, 500), tasks.Sum)
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for rank, text := range texts {
		if text != texts[0] && !strings.Contains(text, "of rank 0") {
			t.Errorf("rank %d says\n%srank 0\n%s", rank, text, texts[0])
		}
	}
	return texts[0]
}

// Who wants it measured gets the plan that these ranks have found to be the fastest, of those
// that nobody has forced.
func TestEffort(t *testing.T) {
	planner.TryFor(t, time.Hour)
	for _, test := range []struct {
		o     planner.Options
		tried bool
	}{
		{planner.Options{Effort: planner.EffortMeasure}, true},
		{planner.Options{Effort: planner.EffortMeasure, Plan: "i=adapt/binomial"}, false},
		{planner.Options{Effort: planner.EffortMeasure, Rules: "rules", Files: inMemory("rules", []byte("allreduce: shape=han"))}, false},
		{planner.Options{Effort: planner.EffortEstimate}, false},
	} {
		comms := localComms(t, "3x2", &test.o)
		text := summed(t, comms)
		closeAll(t, comms)
		if strings.Contains(text, sayTried) != test.tried || !strings.Contains(text, "runner-up: ") && test.tried {
			t.Errorf("%+v:\n%s", test.o, text)
		}
	}
	t.Setenv(env.Effort, "hard")
	wantError(t, "effort hard", second(planner.Local("2x1", nil)), `TIERFLOW_EFFORT: "hard"; allowed are estimate and measure`)
}

// A trial ends with the context of what is prepared: a rank in a trial isn't stuck in it.
func TestTrialEndsWithItsContext(t *testing.T) {
	why := errors.New("no time for trials")
	err := planner.Run(t.Context(), "2x2", &planner.Options{Effort: planner.EffortMeasure}, func(ctx context.Context, c *planner.Comm) error {
		ctx, cancel := context.WithCancelCause(ctx)
		cancel(why)
		if _, err := planner.PrepareAllreduce(ctx, c, make([]int64, 500), make([]int64, 500), tasks.Sum); err == nil || !strings.Contains(err.Error(), why.Error()) {
			return fmt.Errorf("rank %d: %w", c.Rank(), err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// What processes have tried serves later jobs of the same ranks, without another trial, unless
// they say that there is no table.
func TestTrialsAreKept(t *testing.T) {
	planner.TryFor(t, time.Hour)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv(env.Table, "")
	job := func(n int, o *planner.Options) string {
		comms := joinProcesses(t, n, 1, o)
		defer closeAll(t, comms)
		return summed(t, comms)
	}
	auto := planner.MachineAuto
	if job(3, &planner.Options{Machine: auto, Effort: planner.EffortMeasure}); len(kept(t, raw.KeptTables)) > 0 {
		t.Errorf("ranks that nobody manages keep %v", kept(t, raw.KeptTables))
	}
	if text := job(3, &planner.Options{Machine: auto, Effort: planner.EffortMeasure, Managed: true}); !strings.Contains(text, sayTried) {
		t.Fatalf("nothing was tried:\n%s", text)
	}
	names := kept(t, raw.KeptTables)
	if len(names) != 1 {
		t.Fatalf("%v: want one table", names)
	}
	if info, err := os.Stat(names[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want mode 0600", info.Mode(), err)
	}
	decided := "table: " + names[0] + " of rank 0, of single calls\n"
	other := joinProcesses(t, 3, 1, &planner.Options{Machine: auto})
	text, err := raw.Explain(other[0], tasks.Request{Coll: tasks.Allreduce, Op: tasks.Sum, Type: tasks.Int64, Count: 600})
	if err != nil || !strings.Contains(text, "this size was not tried") {
		t.Errorf("%v: a size that was not tried:\n%s", err, text)
	}
	closeAll(t, other)
	for _, test := range []struct {
		ranks int
		o     planner.Options
		found bool
	}{
		{3, planner.Options{Machine: auto}, true},
		{3, planner.Options{Machine: auto, Effort: planner.EffortMeasure}, true},
		{3, planner.Options{Machine: auto, Table: planner.TableOff}, false},
		{3, planner.Options{Machine: planner.MachineOff}, false},
		{2, planner.Options{Machine: auto}, false},
	} {
		if text := job(test.ranks, &test.o); strings.Contains(text, decided) != test.found || strings.Contains(text, sayTried) {
			t.Errorf("%d ranks, %+v:\n%s", test.ranks, test.o, text)
		}
	}
	if err := os.WriteFile(names[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text := job(3, &planner.Options{Machine: auto}); strings.Contains(text, names[0]) {
		t.Errorf("a table that can't be read decides:\n%s", text)
	}
}

// A table that is kept serves jobs of other sizes, and on other nodes, if the hosts are of the same kind. Those of links with
// another name don't count, nor those of machines far larger.
func TestTablesOfOtherSizes(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv(env.Table, "")
	r := tasks.Request{Coll: tasks.Allreduce, Op: tasks.Sum, Type: tasks.Int64, Count: 500}
	job := func(n int, o planner.Options, do func(c *planner.Comm)) {
		t.Helper()
		o.Machine = planner.MachineAuto
		comms := joinPlaced(t, n, &o, func(rank int, cfg *join.Config) { cfg.Node = fmt.Sprintf("of%d-%d", n, rank) })
		defer closeAll(t, comms)
		do(comms[0])
	}
	keep := func(n int, plan string) {
		t.Helper()
		job(n, planner.Options{}, func(c *planner.Comm) {
			e := table.PointOf(r, c.Topology(), "")
			e.Candidates = []table.Candidate{{Plan: plan, NS: 1000, From: table.FromMeasured}}
			made := &table.Table{Version: table.Version, Provenance: table.Provenance{Hosts: []string{c.Topology().NodeName(0)}}, Entries: []table.Entry{e}}
			if err := raw.KeepTable(c, made); err != nil {
				t.Fatal(err)
			}
		})
	}
	const small, large = "shape=han,fs=all,w=1,ib=adapt/chain,ir=adapt/chain", "shape=han,fs=all,w=1,ib=nbc/chain,ir=nbc/chain"
	want := func(n int, o planner.Options, says ...string) {
		t.Helper()
		job(n, o, func(c *planner.Comm) {
			text, err := raw.Explain(c, r)
			if err != nil {
				t.Fatal(err)
			}
			wantText(t, fmt.Sprint(n, " ranks"), text, says...)
		})
	}
	keep(2, small)
	want(2, planner.Options{}, "plan: "+small, "predicted: 1.0 µs, measured")
	want(3, planner.Options{}, "plan: "+small, "carried over: known of i=2,s=1, here i=3,s=1, table of of2-0: the order of plans is that of there", "predicted: 1.0 µs, carried over")
	want(3, planner.Options{Links: "others"}, "rule: ")
	want(9, planner.Options{}, "rule: ")
	keep(4, large)
	want(4, planner.Options{}, "plan: "+large, "table: ", " and ", "predicted: 1.0 µs, measured")
	want(3, planner.Options{}, "entry: allreduce of 4000B on i=2,s=1", "entry: allreduce of 4000B on i=4,s=1")
	want(5, planner.Options{}, "plan: "+large, "carried over: known of i=4,s=1, here i=5,s=1, table of of4-0, of2-0: the order")
	if names := kept(t, raw.KeptTables); len(names) != 2 {
		t.Errorf("kept are %v, want two tables", names)
	}
}
