package pairs

import (
	"context"
	"math"
	"slices"
	"time"
)

// Bounds of a probe. They hold for each level of the topology.
const (
	probeTime   = 16 * time.Millisecond // after it a pair begins nothing new; long streams must end before it
	probeTurns  = 16                    // round trips of a small message
	probeRounds = 2                     // streams of each size but the long one
	probeLongs  = 4                     // long streams: other ranks of the same processors disturb most of them
	probeStream = 24                    // small messages in a stream
	probeShort  = 72 << 10              // bytes of a short stream; it needs credit like the long one
	probeLong   = 168 << 10             // bytes of a long stream
	probeBurst  = 24 << 10              // bytes of a message; it may pass an idle link in a burst
	probeEager  = 32 << 10              // bytes of a message without credit
)

// ProbeLimit is the follower's limit for a leader's probes and checks.
var ProbeLimit = Limit{Bytes: probeLong, Count: probeStream}

// Probe is the numbers of one pair of ranks, ns. To share them rows are added up over the ranks:
// one has the numbers and the others zeros.
type Probe [ProbeFields]int64

// The numbers of a probe.
const (
	Turn        = iota // a round trip of a small message
	Many               // until the last of 24 small messages was answered
	Each               // the sender's time for one of them
	Lead               // the sender's time for a message of 32 KiB, without credit
	Brief              // until a stream of 72 KiB was answered
	Whole              // until one of 168 KiB was; 0: the link is too slow. A message before it has used up the burst
	First              // until a message of 24 KiB was answered, on an idle link
	ProbeFields        // how many numbers there are
)

// Probe measures, and lets the follower go.
func (l *Leader) Probe(ctx context.Context) (p Probe, err error) {
	begun := time.Now()
	until := probeTime // from the beginning: then a number stays as it is
	take := func(at int, size int64, count, times int) {
		for i := 0; i < times && err == nil && (i == 0 || time.Since(begun) < until); i++ {
			var t Trip
			if t, err = l.Put(ctx, size, count); err != nil {
				return
			}
			p.keep(at, i, t.All)
			switch at {
			case Many:
				p.keep(Each, i, t.Sending/time.Duration(count))
			case Lead:
				p.keep(Lead, i, t.Sending)
			}
		}
	}
	until = probeTime / 4
	take(Turn, 0, 0, 2) // to warm up
	take(Turn, 0, 0, probeTurns)
	take(First, probeBurst, 1, probeRounds)
	take(Many, 8, probeStream, 2*probeRounds)
	take(Lead, probeEager, 1, 2*probeRounds) // a connection's first stream is a slow one
	until = probeTime
	take(Brief, probeShort, 1, probeRounds)
	long := time.Duration(p[Brief]) * probeLong / probeShort // about its time
	if time.Since(begun)+long < until {
		take(Whole, probeLong, 1, probeLongs)
	}
	if err == nil {
		err = l.End(ctx)
	}
	return p, err
}

// keep notes a time unless a shorter one of the same is known: others on the same processors only
// make times longer.
func (p *Probe) keep(at, round int, d time.Duration) {
	if ns := int64(max(1, d)); round == 0 || ns < p[at] {
		p[at] = ns
	}
}

// Median returns the median of each number of one or more probes, given row after row.
func Median(rows []int64) (p Probe) {
	for f := range p {
		var all []int64
		for at := f; at < len(rows); at += len(p) {
			all = append(all, rows[at])
		}
		slices.Sort(all)
		p[f] = all[(len(all)-1)/2]
	}
	return p
}

// Settle bounds the round trips of each level by those of the levels around it: a nearer rank
// answers no later. If numbers say otherwise, ranks of the inner pair waited for processors. probes
// are by level, the innermost first; those of nobody are zero.
func Settle(probes []Probe) {
	most := int64(math.MaxInt64)
	for k := len(probes) - 1; k >= 0; k-- {
		p := &probes[k]
		if p[Turn] == 0 {
			continue
		}
		late := max(0, p[Turn]-most)
		p[Turn] -= late
		p[Many] = max(p[Many]-late, p[Turn])
		most = p[Turn]
	}
}
