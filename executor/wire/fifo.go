package wire

import "slices"

// fifo is a queue that keeps its memory: in a steady state it allocates nothing.
type Fifo[T any] struct {
	items []T
	next  int // of items: the first that is still here
}

func (q *Fifo[T]) Push(item T) { q.items = append(q.items, item) }

func (q *Fifo[T]) Len() int { return len(q.items) - q.next }

// room is for how many it has memory.
func (q *Fifo[T]) Room() int { return cap(q.items) }

// first is the oldest; there must be one.
func (q *Fifo[T]) First() *T { return &q.items[q.next] }

// all are those that are here, the oldest first.
func (q *Fifo[T]) All() []T { return q.items[q.next:] }

// pop removes the oldest.
func (q *Fifo[T]) Pop() {
	var none T
	q.items[q.next] = none
	if q.next++; q.next == len(q.items) {
		q.items, q.next = q.items[:0], 0
	} else if q.next >= 64 && q.next > len(q.items)/2 {
		q.items = slices.Delete(q.items, 0, q.next)
		q.next = 0
	}
}

// drop removes those that f picks.
func (q *Fifo[T]) Drop(f func(T) bool) {
	rest := slices.DeleteFunc(q.All(), f)
	q.items = q.items[:q.next+len(rest)]
	if len(rest) == 0 {
		q.items, q.next = q.items[:0], 0
	}
}
