package pairs

import (
	"math"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
)

// linkOf returns the link of a probe with these numbers.
func linkOf(like machine.Link, at Place, numbers ...int64) machine.Link {
	p := Probe(numbers)
	return p.Link(like, at)
}

// The numbers of a link follow from the times of a pair: here of 1 Gbit/s with 20 µs of
// latency, whose messages take 3 µs of either end.
func TestMeasuredLink(t *testing.T) {
	const turn, short, long = 52_000, 72 << 10, 168 << 10
	tcp := machine.Assumed().Links[1]
	wire := func(n float64) int64 { return int64(n * 8 * (1448 + 66) / 1448) }
	l := linkOf(tcp, Place{}, turn, turn+24*3000, 3000, 3000+32<<10/5, 2*turn+wire(short), 2*turn+wire(long), turn+wire(24<<10))
	for _, tc := range []struct {
		name      string
		got, want float64
	}{
		{"latency", l.Latency, 20_000},
		{"send", l.Send, 3000},
		{"recv", l.Recv, 3000},
		{"byte", l.Byte, 8},
		{"send byte", l.SendByte, 0.2},
	} {
		if math.Abs(tc.got/tc.want-1) > 0.01 {
			t.Errorf("%s %v, want %v", tc.name, tc.got, tc.want)
		}
	}
	if l.PacketBytes != tcp.PacketBytes || l.BufferBytes != tcp.BufferBytes {
		t.Errorf("packets of %d bytes, %d queued", l.PacketBytes, l.BufferBytes)
	}
	if l.BurstBytes != 0 {
		t.Errorf("a burst of %d bytes that nobody saw", l.BurstBytes)
	}
	l = linkOf(tcp, Place{}, turn, turn+24*3000, 3000, 3000, 2*turn+wire(short), 2*turn+wire(long), turn+wire(4<<10))
	if l.BurstBytes < 19<<10 || l.BurstBytes > 21<<10 {
		t.Errorf("a burst of %d bytes, want some %d", l.BurstBytes, 20<<10)
	}
	// A short stream that was disturbed does not make a link fast.
	l = linkOf(tcp, Place{}, turn, turn+24*3000, 3000, 3000, 9*turn+wire(long), 2*turn+wire(long), turn+wire(24<<10))
	if l.Byte < 6 || l.Byte > 9 {
		t.Errorf("a byte takes %v ns, want some 8", l.Byte)
	}
	// Numbers that contradict each other still make a link.
	for _, p := range [][6]int64{{}, {1, 1, 1_000_000, 1, 1, 1}, {1000, 0, 0, 0, 0, 0}, {1 << 40, 1, 1, 1, 1, 1 << 50}} {
		for _, inside := range []bool{false, true} {
			l := linkOf(tcp, Place{Inside: inside, OneProcess: true}, p[0], p[1], p[2], p[3], p[4], p[5], p[0])
			for _, v := range []float64{l.Latency, l.Send, l.Recv, l.Byte, l.SendByte, l.RecvByte} {
				if v < 0 || math.IsNaN(v) {
					t.Errorf("%v inside %v: %+v", p, inside, l)
				}
			}
		}
	}
}
