package planner

import (
	"context"
	"fmt"
	"math/bits"
	"time"

	"github.com/tierflow/tierflow/levels"
)

// Bounds of what measuring a machine takes. They hold for each level of the topology.
const (
	probeTime   = 16 * time.Millisecond // from when on a pair begins nothing new, and nothing long that would end later
	probeTurns  = 16                    // round trips of a small message
	probeRounds = 2                     // streams of each size but the long one
	probeLongs  = 4                     // long streams: other ranks of the same processors disturb most of them
	probeStream = 24                    // small messages in a stream
	probeShort  = 72 << 10              // bytes of a short stream, which needs credit as the long one does
	probeLong   = 168 << 10             // bytes of a long stream
	probeBurst  = 24 << 10              // bytes of a message that may pass an idle link in a burst
	probeEager  = 32 << 10              // bytes of a message that goes without credit
)

// probeTag is the tag of all messages of a measurement: nobody else sends any meanwhile.
const probeTag = 0

// probe is what one pair of ranks measured, ns. Rows of the same numbers are added up over
// the ranks, of whom one has it and the others zeros.
type probe [probeFields]int64

// The numbers of a probe.
const (
	probeTurn  = iota // a round trip of a small message
	probeMany         // until the last of probeStream small messages was answered
	probeSend         // what the sender takes for each of them
	probeLead         // what the sender takes for probeEager bytes
	probeBrief        // until a short stream was answered
	probeWhole        // until a long one was; 0: the link is too slow. A message before it has used up what passes in a burst
	probeFirst        // until a message of probeBurst bytes was answered, on a link that was idle
	probeFields
)

// prober is one end of a pair. The first of the two says what comes next, the other one
// obeys.
type prober struct {
	c    *Comm
	peer int
	buf  []byte
	word []int64 // what comes next: bytes of a message, and how many
}

// pairsAt returns pairs of ranks that share a domain of level k and none inside it: as many
// as there are binary digits of such domains, at most, each rank in one of them. They are
// near and far.
func pairsAt(t *levels.Topology, k int) (all [][2]int) {
	heads, last := map[int32]int{}, []int32{}
	for r := range t.Size() {
		d := int32(r) // a domain inside
		if k > 0 {
			d = t.Domain(levels.Rank(r), k-1)
		}
		if _, ok := heads[d]; !ok && t.Domain(levels.Rank(r), k) == t.Domain(0, k) {
			heads[d], last = r, append(last, d)
		}
	}
	for i := range min(len(last)/2, bits.Len(uint(len(last)-1))) {
		all = append(all, [2]int{heads[last[i]], heads[last[len(last)-1-i]]})
	}
	return all
}

// probeLevel measures the pairs of a level, each at the same time, and returns this rank's
// number among them and what it has measured.
func (c *Comm) probeLevel(ctx context.Context, pairs [][2]int) (at int, p probe, err error) {
	for i, pair := range pairs {
		o := prober{c: c, word: make([]int64, 2)}
		switch c.Rank() {
		case pair[0]:
			o.peer = pair[1]
			p, err = o.lead(ctx)
			return i, p, err
		case pair[1]:
			o.peer = pair[0]
			return -1, p, o.follow(ctx)
		}
	}
	return -1, p, nil
}

// lead measures with a peer that follows.
func (o *prober) lead(ctx context.Context) (p probe, err error) {
	begun := time.Now()
	until := probeTime // from the beginning: then a number is left at what it is
	take := func(at int, size int64, count, times int) {
		for i := 0; i < times && err == nil && (i == 0 || time.Since(begun) < until); i++ {
			var all, sending time.Duration
			if all, sending, err = o.ask(ctx, size, count); err != nil {
				return
			}
			p.keep(at, i, all)
			switch at {
			case probeMany:
				p.keep(probeSend, i, sending/time.Duration(count))
			case probeLead:
				p.keep(probeLead, i, sending)
			}
		}
	}
	until = probeTime / 4
	take(probeTurn, 0, 0, 2) // to warm up
	take(probeTurn, 0, 0, probeTurns)
	take(probeFirst, probeBurst, 1, probeRounds)
	take(probeMany, 8, probeStream, 2*probeRounds)
	take(probeLead, probeEager, 1, 2*probeRounds) // a connection's first stream is a slow one
	until = probeTime
	take(probeBrief, probeShort, 1, probeRounds)
	long := time.Duration(p[probeBrief]) * probeLong / probeShort // about what it takes
	if time.Since(begun)+long < until {
		take(probeWhole, probeLong, 1, probeLongs)
	}
	if err == nil {
		err = o.say(ctx, -1, 0)
	}
	return p, err
}

// keep notes a time unless a shorter one of the same is known: what others do meanwhile on
// the same processors only makes times longer.
func (p *probe) keep(at, round int, d time.Duration) {
	if ns := int64(max(1, d)); round == 0 || ns < p[at] {
		p[at] = ns
	}
}

// ask has the peer receive so many messages of so many bytes, and returns how long it took
// until its answer was there, and until all were sent.
func (o *prober) ask(ctx context.Context, size int64, count int) (all, sending time.Duration, err error) {
	if int64(len(o.buf)) < size {
		o.buf = make([]byte, size)
	}
	begun := time.Now()
	if err = o.say(ctx, size, count); err != nil {
		return 0, 0, err
	}
	said := time.Now()
	for range count {
		if err = Send(ctx, o.c, o.peer, probeTag, o.buf[:size]); err != nil {
			return 0, 0, err
		}
	}
	sending = time.Since(said)
	_, err = Recv(ctx, o.c, o.peer, probeTag, o.word[:1])
	return time.Since(begun), sending, err
}

func (o *prober) say(ctx context.Context, size int64, count int) error {
	o.word[0], o.word[1] = size, int64(count)
	return Send(ctx, o.c, o.peer, probeTag, o.word)
}

// follow receives what the leading end asks for, until it asks for nothing more.
func (o *prober) follow(ctx context.Context) error {
	for {
		if n, err := Recv(ctx, o.c, o.peer, probeTag, o.word); err != nil {
			return err
		} else if n != len(o.word) {
			return fmt.Errorf("rank %d says %d numbers, want %d", o.peer, n, len(o.word))
		}
		size, count := o.word[0], o.word[1]
		switch {
		case size < 0:
			return nil
		case size > probeLong || count < 0 || count > probeStream:
			return fmt.Errorf("rank %d asks for %d messages of %d bytes; allowed are %d of %d", o.peer, count, size, probeStream, probeLong)
		case int64(len(o.buf)) < size:
			o.buf = make([]byte, size)
		}
		for range count {
			if _, err := Recv(ctx, o.c, o.peer, probeTag, o.buf[:size]); err != nil {
				return err
			}
		}
		if err := Send(ctx, o.c, o.peer, probeTag, o.word[:1]); err != nil {
			return err
		}
	}
}
