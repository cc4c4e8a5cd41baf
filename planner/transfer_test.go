package planner_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/tierflow/tierflow/planner"
)

// Done says whether a transfer has ended: not before its message is sent, also by an error, and always of none.
func TestTransferDone(t *testing.T) {
	for what, none := range map[string]*planner.Transfer{"nil": nil, "zero": {}} {
		if !none.Done() {
			t.Errorf("a %s transfer is on its way", what)
		}
	}
	onBothKinds(t, 2, 2, nil, func(ctx context.Context, c *planner.Comm) error {
		const first, second, begin = 0, 1, 2
		if c.Rank() == 1 {
			_, err := planner.Recv(ctx, c, 0, begin, []byte{0})
			return errors.Join(err, planner.Send(ctx, c, 0, first, []int32{7}))
		}
		if c.Rank() > 0 {
			return nil
		}
		got := []int32{0}
		came, err := planner.StartRecv(ctx, c, 1, first, got)
		never, failed := planner.StartRecv(ctx, c, 0, second, []int32{0}) // from itself, which doesn't leave
		if err = errors.Join(err, failed); err != nil {
			return err
		}
		if came.Done() || never.Done() {
			return errors.New("a receive without a message has ended")
		}
		if err := planner.Send(ctx, c, 1, begin, []byte{0}); err != nil {
			return err
		}
		awaitDone(came)
		if n, err := came.Wait(ctx); n != 1 || err != nil || got[0] != 7 || never.Done() {
			return fmt.Errorf("%d elements, %v, the first is %d; the other receive has ended: %t", n, err, got[0], never.Done())
		}
		why := errors.New("enough")
		if err := c.Revoke(why); err != nil {
			return err
		}
		awaitDone(never)
		if _, err := never.Wait(ctx); !errors.Is(err, why) {
			return fmt.Errorf("the revoked receive: %w", err)
		}
		return nil
	})
}

// awaitDone returns when the transfer has ended.
func awaitDone(t *planner.Transfer) {
	for !t.Done() {
		runtime.Gosched()
	}
}
