package planner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
)

// All ranks of a job choose by the machine that they have measured together, and so do those
// of communicators that are made from theirs.
func TestMachineIsMeasured(t *testing.T) {
	comms, errs := joinWith(t, 2, &planner.Options{Machine: planner.MachineMeasure}, nil, nil, nil, nil, nil)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, comms)
	texts := make([]string, len(comms))
	errs = each(comms, func(ctx context.Context, c *planner.Comm) error {
		d, err := c.Split(ctx, 0, c.Rank())
		if err != nil {
			return err
		}
		for _, c := range []*planner.Comm{c, d} {
			col, err := planner.PrepareBcast(ctx, c, make([]float32, 5<<10), 0)
			if err != nil {
				return err
			}
			if err := col.Run(ctx); err != nil {
				return err
			}
			texts[d.Rank()] += col.Explain()
		}
		return nil
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for rank, text := range texts {
		if text != texts[0] {
			t.Errorf("rank %d:\n%s\nrank 0:\n%s", rank, text, texts[0])
		}
	}
	for _, want := range []string{"machine: ranks, measured by pairs of ranks in ", "link s: latency ", "link i: latency ", "price: "} {
		if strings.Count(texts[0], want) < 2 {
			t.Errorf("Explain lacks %q:\n%s", want, texts[0])
		}
	}
}

// What was measured serves the next job of the same ranks. Others measure again.
func TestMachineIsKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "machine.json")
	made := func(spec string) string {
		t.Helper()
		comms := localComms(t, spec, &planner.Options{Machine: planner.MachineMeasure + ":" + file})
		defer closeComms(comms)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := machine.Parse(file, data)
		if err != nil {
			t.Fatal(err)
		}
		if want := "goroutines " + spec; m.Provenance.Ranks != want {
			t.Errorf("the machine of %q, want %q", m.Provenance.Ranks, want)
		}
		return string(data)
	}
	first := made("4x2")
	if again := made("4x2"); again != first {
		t.Errorf("the second job has measured:\n%s\nafter\n%s", again, first)
	}
	if other := made("2x1"); other == first {
		t.Error("other ranks have not measured")
	}
	if err := os.WriteFile(file, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	wantError(t, "a broken file", second(planner.Local("2x1", &planner.Options{Machine: planner.MachineMeasure + ":" + file})), "machine.json:1: ")
	// Where it can't be written the job goes on, and Explain says so.
	comms, err := planner.Local("2x1", &planner.Options{Machine: planner.MachineMeasure + ":" + filepath.Join(file, "below")})
	if err == nil {
		closeComms(comms)
		t.Error("a file below a file was read")
	}
}

// A rank that leaves while others measure is named, and nobody waits for it.
func TestMeasureWithoutARank(t *testing.T) {
	comms := localComms(t, "4x1", nil)
	defer closeComms(comms)
	errs := each(comms, func(ctx context.Context, c *planner.Comm) error {
		if c.Rank() == 3 {
			return c.Close()
		}
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return c.MeasureMachine(ctx, "")
	})
	for rank, err := range errs[:3] {
		wantError(t, fmt.Sprint("rank ", rank), err, "measure the machine: ", "rank 3")
	}
}

// A rank that gives up in the middle of a measurement is named by all, and nobody waits for it. Without one that gives up
// all end well.
func TestMeasureCutShort(t *testing.T) {
	gone := errors.New("gone")
	for _, at := range []int32{0, 1, 2, 3} { // which look of its first waits; 0: none
		giveUp := func() {}
		looks, measures := int32(0), false
		comms := joinEach(t, 4, func(r int) *planner.Options {
			if r != 3 {
				return nil
			}
			o := &planner.Options{}
			raw.SeamsOf(o).Progress = func() { // called by the rank's own goroutine
				if measures {
					if looks++; looks == at {
						giveUp()
					}
				}
			}
			return o
		}, onNodes(1))
		errs := each(comms, func(ctx context.Context, c *planner.Comm) error {
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			if c.Rank() == 3 {
				giveUp, measures = func() { cancel(gone) }, true
				defer func() { measures = false }()
			}
			return c.MeasureMachine(ctx, "")
		})
		for rank, err := range errs {
			switch {
			case at == 0:
				if err != nil {
					t.Errorf("rank %d, with nobody gone: %v", rank, err)
				}
			case rank == 3:
				if !errors.Is(err, gone) {
					t.Errorf("the rank that is gone at look %d says %v", at, err)
				}
			default:
				if err := blames(err, 3); err != nil {
					t.Errorf("at look %d rank %d: %v", at, rank, err)
				}
			}
		}
		closeAll(t, comms)
	}
}

// One node has nothing to choose by price, so its ranks measure nothing.
func TestOneNodeMeasuresNothing(t *testing.T) {
	comms := localComms(t, "1x4", &planner.Options{Machine: planner.MachineMeasure})
	defer closeComms(comms)
	col, err := planner.PrepareBcast(t.Context(), comms[0], make([]float32, 4), 0)
	if err != nil {
		t.Fatal(err)
	}
	if text := col.Explain(); !strings.Contains(text, "machine: not known, the built-in rule decides: all ranks are on one node") {
		t.Error(text)
	}
}

// Measuring goes without a topology's levels that nobody measures in.
func TestUnevenNodesAreMeasured(t *testing.T) {
	for _, spec := range []string{"2x1", "3x2/rr", "2x2x2"} {
		comms := localComms(t, spec, &planner.Options{Machine: planner.MachineMeasure})
		errs := each(comms, func(ctx context.Context, c *planner.Comm) error {
			x := []float32{1}
			if err := planner.Bcast(ctx, c, x, 0); err != nil {
				return err
			}
			if x[0] != 1 {
				return fmt.Errorf("got %v", x)
			}
			return nil
		})
		if err := errors.Join(errs...); err != nil {
			t.Errorf("%s: %v", spec, err)
		}
		closeComms(comms)
	}
}
