package join

import (
	"context"
	"slices"
	"sync"
)

// queue is a bounded first-in first-out buffer between goroutines.
type queue[T any] struct {
	limit int

	mu     sync.Mutex
	change sync.Cond
	items  []T
	closed bool
	loose  bool // it takes more than limit: put doesn't wait
	idle   bool // takeAll waits: its last items are done
}

func newQueue[T any](limit int) *queue[T] {
	q := &queue[T]{limit: limit}
	q.change.L = &q.mu
	return q
}

// put waits while the queue is full, unless it is loose; false when it is closed.
func (q *queue[T]) put(item T) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) >= q.limit && !q.closed && !q.loose {
		q.change.Wait()
	}
	return q.add(item)
}

// loosen lets put go beyond the limit, or no more.
func (q *queue[T]) loosen(loose bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.loose = loose
	q.change.Broadcast()
}

// force goes beyond the limit, for items with a bound elsewhere.
func (q *queue[T]) force(item T) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.add(item)
}

func (q *queue[T]) add(item T) bool {
	if q.closed {
		return false
	}
	q.items = append(q.items, item)
	q.change.Broadcast()
	return true
}

func (q *queue[T]) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items) >= q.limit
}

// takeAll waits for items and returns them; nothing when closed and empty.
func (q *queue[T]) takeAll() []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) == 0 && !q.closed {
		q.idle = true
		q.change.Broadcast()
		q.change.Wait()
	}
	q.idle = false
	items := q.items
	q.items = nil
	q.change.Broadcast()
	return items
}

// takeFirst waits for the first item accepted by ready; false when closed,
// with items left or not. ready runs under the queue's lock; call [queue.wake] when it
// may have changed.
func (q *queue[T]) takeFirst(ready func(T) bool) (item T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed {
		for i, item := range q.items {
			if ready(item) {
				q.items = slices.Delete(q.items, i, i+1)
				q.change.Broadcast()
				return item, true
			}
		}
		q.change.Wait()
	}
	return item, false
}

// isDone reports whether all items were taken and dealt with, or never will be. The lock is held.
func (q *queue[T]) isDone() bool { return q.closed || q.idle && len(q.items) == 0 }

// awaitDone returns when done holds, or the context ends.
func (q *queue[T]) awaitDone(ctx context.Context) {
	defer context.AfterFunc(ctx, q.wake)()
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.isDone() && ctx.Err() == nil {
		q.change.Wait()
	}
}

func (q *queue[T]) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.change.Broadcast()
}

// close ends all waiting; items put before can still be taken with takeAll.
func (q *queue[T]) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.change.Broadcast()
}
