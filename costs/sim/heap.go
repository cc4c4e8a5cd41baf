package sim

// event is something at a time. Its field what has its kind, and the index of a rank, a message or
// a wire.
type event struct {
	at   Time
	seq  uint32 // order among events at the same time; may wrap around
	what uint32 // kind<<indexBits | index
}

// The kinds of events.
const (
	wake   = iota // a rank goes on
	depart        // a message is ready for its sender's wire
	enter         // a message begins on the wires
	arrive        // a message is there
	turn          // a wire may carry bulk
)

// indexBits is the width of the index in an event's field what.
const indexBits = 29

func (a *event) isBefore(b *event) bool {
	return a.at < b.at || a.at == b.at && int32(a.seq-b.seq) < 0
}

// queue is a 4-ary heap of events: half as deep as a binary one, and the four children
// of an event share a cache line.
type queue struct {
	events []event
	seq    uint32 // of the next event
}

// push adds an event behind all events at the same time.
func (q *queue) push(at Time, kind, index int32) {
	e := event{at, q.seq, uint32(kind)<<indexBits | uint32(index)}
	q.seq++
	q.events = append(q.events, e)
	all, i := q.events, len(q.events)-1
	for i > 0 {
		up := (i - 1) / 4
		if !e.isBefore(&all[up]) {
			break
		}
		all[i] = all[up]
		i = up
	}
	all[i] = e
}

// pop removes the first event. There must be one.
func (q *queue) pop() event {
	first, last := q.events[0], q.events[len(q.events)-1]
	q.events = q.events[:len(q.events)-1]
	all, n, i := q.events, len(q.events), 0
	if n == 0 {
		return first
	}
	for {
		down := 4*i + 1
		if down >= n {
			break
		}
		least := down
		for c := down + 1; c < min(down+4, n); c++ {
			if all[c].isBefore(&all[least]) {
				least = c
			}
		}
		if !all[least].isBefore(&last) {
			break
		}
		all[i] = all[least]
		i = least
	}
	all[i] = last
	return first
}
