package price

import (
	"math"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/executor/flow"
)

// limitsOf returns what may go without credit on a machine.
func limitsOf(m *machine.Machine) flow.Limits { return flow.NewLimits(m.EagerMax, m.Budget) }

// link is a level's link with the machine's numbers that every message needs, ns.
type link struct {
	*machine.Link
	step   float64 // for each step
	copy   float64 // of a byte
	reduce float64 // of a byte
	peer   float64 // beside, of a byte in another rank's memory
	touch  float64 // the same once for each operand
	memory float64 // of a byte, for all ranks of a node together
	eager  float64 // goes without credit anywhere, bytes
}

func newLink(m *machine.Machine, l *machine.Link, eager int64) link {
	return link{l, m.Step, m.CopyByte, m.ReduceByte, m.PeerByte, m.PeerCopy, m.MemoryByte, float64(max(0, eager))}
}

// wire returns how long n bytes keep one direction of a link busy.
func (l *link) wire(n float64) float64 {
	if l.Byte == 0 && l.Gap == 0 {
		return 0
	}
	bytes := n + float64(l.MessageBytes)
	if l.PacketBytes > 0 {
		bytes += math.Ceil(bytes/float64(l.PacketBytes)) * float64(l.PacketExtra)
	}
	return l.Gap + l.Byte*bytes
}

// head returns how many of n bytes processors and wire can't overlap.
func (l *link) head(n float64) float64 {
	if l.PacketBytes > 0 {
		return min(n, float64(l.PacketBytes))
	}
	return n
}

// hop returns the time of a message, from being ready on one rank until it is there on a waiting one.
func (l *link) hop(n float64) Terms {
	head, wire := l.head(n), l.wire(n)
	over := max(wire, l.SendByte*(n-head))
	return Terms{
		Latency: l.Latency, Wire: over,
		Processor: 2*l.step + l.Send + l.Recv + l.SendByte*head + max(l.RecvByte*head, l.RecvByte*n-over),
	}
}

// both is hop where the sender hears a message as long at the same time. While it waits
// until the kernel has taken the last of its own it takes nothing in.
func (l *link) both(n float64) Terms {
	head := l.head(n)
	over := max(l.wire(n), l.SendByte*(n-head))
	idle := max(0, over-l.SendByte*(n-head)) + l.Latency
	if n > float64(l.BufferBytes) && l.BufferBytes > 0 {
		idle = l.Latency
	}
	return Terms{
		Latency: l.Latency, Wire: over,
		Processor: 2*l.step + l.Send + l.Recv + l.SendByte*head + max(l.RecvByte*head, l.RecvByte*n-min(idle, over)),
	}
}

// credit returns the time of a word that asks for a message.
func (l *link) credit() Terms {
	return Terms{Latency: l.Latency, Wire: l.wire(0), Processor: l.Send + l.Recv}
}

// credited adds what a message takes of either processor if it needs credit.
func (l *link) credited(n, of float64) float64 {
	if n > l.eager {
		return of
	}
	return 0
}

// leading returns the link for messages of n bytes to a rank in all, of which so many may go
// without credit.
func (l link) leading(n, lead float64) *link {
	if n <= lead {
		l.eager = max(l.eager, lead)
	}
	return &l
}

// inPieces returns the link for messages in so many pieces: segments of blocks that don't lie together.
func (l link) inPieces(count int) *link {
	one := *l.Link
	one.Send, one.Recv, one.Gap = one.Send*float64(count), one.Recv*float64(count), one.Gap*float64(count)
	one.MessageBytes *= int64(count)
	l.Link, l.step = &one, l.step*float64(count)
	return &l
}

// sends and receives return what a message takes of a processor, with the credit of a
// large one.
func (l *link) sends(n float64) float64 {
	return l.step + l.Send + l.SendByte*n + l.credited(n, l.Recv)
}

func (l *link) receives(n float64) float64 {
	return l.step + l.Recv + l.RecvByte*n + l.credited(n, l.Send)
}

// combines returns what it takes to combine n bytes with others.
func (l *link) combines(n float64) float64 {
	if n == 0 {
		return 0
	}
	return l.step + max(l.reduce, 3*l.memory)*n
}

// copies returns what it takes to copy n bytes.
func (l *link) copies(n float64) float64 { return l.step + max(l.copy, 2*l.memory)*n }

// trip returns how long it takes from asking for a message until it is there.
func (l *link) trip(n float64) float64 {
	hop := l.hop(n)
	t := hop.sum()
	if n > l.eager {
		ask := l.credit()
		t += ask.sum()
	}
	return t
}
