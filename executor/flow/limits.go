package flow

import "iter"

// LeadMax bounds the leads of a pass, bytes: on a fast link a credit takes as long as
// they do. More would fill the queues of a slow one, in front of more urgent bytes.
const LeadMax = 64 << 10

// LeadsMax bounds the leads of all ranks to one together, bytes.
const LeadsMax = 1 << 20

// Burst is how many steps a rank executes between two looks for messages. What comes before its
// recv is ready is kept until then.
const Burst = 32

// The limits of a program without settings, bytes, and the largest budget.
const (
	defaultEagerMax = 4 << 10
	defaultNear     = 64 << 10
	defaultFar      = 256 << 10
	maxBudget       = 1 << 30
)

// Limits bound the bytes without credit, alike on all ranks of a world.
type Limits struct {
	// EagerMax is the largest payload without credit anywhere, bytes;
	// negative: none.
	EagerMax int64
	// Lead bounds the first bytes to a rank of another node, in messages of any size:
	// the first messages of a pass together, or one point-to-point message.
	// 0 <= Lead <= LeadMax, and a lead fits into the budget: 0 < Lead ⇒ Lead+Overhead <= FarBudget.
	Lead int64
	// NearBudget is the limit of a pair on one node, FarBudget of a pair on two,
	// bytes. NearBudget <= FarBudget <= 1 GiB.
	NearBudget, FarBudget int64
}

// NewLimits derives them from the settings of a program: the largest payload without credit and
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
	l.Lead = max(0, min(l.Lead, l.FarBudget-Overhead)) // without room for it the whole message better waits for credit
	return l
}

// Among returns the limits of a pass with up to so many ranks that send to one at the same
// time: their leads share [LeadsMax]. All ranks give the same number; 0 <= senders.
func (l Limits) Among(senders int) Limits {
	if senders > 0 {
		l.Lead = min(l.Lead, LeadsMax/int64(senders))
	}
	return l
}

// FarMax returns the largest payload without credit to a rank of another
// node, bytes.
func (l *Limits) FarMax() int64 { return max(0, l.EagerMax, l.Lead) }

// Lead counts the messages without credit at any size between two ranks: the
// first ones of a pass in each direction between two nodes, as a credit takes a round
// trip there. Later ones wait for credit, so the program has room for all on their way. Both
// ranks count alike, for both know the schedule. The zero value is none.
type Lead struct {
	Out, In int32 // messages from this rank, and to it; 0 <= Out, In
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
