package measure

import (
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/levels"
)

// Sizes of the messages that a link's numbers come from.
const (
	smallBytes  = 8
	smallCount  = 64
	streamCount = 256
	largeBytes  = 256 << 10
	largeCount  = 8
	loneBytes   = 4 << 20
)

// link finds the numbers of a link between two ranks.
//
//	latency          half a round trip of a small message, less what is known of it
//	time per byte    large ones one after the other; inside a node half a round trip
//	burst            by how much less a single large one takes
//	overheads        what messages take of a rank that computes meanwhile
//	gap              small messages one after the other, if neither end takes so long
//	buffer           how long before its receiver the sender of a large message has done
func (f *finder) link(symbol byte, isFar bool, p pair) error {
	l := linkFinder{finder: f, pair: p, isFar: isFar, link: machine.Link{Level: machine.Symbol(symbol)}}
	if isFar {
		frame := f.setup.Frame
		l.link.MessageBytes, l.link.PacketBytes, l.link.PacketExtra = frame.MessageBytes, frame.PacketBytes, frame.PacketExtra
	}
	if err := l.exchange(); err != nil {
		return err
	}
	if err := l.overheads(); err != nil {
		return err
	}
	return l.solve()
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

// gauge is a script and what a message takes in it, ns.
type gauge struct {
	*script
	messages float64 // one after the other
	quantity
}

const (
	smallRounds = 32
	largeRounds = 4
)

// exchange measures messages while nobody computes.
func (l *linkFinder) exchange() error {
	l.small = gauge{script: &script{name: "small turns", bytes: 2 * smallBytes, emit: turns(l.pair, smallBytes, smallRounds)}, messages: 2 * smallRounds}
	l.large = gauge{script: &script{name: "large turns", bytes: 2 * largeBytes, emit: turns(l.pair, largeBytes, largeRounds)}, messages: 2 * largeRounds}
	one := []pair{l.pair}
	l.many = gauge{script: &script{name: "large stream", bytes: 2*largeBytes + 2, emit: streams(one, largeBytes, largeCount, false)}, messages: largeCount}
	l.stream = gauge{script: &script{name: "small stream", bytes: 2*smallBytes + 2, emit: streams(one, smallBytes, streamCount, false)}, messages: streamCount}
	lone := &script{name: "lone", bytes: 2 * loneBytes, emit: sends(l.pair, loneBytes, 1, -1, 0)}
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

// overheads measures what messages take of the processors of both ends: by how much
// longer a rank takes that computes for longer than they are on their way.
func (l *linkFinder) overheads() error {
	count := 1
	if !l.isFar {
		count = 16 // memory is fast
	}
	lasts := 2*l.large.value*float64(count) + smallCount*l.stream.value + 1e6
	copies := max(16, min(20_000, int(lasts/(l.found.Machine.CopyByte*busyBytes+1))))
	var scripts []*script
	for _, busy := range []levels.Rank{l.a, l.b} {
		for _, m := range []struct {
			n     int64
			count int
		}{{0, 0}, {smallBytes, smallCount}, {largeBytes, count}} {
			scripts = append(scripts, &script{
				name: fmt.Sprintf("rank %d computes %d, %d×%d", busy, copies, m.count, m.n), bytes: max(1, 2*m.n),
				emit: sends(l.pair, m.n, m.count, busy, copies),
			})
		}
	}
	stop := l.stop.WithDefaults() // small differences of long times
	stop.Rel, stop.Budget = stop.Rel/10, 4*stop.Budget
	all, err := l.processorTimes(l.ctx, stop, scripts...)
	if err != nil {
		return err
	}
	cost := func(at int, rank levels.Rank, count int) quantity {
		return median(all[at].Ranks[rank]).less(median(all[at-at%3].Ranks[rank])).times(1 / float64(count)).less(quantity{l.found.Machine.Step, 0})
	}
	sent, sentLarge, got, gotLarge := cost(1, l.a, smallCount), cost(2, l.a, count), cost(4, l.b, smallCount), cost(5, l.b, count)
	// A large message has a credit, which its sender takes and its receiver sends.
	l.link.Send, l.link.Recv = l.note(l.key("send_ns"), sent), l.note(l.key("recv_ns"), got)
	l.link.SendByte = l.note(l.key("send_byte_ns"), sentLarge.less(sent.positive()).less(got.positive()).times(1.0/largeBytes))
	l.link.RecvByte = l.note(l.key("recv_byte_ns"), gotLarge.less(sent.positive()).less(got.positive()).times(1.0/largeBytes))
	return nil
}

// key returns the name of a number of the link.
func (l *linkFinder) key(of string) string { return string(rune(l.link.Level)) + "." + of }

// solve finds what is left: the numbers with which the round trips take as long in a
// simulation as they did.
func (l *linkFinder) solve() error {
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
		late, err := l.lag(l.small)
		if err != nil {
			return err
		}
		link.Latency = max(0, link.Latency-late)
		if late, err = l.lag(bulk); err != nil {
			return err
		}
		*perByte = max(0, *perByte-late/largeBytes)
		if link.Byte == 0 {
			continue
		}
		if late, err = l.lag(l.large); err != nil {
			return err
		}
		link.BurstBytes = max(0, link.BurstBytes+int64(late/link.Byte))
	}
	l.note(l.key("latency_ns"), quantity{link.Latency, l.small.half})
	if !l.isFar {
		l.replace(l.key("send_byte_ns"), quantity{*perByte, bulk.half / largeBytes})
		return nil
	}
	l.note(l.key("byte_ns"), quantity{*perByte, bulk.half / largeBytes})
	if link.Byte > 0 {
		l.note(l.key("burst_bytes"), quantity{float64(link.BurstBytes), l.large.half / link.Byte})
		queued := l.early.less(quantity{link.Latency + link.Recv, l.small.half})
		link.BufferBytes = int64(l.note(l.key("buffer_bytes"), queued.times(1/link.Byte)))
		late, err := l.lag(l.stream)
		if err != nil {
			return err
		}
		if late < -l.stream.value/10 {
			wire := link.Byte * float64(smallBytes+link.MessageBytes+link.PacketExtra)
			link.Gap = l.note(l.key("gap_ns"), l.stream.less(quantity{wire, 0}))
		}
	}
	return nil
}

// solveRounds is how often the numbers are corrected: each is nearly right after one.
const solveRounds = 4

// replace changes a number that was noted.
func (l *linkFinder) replace(key string, q quantity) {
	for i := range l.found.Numbers {
		if n := &l.found.Numbers[i]; n.Key == key {
			n.Value, n.Half = q.value, q.half
		}
	}
}

// lag returns by how much longer a message takes by the numbers so far than it did, ns.
func (l *linkFinder) lag(g gauge) (float64, error) {
	ns, err := g.modelled(l.topology, l.found.Machine)
	return ns/g.messages - g.value, err
}
