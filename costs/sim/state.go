package sim

import (
	"github.com/tierflow/tierflow/executor/flow"
	"github.com/tierflow/tierflow/submodules"
)

// engine is a simulation on its way. Everything is found by index: nothing depends on
// addresses or on the order of a map.
type engine struct {
	job      *Job
	now      Time // of the event at hand
	queue    queue
	prices   prices
	ranks    []rank
	messages []message
	free     int32 // first unused message, -1: none
	wires    [][]wirePair
	domains  [][]int32 // by link and rank: the domain of its wires
	memory   []Time    // by node: when it has carried everything so far
	nodes    []int32   // by rank
	members  []int32   // by node: its ranks
	pools    []pool    // of processors; nil: each rank has one
	random   uint64    // state of the noise; unused without
	watch    *watch    // nil: nobody watches
	log      *log      // nil: nobody asked for the critical path
	left     int       // unfinished ranks
	counts   Counts
}

// rank is the state of one rank.
type rank struct {
	id      int32
	state   state
	seat    *seat
	form    *form // of the seat
	pass    int64 // -1 before the start
	clock   Time  // until when its processor is busy: state != running ⇒ nothing happens on the rank after it
	idle    Time  // how long it was idle before it was woken; 0 once used
	end     Time  // when it finished; -1: it has not
	burst   int   // steps until it looks for messages
	looks   int32 // how often it has looked for messages; may wrap around
	heard   int32 // conn of the message before in a look; -1: none
	hasCore bool  // it has a processor of its pool; only if there are pools
	isNew   bool  // it has just been given one
	looking bool  // it has taken a part of its inbox
	left    int   // steps of the pass still to end
	fresh   int   // sends on top of ready with a credit just come: first in, first out
	pending []int32
	flags   []flag
	ready   []int32 // last in, first out, except fresh
	waiting []int32 // eager sends without budget
	early   []int32 // messages for later passes
	inbox   list    // arrived messages
	pairs   []pair  // by conn
	busy    Time    // processor time used
}

// state is whether a rank will go on by itself.
type state uint8

const (
	resting   state = iota // until a message comes; its clock may be in the future
	scheduled              // a wake event is in the queue
	queued                 // it waits for a processor of its pool
)

// flag is the progress of a step in this pass, as in package executor.
type flag uint8

const (
	reached  flag = 1 << iota // its predecessors have ended
	arrived                   // its message is here
	credited                  // its recv is ready
	wanted                    // the sender of its message has asked for credit
	leaving                   // its message leaves
	ended
)

// pair is a rank's knowledge of a conn.
type pair struct {
	flow    flow.Pair
	lead    flow.Lead // of the running pass
	link    uint8     // index into prices.links
	isFar   bool      // of another node
	spoken  int32     // looks of the rank when it last sent anything to the conn; -1: never
	unsent  Time      // wire time of bulk handed over by the sender and not yet taken by a wire
	drained Time      // when all bulk taken by wires has left
	bulk    list      // messages waiting for their turn on the wire
}

// message is one on its way, or in an inbox. Fields are the sender's; conn and step are the
// receiver's.
type message struct {
	bytes  int64
	cpuEnd Time // when the sender's processor has done all for it
	from   int32
	to     int32
	conn   int32 // of the receiver
	step   int32 // of the receiver; -1: none
	own    int32 // step of the sender, ended when the message has left; -1: none
	pass   int32
	refund int32
	next   int32 // in a list
	kind   messageKind
	isBulk bool

	hasBegun bool  // a part of it has begun on the wires
	rest     Time  // wires' time for the part still to begin
	part     Time  // wires' time for the part begun last
	since    Time  // since when the rest waits for its sender's wire
	over     Time  // how long its bytes took to come in
	came     Time  // when it arrived
	waited   Time  // for wires
	sent     Time  // when its sender's wire has carried the part
	by       int32 // the sender's act of sending it, see log
}

// messageKind is the meaning of a message, as in package executor.
type messageKind uint8

const (
	_        messageKind = iota
	eager                // payload without credit
	data                 // payload against credit
	want                 // the sender waits for budget, and asks for credit
	credit               // a recv is ready
	notify               // a step was reached
	giveBack             // nothing but a refund
	left                 // to the sender itself: its bytes have left
)

// list is a queue of messages.
type list struct{ first, last int32 }

// wire is one direction of a domain.
type wire struct {
	free   Time // when it has carried everything begun, were there no bursts
	urgent Time // when it has carried all but bulk; urgent <= free
	Use

	// Only of the direction out:
	id        int32  // wire d of level k: d·levels + k
	until     Time   // when it has carried the part begun last
	backlog   Time   // its time for everything waiting for a turn
	turns     []lane // of each waiting message, the next one first
	isAwaited bool   // there is a turn event
}

// lane is one direction of a conn.
type lane struct {
	rank int32 // the sender
	conn int32 // of the sender
}

type wirePair struct{ out, in wire }

// allocMessage returns the index of an unused message.
func (e *engine) allocMessage() int32 {
	if e.free < 0 {
		e.messages = append(e.messages, message{})
		return int32(len(e.messages) - 1)
	}
	i := e.free
	e.free = e.messages[i].next
	return i
}

// dropMessage ends the use of a message.
func (e *engine) dropMessage(i int32) {
	e.messages[i].next = e.free
	e.free = i
}

// appendMessage adds a message to a list.
func (e *engine) appendMessage(l *list, i int32) {
	e.messages[i].next = -1
	if l.first < 0 {
		l.first = i
	} else {
		e.messages[l.last].next = i
	}
	l.last = i
}

// scheduleRank makes a rank go on when its processor is free.
func (e *engine) scheduleRank(r *rank) {
	r.state = scheduled
	e.queue.push(max(r.clock, e.now), wake, r.id)
}

// keepBusy keeps a rank's processor busy.
func (e *engine) keepBusy(r *rank, d Time) {
	d = e.addNoise(d)
	r.clock += d
	r.busy += d
}

// addNoise returns a duration with noise.
func (e *engine) addNoise(d Time) Time {
	if e.prices.noise == 0 || d == 0 {
		return d
	}
	e.random += golden
	share := rate(float64(float64(mix(e.random)>>11)*0x1p-53) * e.prices.noise)
	return d + share.of(int64(d))
}

// golden and mix are the step and the mixing of splitmix64 (Steele, Lea, Flood, OOPSLA 2014):
// random numbers, the same everywhere.
const golden = 0x9e3779b97f4a7c15

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// needsMemory reports whether a step needs the memory of the node. Ranks share that, so the step must
// not be simulated ahead of the others.
func (e *engine) needsMemory(r *rank, id int32, s *step) bool {
	if e.prices.memory == 0 || s.bytes == 0 {
		return false
	}
	switch s.kind {
	case submodules.CopyStep, submodules.ReduceStep:
		return true
	case submodules.RecvStep: // of a message that was kept
		return r.flags[id]&arrived != 0 && e.members[e.nodes[r.id]] > 1
	case submodules.ShareStep:
		return e.prices.unreadable
	case submodules.SendStep:
		return s.bytes > e.prices.limits.EagerMax && !r.pairs[r.seat.conns[s.peer]].isFar
	}
	return false
}

// isKept reports whether a message comes before its recv is ready and is copied to a place until then, in memory
// that other ranks of the node need, too.
func (e *engine) isKept(r *rank, m *message) bool {
	switch {
	case e.prices.memory == 0 || m.kind != eager || m.bytes == 0 || r.end >= 0 || e.members[e.nodes[r.id]] == 1:
		return false
	case int64(m.pass) != r.pass:
		return int64(m.pass) > r.pass
	}
	return r.flags[m.step]&reached == 0
}

// moveBytes keeps a rank busy with n bytes, carried so many times by its node's memory. That serves ranks in the order of
// events. What a rank handles of a message before keeps no other rank from it.
func (e *engine) moveBytes(r *rank, n int64, at rate, times int64) {
	begin := r.clock
	if e.members[e.nodes[r.id]] > 1 {
		begin = min(begin, e.now+e.prices.step)
	}
	e.keepBusy(r, at.of(n))
	if e.prices.memory == 0 || n == 0 {
		return
	}
	m := &e.memory[e.nodes[r.id]]
	*m = max(*m, begin) + e.prices.memory.of(n*times)
	if *m > r.clock {
		r.busy += *m - r.clock
		r.clock = *m
	}
}
