package planner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// joinWith is joinProcesses with options for each rank. It returns each rank's
// error.
func joinWith(t *testing.T, perNode int, options ...*planner.Options) ([]*planner.Comm, []error) {
	t.Helper()
	return tryJoin(t, len(options), func(r int) *planner.Options { return options[r] }, onNodes(perNode))
}

// Rank 0's name of the links holds for all ranks; goroutine ranks without any share memory.
func TestLinksAreNamed(t *testing.T) {
	comms, errs := joinWith(t, 2, &planner.Options{Links: "10gbit"}, &planner.Options{}, &planner.Options{Links: "1gbit"}, nil)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, comms)
	for rank, c := range comms {
		if c.Links() != "10gbit" {
			t.Errorf("rank %d: links %q", rank, c.Links())
		}
	}
	for variable, want := range map[string]string{"": table.SharedMemory, "40gbit": "40gbit"} {
		t.Setenv(env.Links, variable)
		local := localComms(t, "2x2", nil)
		if got := local[0].Links(); got != want {
			t.Errorf("%s=%q: links %q, want %q", env.Links, variable, got, want)
		}
		closeComms(local)
	}
}

// Rank 0's table holds for all ranks; theirs are not even read.
func TestTableIsAgreed(t *testing.T) {
	other := []byte(strings.ReplaceAll(string(tableFile(t)), "shape=han,", "shape=flat,"))
	comms, errs := joinWith(t, 2,
		&planner.Options{Table: recordedFile}, &planner.Options{Table: "table", Files: inMemory("table", []byte("no table"))},
		&planner.Options{Table: "table", Files: inMemory("table", other)}, &planner.Options{Table: "/no/such/file"})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	local := localComms(t, "2x2", &planner.Options{Table: recordedFile})
	defer closeComms(local)
	for _, r := range tasktest.Requests("bcast,allreduce,gather", 64, 5000, 1<<20) {
		want, err := local[0].Decide(r)
		if err != nil {
			t.Fatal(err)
		}
		for rank, c := range comms {
			if got, err := c.Decide(r); err != nil || !got.Equal(want) {
				t.Errorf("rank %d decides %v for %v (%v), want %v", rank, got, r, err, want)
			}
		}
	}
	errs = each(comms, func(ctx context.Context, c *planner.Comm) error {
		sum := []float32{1}
		if err := planner.Allreduce(ctx, c, sum, sum, tasks.Sum); err != nil || sum[0] != 4 {
			return fmt.Errorf("sum %v, %w", sum, err)
		}
		col, err := planner.PrepareBcast(ctx, c, make([]float32, 5000), 0)
		if err != nil {
			return err
		}
		if text := col.Explain(); !strings.Contains(text, "recorded.json of rank 0") || !strings.Contains(text, "entry: bcast of") {
			return fmt.Errorf("Explain:\n%s", text)
		}
		return col.Run(ctx)
	})
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	closeAll(t, comms)
}

// What is wrong with rank 0's table ends the join of all ranks with that reason.
func TestTableRefusedByAll(t *testing.T) {
	comms, errs := joinWith(t, 2, &planner.Options{Table: "table", Files: inMemory("table", []byte("{\n]"))}, nil, nil)
	for rank, err := range errs {
		wantError(t, fmt.Sprint("rank ", rank), err, "Options.Table: table:2: ")
		if comms[rank] != nil {
			t.Errorf("rank %d has joined", rank)
		}
	}
}

// The environment names a table, and communicators made from others keep it.
func TestTableFromEnvironment(t *testing.T) {
	t.Setenv(env.Table, recordedFile)
	r := tasktest.Requests("allreduce", 1<<20)[0]
	var plans []tasks.Plan
	err := planner.Run(t.Context(), "2x2", nil, func(ctx context.Context, c *planner.Comm) error {
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		for _, c := range []*planner.Comm{c, d} {
			p, err := c.Decide(r)
			if err != nil {
				return err
			}
			if c.Rank() == 0 {
				plans = append(plans, p)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	on := tasktest.Topology(t, "2x2")
	want, byTable, err := planner.DecideBy(recorded(t), r, on)
	if err != nil || !byTable || len(plans) != 2 || !plans[0].Equal(want) || !plans[1].Equal(want) {
		t.Errorf("decided %v, the table says %v (%v, %v)", plans, want, byTable, err)
	}
	t.Setenv(env.Table, "/no/such/file")
	if _, err := planner.Local("2", nil); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), env.Table) {
		t.Errorf("a file that isn't there gives %v", err)
	}
	if _, err := planner.Local("2", &planner.Options{Table: "x", Files: inMemory("x", []byte("x"))}); err == nil {
		t.Error("two tables are accepted")
	}
}

func tableFile(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile(recordedFile)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A decision that was made before costs no memory.
func TestDecideAllocatesNothing(t *testing.T) {
	comms := localComms(t, "2x2", &planner.Options{Table: recordedFile})
	defer closeComms(comms)
	all := tasktest.Requests("bcast,allreduce", 64, 5000)
	i := 0
	decide := func() {
		if _, err := comms[0].Decide(all[i%len(all)]); err != nil {
			t.Fatal(err)
		}
		i++
	}
	for range all {
		decide()
	}
	if n := testing.AllocsPerRun(100, decide); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
