package executor

import (
	"iter"
	"slices"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Transfer is a point-to-point send or receive on its way. Messages between two ranks with the same
// tag arrive in the order of their sends.
type Transfer struct {
	ending
	peer   levels.Rank // of the world; anyRank: a receive from any, without a message
	tag    int32
	of     tasks.Datatype // its elements'; 0: none
	buf    []byte
	n      int
	ticket uint32 // a send's: its number among those to the peer; a receive's: among all receives posted here
	// For stall reports, while the program waits for it.
	place   uint8 // in the recording; 0: none
	reports uint8 // stall reports so far
	since   int64 // see Config.stallTime; 0: no tick has seen it wait
}

// anyRank is the peer of a receive from any rank, until it has a message.
const anyRank levels.Rank = -1

// Len returns the bytes received, after Wait.
func (t *Transfer) Len() int { return t.n }

// mail is a rank's open point-to-point transfers on a communicator, and its unclaimed messages. A
// transfer is in one of its fields, or among the engine's puts.
type mail struct {
	unclaimed   queues[address, unclaimedMessage] // without a receive yet
	recvs       queues[address, *Transfer]        // posted, without a message
	anyRecvs    queues[int32, *Transfer]          // the same from any rank, by tag
	movingRecvs map[ticket]*Transfer              // receives with bytes on their way
	sends       map[ticket]*Transfer              // offered, waiting to be accepted
	arrivals    uint64                            // messages kept so far
}

// earlyMessage came before its run, or before its pass.
type earlyMessage struct {
	wire.Message
	from  levels.Rank
	block int32
}

// unclaimedMessage is a message without a receive yet.
type unclaimedMessage struct {
	earlyMessage
	order uint64 // messages kept before it, from all ranks
}

// address is the sender and tag of a message.
type address struct {
	peer levels.Rank // of the world
	tag  int32
}

// ticket is the peer's name for a transfer.
type ticket struct {
	peer levels.Rank // of the world
	n    uint32
}

// hasOpen reports whether a transfer is on its way.
func (m *mail) hasOpen() bool { return len(m.sends)+len(m.movingRecvs)+m.recvs.n+m.anyRecvs.n > 0 }

// keep keeps a message until a receive asks for it.
func (m *mail) keep(at address, one earlyMessage) {
	m.unclaimed.push(at, unclaimedMessage{one, m.arrivals})
	m.arrivals++
}

// takeRecv removes the receive for a message, nil if there is none: of those from its rank and
// those from any, the one posted first.
func (m *mail) takeRecv(at address) *Transfer {
	if m.anyRecvs.n > 0 {
		one, free := m.recvs.first(at), m.anyRecvs.first(at.tag)
		if free != nil && (one == nil || int32((*free).ticket-(*one).ticket) < 0) {
			t, _ := m.anyRecvs.pop(at.tag)
			t.peer = at.peer
			return t
		}
	}
	t, _ := m.recvs.pop(at)
	return t
}

// mostTags bounds otherTags.
const mostTags = 8

// otherTags returns some tags of messages without a receive, ascending: from a rank of the world, or from any.
func (m *mail) otherTags(from levels.Rank) (tags []int) {
	for at := range m.unclaimed.by {
		if (from == anyRank || at.peer == from) && !slices.Contains(tags, int(at.tag)) {
			tags = append(tags, int(at.tag))
		}
	}
	slices.Sort(tags)
	return tags[:min(mostTags, len(tags))]
}

// takeOldest removes the oldest message with a tag, from any rank: nobody sending much keeps others
// waiting.
func (m *mail) takeOldest(tag int32) (one unclaimedMessage, ok bool) {
	var from address
	for at, all := range m.unclaimed.by {
		if at.tag == tag && (!ok || all.First().order < one.order) {
			one, from, ok = *all.First(), at, true
		}
	}
	if ok {
		m.unclaimed.pop(from)
	}
	return one, ok
}

// addTransfer adds a transfer to a map of them, which may be nil.
func addTransfer(in *map[ticket]*Transfer, t *Transfer) {
	if *in == nil {
		*in = map[ticket]*Transfer{}
	}
	(*in)[ticket{t.peer, t.ticket}] = t
}

// takeTransfer removes the transfer with a peer's ticket, nil if it is gone.
func takeTransfer(from map[ticket]*Transfer, peer levels.Rank, n uint32) *Transfer {
	t := from[ticket{peer, n}]
	delete(from, ticket{peer, n})
	return t
}

// queues are first-in first-out queues by key. The zero value is empty.
type queues[K comparable, T any] struct {
	by    map[K]*wire.Fifo[T] // none is empty
	spare []*wire.Fifo[T]     // empty ones, for reuse
	n     int                 // in all of them
}

// maxSpare bounds the empty queues kept, and the room in each.
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

// first returns the oldest with a key, nil if there is none. It is good until the next change.
func (q *queues[K, T]) first(k K) *T {
	if f := q.by[k]; f != nil {
		return f.First()
	}
	return nil
}

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

// all returns the items of all queues, each queue in its order. Nothing may be added or removed
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

// drop removes the items picked by f.
func (q *queues[K, T]) drop(f func(T) bool) {
	for k := range q.by {
		q.dropOf(k, f)
	}
}

// dropOf removes the items of a key picked by f, and returns how many.
func (q *queues[K, T]) dropOf(k K, f func(T) bool) (n int) {
	one := q.by[k]
	if one == nil {
		return 0
	}
	n = one.Len()
	one.Drop(f)
	n -= one.Len()
	q.n -= n
	if one.Len() == 0 {
		delete(q.by, k)
	}
	return n
}

// clear empties all queues.
func (q *queues[K, T]) clear() { *q = queues[K, T]{} }
