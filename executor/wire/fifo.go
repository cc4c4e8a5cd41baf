package wire

import "slices"

// Fifo is a queue with lasting memory: in a steady state it allocates nothing. The zero
// value is empty.
type Fifo[T any] struct {
	items []T
	next  int // of items: the first still here; 0 <= next <= len(items)
}

// Push appends an item.
func (q *Fifo[T]) Push(item T) { q.items = append(q.items, item) }

// Insert puts an item before the i-th oldest, behind all if there are i.
func (q *Fifo[T]) Insert(i int, item T) { q.items = slices.Insert(q.items, q.next+i, item) }

// Len returns how many items there are.
func (q *Fifo[T]) Len() int { return len(q.items) - q.next }

// Cap returns for how many items the queue has memory.
func (q *Fifo[T]) Cap() int { return cap(q.items) }

// First returns the oldest item; there must be one. It is good until the next Push or Pop.
func (q *Fifo[T]) First() *T { return &q.items[q.next] }

// All returns the items, the oldest first. It is good until the next Push, Pop or Drop.
func (q *Fifo[T]) All() []T { return q.items[q.next:] }

// Pop removes the oldest item; there must be one.
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

// Drop removes the items picked.
func (q *Fifo[T]) Drop(pick func(T) bool) {
	rest := slices.DeleteFunc(q.All(), pick)
	q.items = q.items[:q.next+len(rest)]
	if len(rest) == 0 {
		q.items, q.next = q.items[:0], 0
	}
}
