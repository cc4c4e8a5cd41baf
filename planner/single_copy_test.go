package planner_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

// Single copies: from ordinary slices, from memory of Alloc, and where processes
// may not read each other.
func TestSingleCopies(t *testing.T) {
	for _, plan := range []string{"s=solo/linear,fs=all", "s=solo,sr=solo/slices,fs=64KiB,w=2", "shape=flat,s=solo,sr=solo/slices,i=adapt"} {
		for _, memory := range []string{"slices", "alloc", "apart"} {
			for _, inPlace := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/%v", plan, memory, inPlace), func(t *testing.T) {
					o := &planner.Options{Plan: plan}
					raw.SeamsOf(o).NoPeerReads = memory == "apart"
					processes(t, 4, 4, o, func(ctx context.Context, c *planner.Comm) error {
						return singleCopies(ctx, c, memory == "alloc", inPlace)
					})
				})
			}
		}
	}
}

func singleCopies(ctx context.Context, c *planner.Comm, alloc, inPlace bool) error {
	const n = 300_001
	send, recv := make([]int64, n), make([]int64, n)
	if alloc {
		var err error
		if send, err = planner.Alloc[int64](c, n); err != nil {
			return err
		}
		if recv, err = planner.Alloc[int64](c, n); err != nil {
			return err
		}
		defer planner.Free(c, send)
		defer planner.Free(c, recv)
	}
	if inPlace {
		send = recv
	}
	sum, err := planner.PrepareAllreduce(ctx, c, send, recv, tasks.Sum)
	if err != nil {
		return err
	}
	bcast, err := planner.PrepareBcast(ctx, c, recv, 2)
	if err != nil {
		return err
	}
	for round := range 3 {
		for i := range send {
			send[i] = int64(i + c.Rank() + round)
		}
		if err := sum.Run(ctx); err != nil {
			return err
		}
		p := int64(c.Size())
		for i, got := range recv {
			if want := p*int64(i+round) + p*(p-1)/2; got != want {
				return fmt.Errorf("element %d: %d, want %d", i, got, want)
			}
		}
		if c.Rank() == 2 {
			for i := range recv {
				recv[i] = int64(i * round)
			}
		}
		if err := bcast.Run(ctx); err != nil {
			return err
		}
		for i, got := range recv {
			if want := int64(i * round); got != want {
				return fmt.Errorf("bcast element %d: %d, want %d", i, got, want)
			}
		}
	}
	return nil
}
