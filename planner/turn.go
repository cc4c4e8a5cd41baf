package planner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tierflow/tierflow/tasks"
)

// ErrChange is what [Comm.Turn] returns on all ranks when processes wait to join.
var ErrChange = errors.New("processes wait to join")

// turnTime is about how long it takes a rank that calls Turn again and again to hear that somebody waits.
const turnTime = 250 * time.Millisecond

// mostTurns bounds the calls between two looks.
const mostTurns = 1 << 20

// Turn returns [ErrChange] on all ranks, or on none, if processes wait to join: then all ranks call
// [Comm.Grow]. All ranks call it equally often, best between steps. About four times a second it
// is an allreduce of 16 bytes, else it is local: the ranks agree after how many calls they look
// again. Where nobody can ever wait it is always local.
func (c *Comm) Turn(ctx context.Context) error {
	if err := c.usable(ctx); err != nil {
		return fmt.Errorf("turn: %w", err)
	}
	t := &c.turn
	switch {
	case c.lobby() == nil || c.derived:
		return nil
	case t.left > 0:
		t.left--
		return nil
	}
	now := time.Now()
	next := 0
	if !t.looked.IsZero() {
		next = int(min(mostTurns, turnTime*time.Duration(t.calls+1)/max(now.Sub(t.looked), 1)))
	}
	said := []int64{int64(c.Waiting()), -int64(next)} // the fewest calls that a rank wants
	if err := AllreduceNow(ctx, c, said, said, tasks.Max); err != nil {
		return fmt.Errorf("turn: %w", err)
	}
	t.left, t.looked = int(-said[1]), now
	t.calls = t.left
	if said[0] > 0 {
		return ErrChange
	}
	return nil
}
