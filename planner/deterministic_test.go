package planner_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// sums is what eight ranks get from the reductions of the same random numbers, by
// collective: elements in order, of all ranks if each has a part.
type sums map[tasks.Collective][]float32

// sumOn reduces on a layout of eight ranks.
func sumOn(t *testing.T, topo string, o *planner.Options) sums {
	t.Helper()
	const n = 8 * 200
	all := sums{tasks.Reduce: make([]float32, n), tasks.Allreduce: make([]float32, n), tasks.ReduceScatter: make([]float32, n)}
	succeed(t, topo, o, func(ctx context.Context, c *planner.Comm) error {
		draw := rand.New(rand.NewPCG(1, uint64(c.Rank())))
		in, out := make([]float32, n), make([]float32, n)
		for i := range in {
			in[i] = float32(draw.NormFloat64() * math.Exp2(draw.Float64()*20)) // sums depend on their order
		}
		if err := planner.Allreduce(ctx, c, in, out, tasks.Sum); err != nil {
			return err
		}
		if c.Rank() == 6 {
			copy(all[tasks.Allreduce], out)
		}
		var result []float32
		if c.Rank() == 5 {
			result = all[tasks.Reduce]
		}
		if err := planner.Reduce(ctx, c, in, result, tasks.Sum, 5); err != nil {
			return err
		}
		return planner.ReduceScatter(ctx, c, in, all[tasks.ReduceScatter][c.Rank()*n/8:][:n/8], tasks.Sum)
	})
	return all
}

// bits lets NaN equal itself, and tells zeros apart.
func (s sums) bits() map[string][]uint32 {
	all := map[string][]uint32{}
	for coll, numbers := range s {
		for _, v := range numbers {
			all[coll.String()] = append(all[coll.String()], math.Float32bits(v))
		}
	}
	return all
}

var layouts = []string{"8x1", "4x2", "2x4", "1x8", "a:3,b:1,c:4", "4x2/rr", "2x2x2"}

// A deterministic sum has the same bits on every layout, in segments of any size,
// under every plan that keeps its order.
func TestDeterministic(t *testing.T) {
	want := sumOn(t, "8x1", &planner.Options{Deterministic: true}).bits()
	on := layouts
	if testing.Short() {
		on = layouts[4:]
	}
	for _, topo := range on {
		for _, plan := range []string{"", "fs=512,w=2", "fs=4KiB,w=1", "shape=flat,fs=1KiB", "reduce:s=adapt/inorderbinomial/64B"} {
			got := sumOn(t, topo, &planner.Options{Deterministic: true, Plan: plan}).bits()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s under %q: %.500s", topo, plan, diff)
			}
		}
	}
}

// So has one whose parts go straight to those who combine them, where groups are whole subtrees:
// there this is what large ones do.
func TestDeterministicDirect(t *testing.T) {
	want := sumOn(t, "8x1", &planner.Options{Deterministic: true}).bits()
	for _, topo := range []string{"8x1", "4x2", "2x4"} {
		for _, plan := range []string{"shape=rsag,fs=1KiB,w=2", "shape=rsag,i=adapt/direct/64B,iag=adapt/ring"} {
			got := sumOn(t, topo, &planner.Options{Deterministic: true, Plan: "allreduce:" + plan}).bits()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s under %q: %.500s", topo, plan, diff)
			}
		}
	}
	on := tasktest.Topology(t, "4x2")
	p, err := planner.Decide(tasks.Request{Coll: tasks.Allreduce, Count: 1 << 18, Type: tasks.Float32, Op: tasks.Sum}, on, &planner.Options{Deterministic: true})
	if err != nil || p.Shape != tasks.RSAG {
		t.Errorf("a large sum has plan %v, %v", p, err)
	}
}

// Else a sum depends on the layout: what TestDeterministic compares could differ.
func TestOtherwiseLayoutsShow(t *testing.T) {
	var seen []sums
	for _, topo := range layouts {
		seen = append(seen, sumOn(t, topo, nil))
	}
	for _, coll := range []tasks.Collective{tasks.Reduce, tasks.Allreduce, tasks.ReduceScatter} {
		if !slices.ContainsFunc(seen, func(s sums) bool { return !slices.Equal(s[coll], seen[0][coll]) }) {
			t.Errorf("%v gives the same on %v", coll, layouts)
		}
	}
}

// A forced plan that can't keep the order is an error, and lists those that can; it
// isn't replaced.
func TestDeterministicContradicted(t *testing.T) {
	for plan, want := range map[string]string{
		"i=adapt/chain": "there is adapt/inorderbinomial",
		"shape=han":     "order=tree with shape=han needs groups that are whole subtrees",
	} {
		succeed(t, "a:3,b:2", &planner.Options{Deterministic: true, Plan: plan}, func(_ context.Context, c *planner.Comm) error {
			err := second(planner.PrepareAllreduce(t.Context(), c, make([]float32, 10), make([]float32, 10), tasks.Sum))
			if (!errors.Is(err, submodules.ErrUnsupported) && !errors.Is(err, tasks.ErrPlan)) || !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("plan %s: %v, want %q", plan, err, want)
			}
			return nil
		})
	}
	succeed(t, "2", &planner.Options{Deterministic: true, Plan: "w=2"}, func(_ context.Context, c *planner.Comm) error {
		sum, err := planner.PrepareAllreduce(t.Context(), c, make([]float32, 10), make([]float32, 10), tasks.Sum)
		if err == nil && !strings.Contains(sum.Explain(), "forced by Options.Deterministic and Options.Plan: w=2,order=tree") {
			t.Errorf("explained as\n%s", sum.Explain())
		}
		return err
	})
}

// All ranks have the bits of rank 0, however many exchange in a round.
func TestSameBitsOnAllRanks(t *testing.T) {
	for _, topo := range []string{"4x1", "8x1", "13x1", "16x1"} {
		for _, radix := range []string{"", "//4", "//8"} {
			sums := make([][]float32, tasktest.Topology(t, topo).Size())
			succeed(t, topo, &planner.Options{Plan: "shape=ar,i=nbc/recdoubling" + radix}, func(ctx context.Context, c *planner.Comm) error {
				draw := rand.New(rand.NewPCG(2, uint64(c.Rank())))
				in, out := make([]float32, 300), make([]float32, 300)
				for i := range in {
					in[i] = float32(draw.NormFloat64() * math.Exp2(draw.Float64()*20))
				}
				sums[c.Rank()] = out
				return planner.Allreduce(ctx, c, in, out, tasks.Sum)
			})
			for rank, sum := range sums {
				if !slices.Equal(sum, sums[0]) {
					t.Errorf("%s, recdoubling%s: rank %d has other bits than rank 0", topo, radix, rank)
				}
			}
		}
	}
}
