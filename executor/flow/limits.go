package flow

import "iter"

// LeadMax is the most that leads may be, bytes: on a fast link a credit takes as long as
// they do. More would fill the queues of a slow one, in front of what others wait for.
const LeadMax = 64 << 10

// LeadsMax is the most that the leads of all ranks to one may be together, bytes.
const LeadsMax = 1 << 20

// The limits of a program that sets none, bytes, and the most it may set.
const (
	defaultEagerMax = 4 << 10
	defaultNear     = 64 << 10
	defaultFar      = 256 << 10
	maxBudget       = 1 << 30
)

// Limits are what may go without credit, the same on all ranks of a world.
type Limits struct {
	// EagerMax is the largest payload that goes without credit anywhere, bytes;
	// negative: none.
	EagerMax int64
	// Lead bounds what goes first to a rank of another node whatever its size, bytes:
	// the first messages of a pass together, or one point-to-point message.
	// 0 <= Lead <= LeadMax, and a lead fits into the budget: 0 < Lead ⇒ Lead+Overhead <= FarBudget.
	Lead int64
	// NearBudget is the limit of a pair on one node, FarBudget that of a pair on two,
	// bytes. NearBudget <= FarBudget <= 1 GiB.
	NearBudget, FarBudget int64
}

// NewLimits derives them from what a program sets: the largest payload without credit and
// the budget of a pair, bytes. With eagerMax 0 it is 4 KiB, and there are leads; with
// budget 0 it is 64 KiB, and 256 KiB to another node.
func NewLimits(eagerMax, budget int64) Limits {
	l := Limits{EagerMax: eagerMax, NearBudget: budget}
	if eagerMax == 0 {
		l.EagerMax, l.Lead = defaultEagerMax, LeadMax
	}
	if budget == 0 {
		l.NearBudget, l.FarBudget = defaultNear, defaultFar
	}
	l.NearBudget = min(l.NearBudget, maxBudget)
	l.FarBudget = max(l.FarBudget, l.NearBudget)
	l.Lead = max(0, min(l.Lead, l.FarBudget-Overhead)) // what can't go at once better waits for credit alone
	return l
}

// Among returns the limits of a pass in which up to so many ranks send to one at the same
// time: their leads share [LeadsMax]. All ranks give the same number; 0 <= senders.
func (l Limits) Among(senders int) Limits {
	if senders > 0 {
		l.Lead = min(l.Lead, LeadsMax/int64(senders))
	}
	return l
}

// FarMax returns the largest payload that may go without credit to a rank of another
// node, bytes.
func (l *Limits) FarMax() int64 { return max(0, l.EagerMax, l.Lead) }

// Lead counts the messages between two ranks that go without credit at any size: the
// first ones of a pass in each direction between two nodes, where a credit takes a round
// trip. Later ones wait for credit, so the program has room for all on their way. Both
// ranks count alike, for both know the schedule. The zero value is none.
type Lead struct {
	Out, In int32 // messages that this rank sends, and receives; 0 <= Out, In
}

// CanSend reports whether the edge-th message to the peer, from 0 on, belongs to the lead.
func (l Lead) CanSend(edge int32) bool { return edge < l.Out }

// CanReceive is [Lead.CanSend] of the messages from the peer.
func (l Lead) CanReceive(edge int32) bool { return edge < l.In }

// CountLead returns how many of the messages of one direction lead, given their sizes in
// bytes in the order of the pass.
func (l *Limits) CountLead(sizes iter.Seq[int64]) (count int32) {
	sum := int64(0)
	for n := range sizes {
		if sum += n; sum > l.Lead {
			break
		}
		count++
	}
	return count
}
