package join

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tierflow/tierflow/levels/clock/clocktest"
)

// A full queue lets put wait; once it is loose put goes on, beyond the limit.
func TestLooseQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue[int](1)
		q.put(1)
		done := make(chan bool, 1)
		go func() { done <- q.put(2) }()
		synctest.Wait()
		if len(done) > 0 {
			t.Fatal("put did not wait")
		}
		q.loosen(true)
		if !<-done || !q.put(3) {
			t.Error("a loose queue takes nothing")
		}
		if all := q.takeAll(); len(all) != 3 || all[0] != 1 || all[1] != 2 || all[2] != 3 {
			t.Errorf("took %v, want 1 to 3", all)
		}
		q.put(4)
		q.loosen(false)
		if !q.full() {
			t.Error("the limit holds no more")
		}
	})
}

// done is isDone without the lock.
func (q *queue[T]) done() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.isDone()
}

// Items are done when their taker comes for more, and nobody waits for them beyond the context.
func TestAwaitDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue[int](2)
		began := time.Now()
		go func() { // until the queue closes
			for range q.takeAll() {
				clocktest.Pause(t.Context(), time.Second)
			}
			q.takeAll()
		}()
		synctest.Wait()
		q.put(1)
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if q.awaitDone(short); q.done() || time.Since(began) != 100*time.Millisecond {
			t.Errorf("after %v it is done: %v", time.Since(began), q.done())
		}
		if q.awaitDone(t.Context()); !q.done() || time.Since(began) != time.Second {
			t.Errorf("after %v it is done: %v", time.Since(began), q.done())
		}
		q.put(2)
		time.AfterFunc(time.Second, q.close)
		if q.awaitDone(t.Context()); time.Since(began) > 2*time.Second {
			t.Errorf("it waits for %v", time.Since(began))
		}
		q.takeAll()
	})
}
