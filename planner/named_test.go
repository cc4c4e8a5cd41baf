package planner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

// Collectives of equal requests with different names don't match, and the error has both names.
func TestNamesDiffer(t *testing.T) {
	err := planner.Run(t.Context(), "1x2", nil, func(ctx context.Context, c *planner.Comm) error {
		buf := make([]byte, 8)
		r := tasks.Request{Coll: tasks.Allreduce, Count: 2, Type: tasks.Float32, Op: tasks.Sum, InPlace: true}
		same, err := raw.PrepareNamed(c, "weights", r, nil, buf, nil)
		if err != nil {
			return err
		}
		if err := same.Run(ctx); err != nil {
			return err
		}
		other, err := raw.PrepareNamed(c, fmt.Sprintf("layer %d", c.Rank()), r, nil, buf, same)
		if err != nil {
			return err
		}
		return other.Run(ctx)
	})
	if !errors.Is(err, planner.ErrMismatch) || !strings.Contains(err.Error(), "layer 0") || !strings.Contains(err.Error(), "layer 1") {
		t.Error(err)
	}
}

// A program isn't shared by what isn't alike.
func TestNamedMisuse(t *testing.T) {
	err := planner.Run(t.Context(), "1x1", nil, func(_ context.Context, c *planner.Comm) error {
		r := tasks.Request{Coll: tasks.Allreduce, Count: 2, Type: tasks.Float32, Op: tasks.Sum, InPlace: true}
		one, err := raw.PrepareNamed(c, "a", r, nil, make([]byte, 8), nil)
		if err != nil {
			return err
		}
		r.Count = 1
		wantError(t, "another request", second(raw.PrepareNamed(c, "b", r, nil, make([]byte, 4), one)), "isn't allreduce 2 f32 sum")
		if _, err := raw.PrepareNamed(c, "", r, nil, make([]byte, 4), nil); err == nil {
			t.Error("no name passes")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A wait whose context ends breaks the communicator on all ranks, with the cause.
func TestWaitContext(t *testing.T) {
	why, givenUp := errors.New("enough waited"), make(chan struct{})
	err := planner.Run(t.Context(), "1x2", nil, func(ctx context.Context, c *planner.Comm) error {
		slow, err := planner.PrepareBcast(ctx, c, make([]int32, 4), 1)
		if err != nil {
			return err
		}
		if c.Rank() == 1 {
			<-givenUp
			if err := slow.Run(ctx); err == nil || !strings.Contains(err.Error(), why.Error()) {
				return fmt.Errorf("rank 1: %v", err)
			}
			return nil
		}
		defer close(givenUp)
		pending, err := slow.Start(ctx)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancelCause(ctx)
		cancel(why)
		if err := pending.Wait(ctx); !errors.Is(err, why) {
			return fmt.Errorf("rank 0: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
