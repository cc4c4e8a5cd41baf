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

// turnTime is about how often ranks look for waiting processes if they call Turn again and again.
const turnTime = 250 * time.Millisecond

// mostTurns bounds the calls between two looks.
const mostTurns = 1 << 20

// Turn returns [ErrChange] on all ranks, or on none, if processes wait to join: then all ranks call
// [Comm.Grow]. All ranks call it equally often, best between steps. About four times a second it
// is an allreduce of 16 bytes, else it is local: the ranks agree after how many calls they look
// again. In a job that takes nobody in it is always local.
func (c *Comm) Turn(ctx context.Context) error {
	if err := c.checkCall(ctx); err != nil {
		return fmt.Errorf("turn: %w", err)
	}
	if c.world.lobby() == nil || c.derived || c.turn.skip() {
		return nil
	}
	now := time.Now()
	votes := []int64{int64(c.Waiting()), -int64(c.turn.spacing(now))} // the fewest calls that a rank wants
	if err := Allreduce(ctx, c, votes, votes, tasks.Max); err != nil {
		return fmt.Errorf("turn: %w", err)
	}
	c.turn.set(int(-votes[1]), now)
	if votes[0] > 0 {
		return ErrChange
	}
	return nil
}

// skip reports whether the ranks don't look at this call, and counts it.
func (t *turn) skip() bool {
	if t.left <= 0 {
		return false
	}
	t.left--
	return true
}

// spacing is the number of calls for about [turnTime], by those since the last look.
func (t *turn) spacing(now time.Time) int {
	if t.lastLook.IsZero() {
		return 0
	}
	return int(min(mostTurns, turnTime*time.Duration(t.calls+1)/max(now.Sub(t.lastLook), 1)))
}

// set sets the number of calls until the ranks look again.
func (t *turn) set(calls int, now time.Time) {
	t.left, t.calls, t.lastLook = calls, calls, now
}
