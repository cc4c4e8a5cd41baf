package planner_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/profile"
	"github.com/tierflow/tierflow/tasks"
)

// A profile has each kind of calls of rank 0 once: one-shot, prepared and started ones, on all
// ranks and on some. What only other ranks call is not in it.
func TestProfile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "calls.json")
	err := planner.Run(t.Context(), "2x2", &planner.Options{Profile: file}, func(ctx context.Context, c *planner.Comm) error {
		buf := make([]float32, 100)
		for range 3 {
			if err := planner.Bcast(ctx, c, buf, 1); err != nil {
				return err
			}
		}
		sum, err := planner.PrepareAllreduce(ctx, c, buf, buf, tasks.Sum)
		if err != nil {
			return err
		}
		if err := sum.Run(ctx); err != nil {
			return err
		}
		started, err := sum.Start(ctx)
		if err != nil {
			return err
		}
		for range 2 { // waiting again is no call
			if err := started.Wait(ctx); err != nil {
				return err
			}
		}
		half, err := c.Split(ctx, c.Rank()%2, c.Rank())
		if err != nil {
			return err
		}
		defer half.Close()
		if c.Rank()%2 == 1 {
			return planner.Barrier(ctx, half)
		}
		return planner.Allgatherv(ctx, half, buf[:1+half.Rank()], make([]float32, 3), []int{1, 2})
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	want := []profile.Call{
		{Collective: "bcast", Type: "f32", Count: 100, Bytes: 400, On: "2x2", Calls: 3},
		{Collective: "allreduce", Type: "f32", Op: "sum", Count: 100, Bytes: 400, On: "2x2", Calls: 2},
		{Collective: "allgather", Type: "f32", Count: 2, Bytes: 8, Differ: true, Mean: 2, On: "2", Calls: 1},
	}
	byName := cmpopts.SortSlices(func(a, b profile.Call) bool { return a.Collective < b.Collective })
	if diff := cmp.Diff(want, p.Calls, byName, cmpopts.IgnoreFields(profile.Call{}, "Plan", "Seconds", "On")); diff != "" {
		t.Error(diff)
	}
	for _, c := range p.Calls {
		if _, err := tasks.ParsePlan(c.Plan); err != nil || c.Seconds <= 0 || c.Seconds > p.Seconds || (c.On == p.Machine) == c.Differ {
			t.Errorf("%+v of %v s on %s: %v", c, p.Seconds, p.Machine, err)
		}
	}
}

// A file that can't be written is an error before anything runs.
func TestProfileNowhere(t *testing.T) {
	folder := t.TempDir()
	for name, want := range map[string]string{
		filepath.Join(folder, "none", "calls.json"): "Options.Profile: no folder for the profile: stat " + filepath.Join(folder, "none"),
		folder: "Options.Profile: " + folder + " is a folder",
	} {
		wantError(t, name, second(planner.Local("2", &planner.Options{Profile: name})), want)
	}
}
