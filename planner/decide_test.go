package planner_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tierflow/tierflow/costs/machine/machinetest"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

// drawMachine returns a machine's file: links of any speed, with exact numbers or such of a hurry.
func drawMachine(draw *rand.Rand) []byte {
	m := machinetest.Speeds[draw.IntN(len(machinetest.Speeds))].Machine()
	for k := range m.Links {
		l := &m.Links[k]
		l.Byte, l.Latency = l.Byte*(0.5+draw.Float64()), l.Latency*(0.5+draw.Float64())
	}
	m.CopyByte *= 0.2 + 5*draw.Float64()
	if m.Provenance.Method = "drawn"; draw.IntN(3) > 0 {
		m.Provenance.Method = choose.Hastily + "1ms"
	}
	data, err := m.Format()
	if err != nil {
		panic(err)
	}
	return data
}

// drawShared returns a request of some size as all ranks have it.
func drawShared(draw *rand.Rand, size int) tasks.Request {
	all := slices.DeleteFunc(tasks.Requestable(), func(c tasks.Collective) bool { return !c.HasInPlace() })
	r := tasks.Request{Coll: all[draw.IntN(len(all))], Type: tasks.Int64, Count: draw.Int64N(1 << draw.IntN(18)), Root: levels.Rank(draw.IntN(size))}
	if r.Reduces() {
		r.Op = tasks.Sum
	}
	return r
}

// Ranks decide alike, and predict alike, whatever differs between them: who works in place, what else each
// has asked before, in which order, and how much of it its memo has forgotten.
func TestRanksDecideAlike(t *testing.T) {
	seeds := uint64(8)
	if testing.Short() {
		seeds = 3 // with each a rank's own questions are other ones
	}
	for seed := range seeds {
		draw := rand.New(rand.NewPCG(seed, 7))
		perNode := 1 + draw.IntN(2)
		nodes := 2 + draw.IntN(3)
		o := &planner.Options{Machine: "machine", Files: inMemory("machine", drawMachine(draw))}
		comms := joinProcesses(t, nodes*perNode, perNode, o)
		rs := make([]tasks.Request, 10)
		for i := range rs {
			rs[i] = drawShared(draw, len(comms))
		}
		said := make([][]string, len(comms))
		errs := each(comms, func(_ context.Context, c *planner.Comm) error {
			own := rand.New(rand.NewPCG(seed, 100+uint64(c.Rank())))
			for range []int{280, 10, 0}[(c.Rank()+int(seed))%3] { // the memo keeps 256
				r := drawShared(own, c.Size())
				r.Count = 1 + r.Count%64
				if _, err := raw.Explain(c, r); err != nil {
					return err
				}
			}
			said[c.Rank()] = make([]string, len(rs))
			for _, i := range own.Perm(len(rs)) {
				r := rs[i]
				r.InPlace = own.IntN(2) == 0
				r, err := raw.Canonical(c, r)
				if err != nil {
					return err
				}
				send, recv := r.Buffers(levels.Rank(c.Rank()), c.Size())
				col, err := raw.Prepare(t.Context(), c, r, make([]byte, send), make([]byte, recv))
				if err != nil {
					return err
				}
				ns, known, err := c.Predict(r)
				if err != nil {
					return err
				}
				said[c.Rank()][i] = fmt.Sprintf("%v: %v, %.3f ns (%t)", r, col.Plan(), ns, known)
			}
			return nil
		})
		closeAll(t, comms)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		for rank := range said {
			for i := range said[rank] {
				if said[rank][i] != said[0][i] {
					t.Errorf("seed %d: rank %d decides\n%s\nrank 0\n%s", seed, rank, said[rank][i], said[0][i])
				}
			}
		}
	}
}

// What ranks have tried counts for a request in place and apart, also where a rank had decided on it before or
// has forgotten it since, and when a collective is decided anew.
func TestTrialsCountOnAllRanks(t *testing.T) {
	comms := localComms(t, "2x2", &planner.Options{Effort: planner.EffortMeasure})
	const tried = "shape=flat,fs=all,w=1,i=nbc/binomial"
	noErrors(t, each(comms, func(_ context.Context, c *planner.Comm) error {
		r := tasks.Request{Coll: tasks.Allreduce, Count: 4000, Type: tasks.Int64, Op: tasks.Sum}
		inPlace := r
		inPlace.InPlace = true
		one, two := make([]byte, 32000), make([]byte, 32000)
		before, err := raw.PrepareNamed(c, "before", inPlace, nil, one, nil) // without a trial
		if err != nil {
			return err
		}
		if before.Plan().String() == tried {
			return fmt.Errorf("%v is chosen anyway", before.Plan())
		}
		c.KeepTrial(r, mustPlan(tried))
		for i := range int64(300 * (c.Rank() % 2)) { // the memo keeps 256
			if _, err := raw.Explain(c, tasks.Request{Coll: tasks.Bcast, Count: 1 + i, Type: tasks.Int64}); err != nil {
				return err
			}
		}
		named, err := raw.PrepareNamed(c, "after", inPlace, nil, one, nil)
		if err != nil {
			return err
		}
		made, err := raw.Prepare(t.Context(), c, r, one, two)
		if err != nil {
			return err
		}
		if _, err := before.Replan(); err != nil {
			return err
		}
		for what, col := range map[string]*planner.Collective{"in place": named, "apart": made, "decided anew": before} {
			if got := col.Plan().String(); got != tried {
				t.Errorf("rank %d, %s: %s, want what was tried, %s", c.Rank(), what, got, tried)
			}
		}
		return nil
	}))
	closeAll(t, comms)
}
