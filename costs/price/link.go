package price

import (
	"math"

	"github.com/tierflow/tierflow/costs/machine"
)

// link is a level's link with the machine's numbers for every message, ns.
type link struct {
	*machine.Link
	step   float64 // for each step
	copy   float64 // of a byte
	reduce float64 // of a byte
	peer   float64 // beside, of a byte in another rank's memory
	touch  float64 // the same once for each operand
	memory float64 // of a byte, for all ranks of a node together
	eager  float64 // goes without credit anywhere, bytes
	lead   float64 // may go without credit over this link, bytes
}

func newLink(m *machine.Machine, l *machine.Link, eager float64) link {
	return link{l, m.Step, m.CopyByte, m.ReduceByte, m.PeerByte, m.PeerCopy, m.MemoryByte, eager, eager}
}

// withLead returns the link for messages of n bytes to a rank in all, of which up to lead go
// without credit.
func (l link) withLead(n, lead float64) *link {
	if l.lead = lead; n <= lead {
		l.eager = max(l.eager, lead)
	}
	return &l
}

// inPieces returns the link for messages in so many pieces: segments of scattered blocks.
func (l link) inPieces(count int) *link {
	one := *l.Link
	one.Send, one.Recv, one.Gap = one.Send*float64(count), one.Recv*float64(count), one.Gap*float64(count)
	one.MessageBytes *= int64(count)
	l.Link, l.step = &one, l.step*float64(count)
	return &l
}

// wireTime returns how long n bytes keep one direction of a link busy.
func (l *link) wireTime(n float64) float64 {
	if l.Byte == 0 && l.Gap == 0 {
		return 0
	}
	bytes := n + float64(l.MessageBytes)
	if l.PacketBytes > 0 {
		bytes += float64(math.Ceil(bytes/float64(l.PacketBytes)) * float64(l.PacketExtra))
	}
	return l.Gap + float64(l.Byte*bytes)
}

// oneWay returns the time of a message, from being ready on one rank until it is there on a waiting one.
func (l *link) oneWay(n float64) Terms { return l.passing(n, math.Inf(1)) }

// bothWays is oneWay between two ranks with messages to each other. They take nothing in while they
// wait for the kernel to take the last of their own.
func (l *link) bothWays(n float64) Terms {
	idle := l.Latency
	if l.BufferBytes <= 0 || n <= float64(l.BufferBytes) {
		idle += max(0, l.wireTime(n)-float64(l.SendByte*(n-l.firstBytes(n))))
	}
	return l.passing(n, idle)
}

// passing returns the time of a message. Its receiver has idle ns for the bytes while they are on the
// wire.
func (l *link) passing(n, idle float64) Terms {
	first := l.firstBytes(n)
	over := max(l.wireTime(n), l.SendByte*(n-first))
	return Terms{
		Latency: l.Latency, Wire: over,
		Processor: float64(2*l.step) + l.Send + l.Recv + float64(l.SendByte*first) + max(l.RecvByte*first, float64(l.RecvByte*n)-min(idle, over)),
	}
}

// firstBytes returns how many of n bytes processors and wire can't overlap.
func (l *link) firstBytes(n float64) float64 {
	if l.PacketBytes > 0 {
		return min(n, float64(l.PacketBytes))
	}
	return n
}

// credit returns the time of asking for a message.
func (l *link) credit() Terms {
	return Terms{Latency: l.Latency, Wire: l.wireTime(0), Processor: l.Send + l.Recv}
}

// withCredit adds the time of a credit, if messages of n bytes need one, to that of something.
func (l *link) withCredit(t Terms, n float64) Terms {
	if n > l.lead {
		return t.plus(l.credit())
	}
	return t
}

// askedTime returns how long it takes from asking for a message until it is there.
func (l *link) askedTime(n float64) float64 {
	hop := l.oneWay(n)
	t := hop.sum()
	if n > l.eager {
		ask := l.credit()
		t += ask.sum()
	}
	return t
}

// sendTime and recvTime return what a message takes of a processor, with the credit of a
// large one.
func (l *link) sendTime(n float64) float64 {
	return l.step + l.Send + float64(l.SendByte*n) + l.ifAsked(n, l.Recv)
}

func (l *link) recvTime(n float64) float64 {
	return l.step + l.Recv + float64(l.RecvByte*n) + l.ifAsked(n, l.Send)
}

// ifAsked returns what a credit takes of a processor if messages of n bytes need one.
func (l *link) ifAsked(n, credit float64) float64 {
	if n > l.eager {
		return credit
	}
	return 0
}

// combineTime returns what it takes to combine n bytes with others.
func (l *link) combineTime(n float64) float64 {
	if n == 0 {
		return 0
	}
	return l.step + float64(max(l.reduce, 3*l.memory)*n)
}

// copyTime returns what it takes to copy n bytes.
func (l *link) copyTime(n float64) float64 { return l.step + float64(max(l.copy, 2*l.memory)*n) }
