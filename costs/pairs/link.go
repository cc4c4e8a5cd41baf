package pairs

import "github.com/tierflow/tierflow/costs/machine"

// Place is the place of a pair's ranks.
type Place struct {
	Inside     bool // on one node: they have no wire to share
	OneProcess bool // in one process: there are no packets
}

// Link returns a link with the numbers of the probe, and all others of like. A message's overheads
// are the time of either end in a stream of small ones. The rest of a round trip is latency.
func (p *Probe) Link(like machine.Link, at Place) machine.Link {
	l, turn := like, float64(p[Turn])/2
	l.Send = float64(p[Each])
	each := max(0, float64(p[Many]-p[Turn])/probeStream)
	l.Recv = max(each, l.Send)
	if l.Send+l.Recv > turn {
		share := turn / (l.Send + l.Recv)
		l.Send, l.Recv = l.Send*share, l.Recv*share
	}
	l.Latency = max(0, turn-l.Send-l.Recv)
	l.SendMore, l.RecvMore, l.Gap, l.BurstBytes = 0, 0, 0, 0
	l.SendByte = min(mostByte, max(0, float64(p[Lead]-p[Each])/probeEager))
	l.RecvByte = recvToSend * l.SendByte
	byteNs := p.perByte()
	if at.Inside || at.OneProcess {
		l.MessageBytes, l.PacketBytes, l.PacketExtra, l.BufferBytes = 0, 0, 0, 0
	}
	burst := probeBurst - float64(p[First]-p[Turn])/max(byteNs, 1e-3)
	if !at.Inside && burst > 0 && burst*byteNs > float64(p[Turn]) { // else it is lost in the round trip
		l.BurstBytes = int64(min(burst, probeBurst))
	}
	switch {
	case at.Inside:
		l.Byte, l.SendByte, l.RecvByte = 0, byteNs, 0
	case l.PacketBytes > 0:
		l.Byte = byteNs * float64(l.PacketBytes) / float64(l.PacketBytes+l.PacketExtra)
	default:
		l.Byte = byteNs
	}
	return l
}

// perByte returns the time of a byte in a stream, ns: the difference between the long one and the
// short one. It can't be far from the time of the long one less some round trips, even if the short
// one was disturbed.
func (p *Probe) perByte() float64 {
	turn, brief, whole := float64(p[Turn]), float64(p[Brief]), float64(p[Whole])
	if whole == 0 {
		return max(0, brief-2*turn) / probeShort // a credit takes a round trip
	}
	most := whole / probeLong
	least := max(most/4, (whole-4*turn)/probeLong)
	return min(most, max(least, (whole-brief)/(probeLong-probeShort)))
}

// mostByte bounds the believed time of a sender's processor for a byte, ns: on a slow link it waits
// until there is room again.
const mostByte = 1

// recvToSend is how many times as long a byte takes of a receiver's processor as of a
// sender's through TCP: as [machine.Assumed] has it.
const recvToSend = 1.5
