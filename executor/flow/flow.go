// Package flow is the arithmetic of flow control between two ranks: how much each may
// send before the other one has asked for it.
//
// It knows no links, no runs and no clock, takes no lock and starts no goroutine: an
// engine tells it of each message sent and received, and follows its answers.
//
// # Budget
//
// A message without credit is charged to the sender's budget: its payload and
// [Overhead]. The receiver gives the bytes back when it has consumed the message,
// or has dropped it. They travel as the refund of any message in the other
// direction, and in a message of their own when half of the limit is owed. Nothing
// else changes a budget, so for each direction of a pair
//
//	budget ──Charge──▶ on its way, or kept ──Consume──▶ owed
//	   ▲                                                  │
//	   └────────Refund──── on its way back ◀────Settle────┘
//
//	budget + on its way + kept + owed + on its way back = limit
//
// A byte outside this circle is lost for ever, and in the end nothing goes
// without credit any more: dropped messages must be consumed, too.
//
// # Sending
//
// A small message may go without credit, and so may a [Lead]. A
// message when it is ready, and its recv:
//
//	recv gave credit     Direct   straight to its destination
//	eager, in budget     Eager    charged
//	eager, none left     Ask      waits for budget or for credit, for the first of them
//	large                Wait     waits for credit
//
//	recv of a large message, or one asked for credit: gives it when it is ready
//	any other recv: gives none
package flow

import "github.com/tierflow/tierflow/dag/invariants"

// Overhead is charged for each message without credit beside its payload, bytes: so
// empty ones are bounded too.
const Overhead = 64

// Pair is one rank's side of the flow control with another one, or with itself.
// The zero value allows nothing without credit.
type Pair struct {
	limit  int64 // bounds the charges not given back, bytes, in each direction; 0 <= limit
	budget int64 // left for charges of this rank, bytes; 0 <= budget <= limit
	owed   int64 // consumed by this rank and not given back, bytes; 0 <= owed, and owed <= limit if the peer keeps to its own budget
	stale  int64 // of messages from before Renew, still kept, bytes: nobody wants it back; 0 <= stale
}

// NewPair returns a pair with nothing on its way. A limit below 0 counts as 0.
func NewPair(limit int64) Pair {
	limit = max(0, limit)
	return Pair{limit: limit, budget: limit}
}

// Budget returns how much this rank may still charge, bytes.
func (p *Pair) Budget() int64 { return p.budget }

// Owed returns how much this rank has consumed and not given back, bytes.
func (p *Pair) Owed() int64 { return p.owed }

// Charge takes a message of n bytes from the budget. It reports whether there was
// enough; if not, the budget is as it was.
func (p *Pair) Charge(n int64) bool {
	if p.budget < n+Overhead {
		return false
	}
	p.budget -= n + Overhead
	return true
}

// Refund adds bytes given back by the peer to the budget. It reports whether so much was
// out. If not, the peer is broken: the budget is then the limit, or as it was if bytes
// is negative.
func (p *Pair) Refund(bytes int64) bool {
	switch {
	case bytes < 0:
		return false
	case bytes > p.limit-p.budget:
		p.budget = p.limit
		return false
	}
	p.budget += bytes
	return true
}

// Consume notes the end of a message of n bytes, charged by the peer: nothing of it is kept any more.
// It reports whether half of the limit is owed: then a message of its own must
// give the bytes back, for there may be no other one.
func (p *Pair) Consume(n int64) (due bool) {
	p.owed += n + Overhead
	if p.stale > 0 {
		k := min(p.stale, n+Overhead)
		p.stale, p.owed = p.stale-k, p.owed-k
	}
	return p.owed >= p.limit/2
}

// Settle returns the bytes owed: the refund in the next message to the
// peer.
func (p *Pair) Settle() (refund int32) {
	if invariants.On && p.owed != int64(int32(p.owed)) {
		panic("flow: more is owed than a refund can say")
	}
	refund = int32(p.owed)
	p.owed = 0
	return refund
}

// Renew makes the pair as new, when both sides do: messages on their way are lost. Of older messages this rank
// keeps so many bytes; nobody wants them back.
func (p *Pair) Renew(kept int64) {
	*p = NewPair(p.limit)
	p.stale = kept
}

// Way is how a ready message leaves. The zero value is invalid.
type Way uint8

// The ways of a message.
const (
	_      Way = iota
	Direct     // against credit
	Eager      // without; it has been charged
	Ask        // not yet: it waits for credit or budget, and the receiver is asked for credit
	Wait       // not yet: it waits for credit, and its recv gives that unasked
	maxWay
)

var wayNames = [maxWay]string{Direct: "direct", Eager: "eager", Ask: "ask", Wait: "wait"}

// String returns the way's name.
func (w Way) String() string {
	if w == 0 || w >= maxWay {
		return "invalid"
	}
	return wayNames[w]
}

// Choose returns how a message of n bytes leaves, and charges it if it is [Eager].
// credited: its recv has given credit; eager: it may go without.
func (p *Pair) Choose(n int64, credited, eager bool) Way {
	switch {
	case credited:
		return Direct
	case !eager:
		return Wait
	case p.Charge(n):
		return Eager
	}
	return Ask
}
