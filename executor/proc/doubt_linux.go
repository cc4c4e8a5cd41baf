package proc

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"github.com/tierflow/tierflow/levels"
)

// A packet that gets lost again and again has two causes. Its host is gone: the control plane tells of that. Or the network doesn't
// carry packets of this size. Then small control messages pass, and ranks wait for each other in one call: it looks like a deadlock.
// So a rank that waits looks at its links now and then. It tries packets of both sizes on a connection of its own.
const (
	doubtEvery = time.Second
	mostLapses = 4               // of one packet: after some 3 s
	tryTime    = 5 * time.Second // for the trial
	doubtAgain = time.Minute     // of the same link
)

// prober is a Job that can try packets, as that of package join.
type prober interface {
	Probe(ctx context.Context, peer levels.Rank) (at, from netip.AddrPort, err error)
}

// largeLost is the error of a trial if only large packets get lost.
type largeLost interface {
	error
	LostBytes() int
}

// doubts are what a rank thinks of its links. The zero value has none, ever.
type doubts struct {
	job  prober // nil: nobody can try, or wants to know
	log  *slog.Logger
	rank levels.Rank
	next time.Time                 // look at the links
	told map[levels.Rank]time.Time // not to be doubted before
}

// newDoubts returns those of a rank, if they can be told and cleared up.
func newDoubts(rank levels.Rank, job Job, config Config) doubts {
	d := doubts{log: cmp.Or(config.Stalls, config.Log), rank: rank, told: map[levels.Rank]time.Time{}}
	if d.log != nil && config.StallAfter >= 0 {
		d.job, _ = job.(prober)
	}
	return d
}

// doubt looks at the links if it is time. The engine's lock is held.
func (p *process) doubt() {
	d := &p.doubts
	if d.job == nil || !p.last.After(d.next) {
		return
	}
	d.next = p.last.Add(doubtEvery)
	for _, l := range p.far {
		if l.Lapses() >= mostLapses && p.last.After(d.told[l.Peer]) {
			d.told[l.Peer] = p.last.Add(doubtAgain)
			peer := l.Peer
			p.dials.Go(func() { d.try(p.dialling, peer) })
		}
	}
}

// try says so if large packets to a rank get lost, and small ones don't.
func (d *doubts) try(ctx context.Context, peer levels.Rank) {
	ctx, stop := context.WithTimeout(ctx, tryTime)
	defer stop()
	_, _, err := d.job.Probe(ctx, peer)
	if lost, is := errors.AsType[largeLost](err); is {
		d.log.Warn("stalled", "rank", d.rank, "peer", peer, "packets", lost.LostBytes(), "why", lost.Error())
	}
}
