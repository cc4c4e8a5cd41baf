package executor_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
)

// Who waits too long for another rank's word reports it, and gives up when a call's time is over; the words of both stand.
func TestAgreeInTime(t *testing.T) {
	var log lines
	const limit = 5 * time.Second
	inBubble(t, 3, executor.Config{StallAfter: time.Second, CallTimeout: limit, Stalls: log.logger()}, func(t *testing.T, w *executor.World) {
		reverse(w)
		agree := func(r levels.Rank, ok bool) (bool, error) { // by number on communicator 1
			return w.Endpoint(2-r).Comm(1).Agree(context.Background(), ok)
		}
		began := time.Now()
		var waiting sync.WaitGroup
		for r := range levels.Rank(2) {
			waiting.Go(func() { // rank 1 knows by rank 0
				_, err := agree(r, true)
				if !errors.Is(err, context.DeadlineExceeded) || !names(err, 2) || !strings.HasPrefix(err.Error(), "agree: rank 2 has not come for 5.0 s, it is in no call: the limit of 5s") {
					t.Errorf("rank %d: %v", r, err)
				}
			})
		}
		clocktest.Pass(limit / 2)
		if s := w.Endpoint(1).State(1); s.String() != "in agree" {
			t.Errorf("a waiting rank is %s", &s)
		}
		waiting.Wait()
		if s := w.Endpoint(1).State(1); s.String() != "in no call" {
			t.Errorf("a rank that has given up is %s", &s)
		}
		if took := time.Since(began); took < limit || took > 2*limit {
			t.Errorf("gave up after %v; the limit is %v", took, limit)
		}
		if text := log.text(); !strings.Contains(text, "agree") || strings.Count(text, "missing=[2]") < 2 || strings.Contains(text, "missing=[0]") {
			t.Errorf("reported %q", text)
		}
		if all, err := agree(2, true); err != nil || !all {
			t.Errorf("rank 2: %t, %v; all have said yes", all, err)
		}
	})
}
