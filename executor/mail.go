package executor

import (
	"iter"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// Transfer is a point-to-point send or receive on its way. Messages between two
// ranks with the same tag arrive in the order in which they were sent.
type Transfer struct {
	ending
	peer   levels.Rank // of the world
	tag    int32
	buf    []byte
	n      int
	ticket uint32 // a send's: how many went to the peer; a receive's: how many this rank posted
}

// Len returns the bytes received, after Wait.
func (t *Transfer) Len() int { return t.n }

// mail is the point-to-point transfers of a rank on a communicator that have not ended,
// and the messages that no receive has asked for yet. A transfer is in one of its
// fields, or among the engine's puts.
type mail struct {
	came  queues[address, earlyMessage] // what no receive has asked for yet
	recvs queues[address, *Transfer]    // posted, without a message
	given map[ticket]*Transfer          // receives whose bytes are on their way
	sends map[ticket]*Transfer          // offered, waiting to be accepted
}

// earlyMessage came before its run, or before its pass.
type earlyMessage struct {
	wire.Message
	from  levels.Rank
	block int32
}

// address is what a receive asks for, and what a message says.
type address struct {
	peer levels.Rank // of the world
	tag  int32
}

// ticket is a transfer as its peer names it.
type ticket struct {
	peer levels.Rank // of the world
	n    uint32
}

// hasOpen reports whether a transfer is on its way.
func (m *mail) hasOpen() bool { return len(m.sends)+len(m.given)+m.recvs.n > 0 }

// addTransfer adds a transfer to a map of them, which may be nil.
func addTransfer(in *map[ticket]*Transfer, t *Transfer) {
	if *in == nil {
		*in = map[ticket]*Transfer{}
	}
	(*in)[ticket{t.peer, t.ticket}] = t
}

// takeTransfer removes the transfer with a rank that has a ticket, nil if it is gone.
func takeTransfer(from map[ticket]*Transfer, peer levels.Rank, n uint32) *Transfer {
	t := from[ticket{peer, n}]
	delete(from, ticket{peer, n})
	return t
}

// queues are first-in first-out queues by key. The zero value is empty.
type queues[K comparable, T any] struct {
	by    map[K]*wire.Fifo[T] // none is empty
	spare []*wire.Fifo[T]     // that have been
	n     int                 // in all of them
}

// maxSpare bounds the empty queues that are kept, and the room in each.
const maxSpare = 16

// push appends an item to the queue of a key.
func (q *queues[K, T]) push(k K, item T) {
	f := q.by[k]
	if f == nil {
		if q.by == nil {
			q.by = map[K]*wire.Fifo[T]{}
		}
		if last := len(q.spare) - 1; last >= 0 {
			f, q.spare = q.spare[last], q.spare[:last]
		} else {
			f = &wire.Fifo[T]{}
		}
		q.by[k] = f
	}
	f.Push(item)
	q.n++
}

// has reports whether there is one with that key.
func (q *queues[K, T]) has(k K) bool { return q.by[k] != nil }

// pop removes the oldest with a key; ok is false if there is none.
func (q *queues[K, T]) pop(k K) (item T, ok bool) {
	f := q.by[k]
	if f == nil {
		return item, false
	}
	item = *f.First()
	f.Pop()
	q.n--
	if f.Len() == 0 {
		delete(q.by, k)
		if len(q.spare) < maxSpare && f.Cap() <= maxSpare {
			q.spare = append(q.spare, f)
		}
	}
	return item, true
}

// all returns those of all queues, each in its order. Nothing may be added or removed
// meanwhile.
func (q *queues[K, T]) all() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for _, f := range q.by {
			for i := range f.All() {
				if !yield(&f.All()[i]) {
					return
				}
			}
		}
	}
}

// drop removes those that f picks.
func (q *queues[K, T]) drop(f func(T) bool) {
	for k, one := range q.by {
		before := one.Len()
		one.Drop(f)
		q.n -= before - one.Len()
		if one.Len() == 0 {
			delete(q.by, k)
		}
	}
}

// clear empties all queues.
func (q *queues[K, T]) clear() { *q = queues[K, T]{} }
