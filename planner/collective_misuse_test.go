package planner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// A forced plan that can't be is an error on every rank, which lists the possible
// algorithms: never another one in its place.
func TestForcedPlansThatCantBe(t *testing.T) {
	first := tasks.UserOp("first", false, func(a, _ int32) int32 { return a })
	for plan, want := range map[string]string{
		"iag=adapt/chain":          "for allgather there is adapt/linear, adapt/ring, nbc/linear, nbc/recdoubling, nbc/ring, nbc/neighbor, nbc/bruck",
		"iag=nbc/recdoubling":      "an allgather or reducescatter only in groups of 1, 2, 4, 8, … ranks",
		"iag=sm":                   "sm works between ranks that share memory",
		"reduce:i=adapt/binomial":  "a non-commutative operation only when the leader is the group's lowest rank",
		"reduce:shape=flat,i=solo": "solo works between ranks that share memory",
	} {
		succeed(t, "3x2", &planner.Options{Plan: plan}, func(_ context.Context, c *planner.Comm) error {
			buf, all := make([]int32, 1), make([]int32, c.Size())
			err := second(planner.PrepareAllgather(t.Context(), c, buf, all))
			if strings.HasPrefix(plan, "reduce:") {
				err = second(planner.PrepareReduce(t.Context(), c, buf, make([]int32, 1), first, 3))
			}
			if !errors.Is(err, submodules.ErrUnsupported) || !strings.Contains(err.Error(), want) {
				t.Errorf("plan %s, rank %d: got error %v, want %q in it", plan, c.Rank(), err, want)
			}
			return nil
		})
	}
}

// A plan that is forced on allreduce, and can't do the one that Split exchanges colors with, is none of Split's business.
func TestSplitDespiteForcedPlan(t *testing.T) {
	o := &planner.Options{Plan: "allreduce:shape=rsag,iag=nbc/recdoubling"}
	succeed(t, "3x2", o, func(ctx context.Context, c *planner.Comm) error {
		one := []int32{1}
		if err := planner.Allreduce(ctx, c, one, one, tasks.Sum); !errors.Is(err, submodules.ErrUnsupported) {
			t.Errorf("rank %d: got error %v from the allreduce itself, want %v", c.Rank(), err, submodules.ErrUnsupported)
		}
		d, err := c.Split(ctx, c.Rank()/4, 0)
		if err != nil {
			return err
		}
		defer d.Close()
		if want := 4 - 2*(c.Rank()/4); d.Size() != want {
			t.Errorf("rank %d: split has %d ranks, want %d", c.Rank(), d.Size(), want)
		}
		return nil
	})
}

func TestRequestsThatCantBe(t *testing.T) {
	widest := tasks.UserOp("widest", true, func(a, b bounds) bounds { return a })
	succeed(t, "1x2", nil, func(_ context.Context, c *planner.Comm) error {
		buf := make([]int32, 10)
		for want, err := range map[string]error{
			"bcast: type struct {} can't be an element":                                                            second(planner.PrepareBcast(t.Context(), c, []struct{}{{}}, 0)),
			"bcast: root 2: ranks are 0 to 1":                                                                      second(planner.PrepareBcast(t.Context(), c, buf, 2)),
			"root -1: ranks are 0 to 1":                                                                            second(planner.PrepareBcast(t.Context(), c, buf, -1)),
			"10 elements to send, 3 to receive":                                                                    second(planner.PrepareAllreduce(t.Context(), c, buf, buf[:3], tasks.Sum)),
			"send and receive buffers overlap in part":                                                             second(planner.PrepareAllreduce(t.Context(), c, buf[:6], buf[4:], tasks.Sum)),
			"reduce: root 7: ranks are 0 to 1":                                                                     second(planner.PrepareReduce(t.Context(), c, buf, buf, tasks.Sum, 7)),
			"10 elements to send, 10 to receive; it must be 20":                                                    second(planner.PrepareAllgather(t.Context(), c, buf, buf)),
			"10 elements to send, 4 to receive; it must be 8 to send":                                              second(planner.PrepareReduceScatter(t.Context(), c, buf, buf[:4], tasks.Sum)),
			"allgather: count -1 of rank 1: counts are not negative":                                               second(planner.PrepareAllgatherv(t.Context(), c, buf[:5], buf, []int{5, -1})),
			"reducescatter: 3 counts for 2 ranks":                                                                  second(planner.PrepareReduceScatterv(t.Context(), c, buf, buf[:5], []int{5, 5, 0}, tasks.Sum)),
			"1 elements to send, 10 to receive; with counts 0+0 it must be 0 and 0":                                second(planner.PrepareAllgatherv(t.Context(), c, buf[:1], buf, []int{0, 0})),
			"allgather: 0 counts for 2 ranks":                                                                      second(planner.PrepareAllgatherv(t.Context(), c, buf[:5], buf, nil)),
			"1 elements to send, 10 to receive; with counts 4+4 it must be 4 and 8":                                second(planner.PrepareAllgatherv(t.Context(), c, buf[:1], buf, []int{4, 4})),
			"with counts 5+5 it must be 10 and 5":                                                                  second(planner.PrepareReduceScatterv(t.Context(), c, buf, buf, []int{5, 5}, tasks.Sum)),
			"allgather: send and receive buffers overlap in part":                                                  second(planner.PrepareAllgatherv(t.Context(), c, buf[2:6], buf[:8], []int{4, 4})),
			"gather: 1 counts for 2 ranks":                                                                         second(planner.PrepareGatherv(t.Context(), c, buf[:5], buf, []int{5}, 0)),
			"scatter: root 3: ranks are 0 to 1":                                                                    second(planner.PrepareScatterv(t.Context(), c, buf, buf[:5], []int{5, 5}, 3)),
			"gather: 3 elements":                                                                                   second(planner.PrepareGatherv(t.Context(), c, buf[:3], nil, []int{4, 4}, 1-c.Rank())),
			"scatter: 3 elements; with counts 4+4 it must be 4":                                                    second(planner.PrepareScatterv(t.Context(), c, nil, buf[:3], []int{4, 4}, 1-c.Rank())),
			"5 elements to send, 9 to receive; with counts 5+5 it must be 5 and 10":                                second(planner.PrepareGatherv(t.Context(), c, buf[:5], buf[:9], []int{5, 5}, c.Rank())),
			"gather: send and receive buffers overlap in part":                                                     second(planner.PrepareGatherv(t.Context(), c, buf[1:5], buf[:8], []int{4, 4}, c.Rank())),
			"scatter: 1 elements; with counts 0+0 it must be 0":                                                    second(planner.PrepareScatterv(t.Context(), c, nil, buf[:1], []int{0, 0}, 1-c.Rank())),
			"reducescatter: send and receive buffers overlap in part":                                              second(planner.PrepareReduceScatter(t.Context(), c, buf, buf[5-c.Rank():][:5], tasks.Sum)),
			"scatter: root 2: ranks are 0 to 1":                                                                    second(planner.PrepareScatter(t.Context(), c, nil, buf, 2)),
			"is not a reduction":                                                                                   second(planner.PrepareAllreduce(t.Context(), c, buf, buf, tasks.Op{})),
			"minloc is not defined on i32":                                                                         second(planner.PrepareAllreduce(t.Context(), c, buf, buf, tasks.MinLoc)),
			"operation wide combines i64, the buffer holds i32":                                                    second(planner.PrepareAllreduce(t.Context(), c, buf, buf, tasks.UserOp("wide", true, func(a, _ int64) int64 { return a }))),
			"reduce: operation widest combines planner_test.bounds, the buffer holds planner_test.triple":          second(planner.PrepareReduce(t.Context(), c, make([]triple, 2), make([]triple, 2), widest, 0)),
			"allreduce 10 i32 widest: kernel: operation widest combines planner_test.bounds, the buffer holds i32": second(planner.PrepareAllreduce(t.Context(), c, buf, buf, widest)),
			"type planner_test.bounds can't be an element of sum: ":                                                second(planner.PrepareAllreduce(t.Context(), c, make([]bounds, 2), make([]bounds, 2), tasks.Sum)),
			"type bool can't be an element of max: ":                                                               second(planner.PrepareAllreduce(t.Context(), c, []bool{true}, []bool{true}, tasks.Max)),
			"tag -1 is not between 0 and":                                                                          second(planner.StartSend(t.Context(), c, 1, -1, buf)),
			"rank 5: ranks are 0 to 1":                                                                             second(planner.StartRecv(t.Context(), c, 5, 0, buf)),
			"type string can't be an element: it is no use to another rank; ":                                      second(planner.Recv(t.Context(), c, 1, 0, []string{""})),
		} {
			wantError(t, fmt.Sprint("rank ", c.Rank()), err, want)
		}
		return nil
	})
}

func second[T any](_ T, err error) error { return err }

// Only the root of a scatter has something to say about what it sends.
func TestScattersThatCantBe(t *testing.T) {
	succeed(t, "1x2", nil, func(ctx context.Context, c *planner.Comm) error {
		buf := make([]int32, 10)
		for want, err := range map[string]error{
			"10 elements to send, 4 to receive; it must be 8 to send, a block for each of 2 ranks": second(planner.PrepareScatter(ctx, c, buf, buf[:4], 0)),
			"scatter: send and receive buffers overlap in part":                                    second(planner.PrepareScatter(ctx, c, buf, buf[2:][:5], 0)),
		} {
			if c.Rank() == 0 && (err == nil || !strings.Contains(err.Error(), want)) || c.Rank() == 1 && err != nil {
				t.Errorf("rank %d: %v, want %q on rank 0", c.Rank(), err, want)
			}
		}
		wantError(t, "one-shot", planner.Allgatherv(ctx, c, buf, buf, []int{3}), "1 counts for 2 ranks")
		wantError(t, "one-shot", planner.ReduceScatterv(ctx, c, buf, buf, []int{-3, 3}, tasks.Sum), "not negative")
		return nil
	})
}
