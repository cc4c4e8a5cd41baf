package executor_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
)

// Who has closed has not failed: those that still want something of it hear what it won't come to. Who closes
// during a call hears which one.
func TestClosedIsNoFailure(t *testing.T) {
	receive := func(ctx context.Context, w *executor.World) error {
		_, err := recv(ctx, w, 1, 0, 5, nil)
		return err
	}
	for name, c := range map[string]struct {
		call   func(ctx context.Context, w *executor.World) error // of rank 1
		closes levels.Rank
		want   string // the begin of rank 1's error
	}{
		"call":    {func(ctx context.Context, w *executor.World) error { return crossed(t, w, 0)[1].Do(ctx) }, 0, "rank 0 has closed, it won't come to bcast 3 i32 root 0 #0"},
		"receive": {receive, 0, "receive from rank 0, tag 5: rank 0 has closed"},
		"wrong tag": {func(ctx context.Context, w *executor.World) error {
			if err := send(ctx, w, 0, 1, 3, []byte{1}); err != nil {
				return err
			}
			return receive(ctx, w)
		}, 0, "receive from rank 0, tag 5 (what waits has tag 3): rank 0 has closed"},
		"send":               {func(ctx context.Context, w *executor.World) error { return send(ctx, w, 1, 0, 5, make([]byte, 1<<20)) }, 0, "send 1048576 bytes to rank 0, tag 5: rank 0 has closed"},
		"closing in a call":  {func(ctx context.Context, w *executor.World) error { return crossed(t, w, 0)[1].Do(ctx) }, 1, "closed during bcast 3 i32 root 0 #0"},
		"closing, receiving": {receive, 1, "closed during receive from rank 0, tag 5"},
	} {
		inBubble(t, 2, executor.Config{}, func(t *testing.T, w *executor.World) {
			done := make(chan error, 1)
			go func() { done <- c.call(context.Background(), w) }()
			synctest.Wait()
			closed := w.Endpoint(c.closes).Comm(0).Close()
			if (closed != nil) != (c.closes == 1) {
				t.Errorf("%s: Close: %v", name, closed)
			}
			if err := <-done; !errors.Is(err, executor.ErrClosed) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%s: %v, want %s", name, err, c.want)
			}
		})
	}
}
