package sim

import (
	"fmt"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/executor/flow"
	"github.com/tierflow/tierflow/levels"
)

// prices are a machine's numbers as a simulation needs them.
type prices struct {
	links      []linkPrice // by level of the topology
	limits     flow.Limits
	copy       rate
	reduce     rate
	peerCopy   Time // for an operand in the memory of another rank
	peerByte   rate
	memory     rate // 0: no limit
	step       Time
	swap       Time // to give a processor to another rank
	unreadable bool
	noise      float64 // how much longer anything takes at most, as a share; 0: never
}

// linkPrice is a link of a machine.
type linkPrice struct {
	symbol             byte
	isWired            bool // ranks share a wire
	latency, gap       Time
	send, recv         Time
	sendMore, recvMore Time // of a message that goes or comes together with others
	sendByte, recvByte rate
	wireByte           rate
	message            int64
	packet, extra      int64
	buffer             Time // a wire's time for the kernel's queue
	burst              Time // its time for the bytes of a burst after it was idle
}

// pricesOf turns a machine's numbers into prices on a topology. Without a seed there is
// no noise.
func pricesOf(m *machine.Machine, t *levels.Topology, seed uint64) (prices, error) {
	p := prices{
		limits: flow.NewLimits(m.EagerMax, m.Budget), copy: rate(m.CopyByte * 1000), reduce: rate(m.ReduceByte * 1000),
		memory: rate(m.MemoryByte * 1000), step: nanoseconds(m.Step), swap: nanoseconds(m.Cores.Switch), unreadable: m.Unreadable,
	}
	if !m.Unreadable { // else all ranks of the node can read it
		p.peerCopy, p.peerByte = nanoseconds(m.PeerCopy), rate(m.PeerByte*1000)
	}
	if seed != 0 {
		p.noise = 2 * m.Noise // uniform: twice the mean
	}
	for k := range t.Depth() {
		level := t.Level(k)
		l, err := m.Link(level)
		if err != nil && t.IsUsed(k) {
			return p, fmt.Errorf("simulate on %v: %w", t, err)
		}
		price := linkPrice{
			symbol: level.Symbol, isWired: l.Byte > 0 || l.Gap > 0, latency: nanoseconds(l.Latency), gap: nanoseconds(l.Gap),
			send: nanoseconds(l.Send), recv: nanoseconds(l.Recv), sendByte: rate(l.SendByte * 1000), recvByte: rate(l.RecvByte * 1000),
			wireByte: rate(l.Byte * 1000), message: l.MessageBytes, packet: l.PacketBytes, extra: l.PacketExtra,
		}
		price.sendMore, price.recvMore = price.send, price.recv
		if l.SendMore > 0 {
			price.sendMore = nanoseconds(l.SendMore)
		}
		if l.RecvMore > 0 {
			price.recvMore = nanoseconds(l.RecvMore)
		}
		price.buffer, price.burst = price.wireByte.of(l.BufferBytes), price.wireByte.of(l.BurstBytes)
		p.links = append(p.links, price)
	}
	return p, nil
}

// onWire returns how long n bytes keep a wire busy.
func (l *linkPrice) onWire(n int64) Time {
	bytes := l.message + n
	if l.packet > 0 {
		bytes += (bytes + l.packet - 1) / l.packet * l.extra
	}
	return l.gap + l.wireByte.of(bytes)
}

// head returns how many of n bytes the processors of both ends can't overlap with the
// wire: the first packet.
func (l *linkPrice) head(n int64) int64 {
	if l.packet > 0 {
		return min(n, l.packet)
	}
	return n
}
