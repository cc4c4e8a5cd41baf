package measure

import (
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/costs/machine"
)

// Sizes of the messages for a link's numbers.
const (
	smallBytes  = 8
	smallCount  = 128
	streamCount = 256
	largeBytes  = 256 << 10
	largeCount  = 8
	middleBytes = 4 << 10  // the largest size always without credit
	leadBytes   = 60 << 10 // goes to another node without credit
	loneBytes   = 4 << 20
)

// findLink finds the numbers of a link between two ranks.
//
//	latency          half a round trip of a small message, less what is known of it
//	time per byte    large ones one after the other; inside a node half a round trip
//	burst            by how much less a single large one takes
//	overheads        what a sender's processor takes for messages; many small ones in one
//	                 direction, if their receiver is what is slow; larger round trips
//	gap              small messages one after the other, if neither end takes so long
//	buffer           how long before its receiver the sender of a large message has done
func (f *finder) findLink(symbol byte, isFar bool, p pair) error {
	l := linkFinder{finder: f, pair: p, isFar: isFar, link: machine.Link{Level: machine.Symbol(symbol)}}
	if isFar {
		frame := f.setup.Frame
		l.link.MessageBytes, l.link.PacketBytes, l.link.PacketExtra = frame.MessageBytes, frame.PacketBytes, frame.PacketExtra
	}
	if err := l.measureMessages(); err != nil {
		return err
	}
	if err := l.measureOverheads(); err != nil {
		return err
	}
	return l.solveRest()
}

// linkFinder finds the numbers of one link.
type linkFinder struct {
	*finder
	pair
	isFar  bool
	link   machine.Link
	small  gauge    // round trips
	large  gauge    // the same
	many   gauge    // large messages in one direction
	stream gauge    // small messages in one direction
	early  quantity // by how much a sender of loneBytes is done before its receiver, ns
}

// gauge is a script and the time of a message in it, ns.
type gauge struct {
	*script
	messages float64 // one after the other
	quantity
}

const (
	smallRounds = 32
	largeRounds = 4
)

// measureMessages measures messages while nobody computes.
func (l *linkFinder) measureMessages() error {
	one := []pair{l.pair}
	l.small = gauge{script: turnScript("small turns", one, smallBytes, smallRounds), messages: 2 * smallRounds}
	l.large = gauge{script: turnScript("large turns", one, largeBytes, largeRounds), messages: 2 * largeRounds}
	l.many = gauge{script: streamScript("large stream", one, largeBytes, largeCount, 1, false), messages: largeCount}
	l.stream = gauge{script: streamScript("small stream", one, smallBytes, streamCount, 1, false), messages: streamCount}
	lone := sendScript("lone", one, loneBytes, 1)
	all, err := l.times(l.ctx, l.stop, l.small.script, l.large.script, l.many.script, l.stream.script, lone)
	if err != nil {
		return err
	}
	for i, g := range []*gauge{&l.small, &l.large, &l.many, &l.stream} {
		g.quantity = median(all[i].Slowest).times(1 / g.messages)
	}
	l.early = median(all[4].Ranks[l.b]).less(median(all[4].Ranks[l.a]))
	return nil
}

// measureOverheads measures the processor time of messages on a sender. It never waits: they all go
// without credit. Receivers wait, so their time for a message is known only of many together. Of a
// single one it is part of the latency.
func (l *linkFinder) measureOverheads() error {
	one := []pair{l.pair}
	counts, sizes := []int{0, 1, smallCount, 1}, []int64{smallBytes, smallBytes, smallBytes, leadBytes}
	var scripts []*script
	for i, n := range sizes {
		scripts = append(scripts, sendScript(fmt.Sprintf("lone sender %d×%d", counts[i], n), one, n, counts[i]))
	}
	middle := turnScript("middle turns", one, middleBytes, smallRounds)
	stop := l.stop.WithDefaults() // these are short
	stop.Rel /= 2
	all, err := l.processorTimes(l.ctx, stop, scripts...)
	if err != nil {
		return err
	}
	trip, err := l.times(l.ctx, stop, l.small.script, middle) // in turns: their difference counts
	if err != nil {
		return err
	}
	step := quantity{l.found.Machine.Step, 0}
	used := func(i int) quantity { return median(all[i].Ranks[l.a]) }
	sent := used(1).less(used(0)).less(step)
	more := used(2).less(used(1)).times(1.0 / (smallCount - 1)).less(step)
	l.link.Send, l.link.SendMore = l.noteNumber(l.key("send_ns"), sent), l.noteNumber(l.key("send_more_ns"), more)
	perByte := used(3).less(used(1)).times(1.0 / (leadBytes - smallBytes))
	l.link.SendByte = l.noteNumber(l.key("send_byte_ns"), perByte)
	got := quantity{0, l.stream.half}
	if l.stream.value > 1.2*(l.link.SendMore+l.found.Machine.Step) { // else its sender is the slower one
		got = l.stream.quantity
	}
	l.link.Recv = l.noteNumber(l.key("recv_ns"), got)
	round := median(trip[1].Slowest).times(1.0 / smallRounds)
	both := round.less(median(trip[0].Slowest).times(1.0 / smallRounds)).times(0.5 / (middleBytes - smallBytes))
	// The kernel's work for incoming packets is more than a sender's copy.
	rest := both.less(perByte.positive())
	if wire := l.many.value * middleBytes / largeBytes; wire > round.value/2 { // which these trips may wait for
		rest.value = min(rest.value, perByte.value)
	}
	l.link.RecvByte = l.noteNumber(l.key("recv_byte_ns"), rest)
	return nil
}

// key returns the name of a number of the link.
func (l *linkFinder) key(of string) string { return string(rune(l.link.Level)) + "." + of }

// solveRest finds the other numbers: with them the round trips take as long in a simulation as they did.
func (l *linkFinder) solveRest() error {
	m := l.found.Machine
	link := &m.Links[slices.IndexFunc(m.Links, func(of machine.Link) bool { return of.Level == l.link.Level })]
	*link = l.link
	perByte, bulk := &link.Byte, l.many
	if !l.isFar {
		perByte, bulk = &link.SendByte, l.large
		*perByte = 0
	}
	link.Latency, *perByte = l.small.value, bulk.value/largeBytes
	for range solveRounds {
		late, err := l.lagOf(l.small)
		if err != nil {
			return err
		}
		link.Latency = max(0, link.Latency-late)
		if late, err = l.lagOf(bulk); err != nil {
			return err
		}
		*perByte = max(0, *perByte-late/largeBytes)
		if link.Byte == 0 {
			continue
		}
		if late, err = l.lagOf(l.large); err != nil {
			return err
		}
		link.BurstBytes = max(0, link.BurstBytes+int64(late/link.Byte))
	}
	l.noteNumber(l.key("latency_ns"), quantity{link.Latency, l.small.half})
	if !l.isFar {
		l.replaceNumber(l.key("send_byte_ns"), quantity{*perByte, bulk.half / largeBytes})
		return nil
	}
	l.noteNumber(l.key("byte_ns"), quantity{*perByte, bulk.half / largeBytes})
	if link.Byte > 0 {
		l.noteNumber(l.key("burst_bytes"), quantity{float64(link.BurstBytes), l.large.half / link.Byte})
		queued := l.early.less(quantity{link.Latency + link.Recv, l.small.half})
		link.BufferBytes = int64(l.noteNumber(l.key("buffer_bytes"), queued.times(1/link.Byte)))
		late, err := l.lagOf(l.stream)
		if err != nil {
			return err
		}
		if late < -l.stream.value/10 {
			wire := link.Byte * float64(smallBytes+link.MessageBytes+link.PacketExtra)
			link.Gap = l.noteNumber(l.key("gap_ns"), l.stream.less(quantity{wire, 0}))
		}
	}
	return nil
}

// solveRounds is how often the numbers are corrected: each is nearly right after one.
const solveRounds = 4

// replaceNumber changes a noted number.
func (l *linkFinder) replaceNumber(key string, q quantity) {
	for i := range l.found.Numbers {
		if n := &l.found.Numbers[i]; n.Key == key {
			n.Value, n.Half = q.value, q.half
		}
	}
}

// lagOf returns by how much longer a message takes by the numbers so far than it did, ns.
func (l *linkFinder) lagOf(g gauge) (float64, error) {
	ns, err := g.modelTime(l.topology, l.found.Machine)
	return ns/g.messages - g.value, err
}
