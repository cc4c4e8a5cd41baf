package executor

import (
	"fmt"
	"slices"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
)

// lookAround runs every tick while a rank waits. It probes the awaited peers, to uncover a
// mismatch, and reports stalled runs.
func (e *Endpoint) lookAround() {
	now := time.Now()
	e.blameSuspects(now)
	for _, r := range e.runs {
		if r.hasMoved || r.since.IsZero() {
			if r.probed {
				e.flight.Move(uint64(r.comm.id), r.seq)
			}
			r.hasMoved, r.probed, r.inquiredAfter, r.since, r.reportAfter = false, false, 0, now, e.world.config.StallAfter
			continue
		}
		r.comm.breakIfDeserted(r, now)
		if still := now.Sub(r.since); r.probed && still >= 2*r.inquiredAfter {
			r.inquiredAfter = still // again when it has waited twice as long
			r.inquireAbsent()
		}
		if !r.probed {
			e.noteCaller()
			r.probed = true // once: a probe is kept until its call
			r.probePeers()
			r.recordWait(now.Sub(r.since))
		}
		if limit := r.reportAfter; limit > 0 && now.Sub(r.since) >= limit {
			r.reportAfter *= 2
			e.noteStall(r.comm, r.b.Request, r.awaitedSteps(), now.Sub(r.since), r.absentPeers())
		}
	}
	e.lookAtTransfers(now)
}

// blameSuspects breaks the communicators of ranks under suspicion for longer than grace without
// news from the control plane. If only the link to it broke, the rank is asked first.
func (e *Endpoint) blameSuspects(now time.Time) {
	for len(e.suspects) > 0 && now.Sub(e.suspects[0].since) >= grace {
		s := e.suspects[0]
		e.suspects = e.suspects[1:]
		if number, ok := e.linkNumber(s.rank); s.comm != nil || !ok {
			e.lose(s)
		} else if number == s.number { // else it was renewed meanwhile
			e.inBackground(func() { e.clearUp(s) })
		}
	}
}

// Adopt says that the program of this rank runs on the calling goroutine. [World.States] looks
// there.
func (e *Endpoint) Adopt() { e.caller.Store(goroutineID()) }

// noteCaller notes the driving goroutine as the one of the rank's program.
func (w *driverState) noteCaller() {
	if !w.backDrives {
		w.caller.Store(goroutineID())
	}
}

// probePeers tells each awaited rank the request of this one.
func (r *Run) probePeers() {
	clear(r.notified)
	r.eachStuck(func(_ *submodules.Step, peer levels.Rank) {
		if n := r.comm.local[peer]; !r.notified.has(n) {
			r.notified.set(n)
			r.comm.e.sendPresence(peer, r.comm.id, r.seq, r.digest)
		}
	})
}

// lateGoodbye is how long after a rank's goodbye to all its goodbye on one communicator may come:
// by another way, on a very busy machine.
const lateGoodbye = 5 * time.Second

// breakIfDeserted breaks the communicator of a run standing still for longer than grace, in two
// cases. First: it waits for a rank that has left after this call. All messages of the rank are
// here, so the two didn't call the same. Second: a rank has left everything and never made the
// communicator. The run may wait for another rank, itself held up by this one.
func (c *Comm) breakIfDeserted(r *Run, now time.Time) {
	if len(c.departures) == 0 || now.Sub(r.since) < grace {
		return
	}
	for _, d := range c.departures {
		if d.fromAll && !slices.ContainsFunc(c.departures, func(o departure) bool { return o.rank == d.rank && !o.fromAll }) {
			if time.Duration(c.e.world.config.stallTime(now)-d.since) < lateGoodbye {
				continue
			}
			c.blameRank(d.rank, closedError("has closed without ever making the communicator"))
			return
		}
	}
	told := false
	r.eachStuck(func(s *submodules.Step, peer levels.Rank) {
		for _, d := range c.departures {
			if !told && d.rank == peer && (d.fromAll || int32(r.seq-d.seq) < 0) {
				told = true
				err := closedError("has closed, and is waited for in %s #%d, %s", r.b.Request, r.seq, r.prog.Label(s))
				c.e.failing = append(c.e.failing, failure{comm: c, peer: peer, err: err, seq: r.seq, mine: r.call, digest: r.digest})
			}
		}
	})
}

// inquireAbsent asks the awaited ranks not known to be in the call.
func (r *Run) inquireAbsent() {
	e, c := r.comm.e, r.comm
	asked := newRankSet(c.Size())
	r.eachStuck(func(_ *submodules.Step, peer levels.Rank) {
		n := c.local[peer]
		if r.present.has(n) || asked.has(n) {
			return
		}
		asked.set(n)
		e.asking = append(e.asking, inquiry{e.rank, peer, c.id, r.seq, r.digest, r.call})
	})
}

// recordWait records how long the run has stood still.
func (r *Run) recordWait(long time.Duration) {
	e := flight.Event{Comm: uint64(r.comm.id), Seq: r.seq, Pass: r.pass, Peer: -1, Edge: -1}
	r.eachStuck(func(s *submodules.Step, peer levels.Rank) {
		if e.Peer < 0 {
			e.Peer, e.Edge, e.Bytes = int32(peer), s.Edge, s.Len()
		}
	})
	if e.Peer >= 0 { // else it is in a long operation of the caller's
		r.comm.e.flight.Wait(e, long, r.awaitedSteps())
	}
}

// lookAtTransfers notes since when sends and receives with a waiting goroutine wait, and reports
// stalled ones.
func (e *Endpoint) lookAtTransfers(now time.Time) {
	if e.transfers == 0 {
		return
	}
	at := e.world.config.stallTime(now)
	e.comms.eachTransfer(&e.puts, func(t *Transfer, way string, moves bool) {
		if !t.isAwaited() {
			return
		}
		if t.since == 0 {
			t.since = at
			e.noteCaller()
			t.recordWait(way)
		}
		long, limit := time.Duration(at-t.since), e.world.config.StallAfter<<t.reports
		if limit <= 0 || long < limit {
			return
		}
		t.reports = min(t.reports+1, maxReports)
		missing, waits := "none", "bytes on their way"
		if t.peer == anyRank {
			missing, waits = "any", awaitedBy[way]
		} else if !moves {
			missing, waits = fmt.Sprintf("r%d", t.comm.numberOf(t.peer)), awaitedBy[way]
		}
		e.noteStall(t.comm, t.name(way), waits, long, missing)
	})
}

// maxReports bounds the doublings of the time between two stall reports.
const maxReports = 20

// noteStall counts a stall and reports it.
func (e *Endpoint) noteStall(c *Comm, request, waits string, long time.Duration, missing string) {
	e.stalls++
	if log := e.world.config.Stalls; log != nil {
		log.Warn("stalled", "rank", c.me, "request", request, "waits", waits, "for", long.Round(wire.Tick), "missing", missing)
		e.inBackground(c.reportVerdict)
	}
}

// recordWait records that the transfer waits.
func (t *Transfer) recordWait(way string) {
	ev := flight.Event{Comm: uint64(t.comm.id), Peer: int32(t.peer), Edge: t.tag, Bytes: int64(len(t.buf))}
	t.place = t.comm.e.flight.WaitTransfer(ev, wire.Tick, t.name(way))
}
