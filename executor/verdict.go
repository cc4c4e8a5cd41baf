package executor

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/flight/verdict"
	"github.com/tierflow/tierflow/levels"
)

// reportVerdict finds out why ranks of the communicator stand still, once for all stalled ones, and
// tells rank 0 of the world.
func (c *Comm) reportVerdict() {
	e, w := c.e, c.e.world
	isOver := func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return c.broken != nil || e.stopped
	}
	leave := c.awaitTurn(&c.askedStall, func() bool { return isOver() || c.wasSearched() })
	defer leave()
	if isOver() || c.wasSearched() {
		return
	}
	if w.control == nil {
		w.lastSearch[c.id] = time.Now()
	}
	states := w.states(w.everyRank(), askReason{comm: c.id}, isOver)
	if isOver() {
		return
	}
	if found := verdict.Diagnose(states, verdict.Options{Least: w.config.StallAfter / 2, Nodes: w.config.Nodes}); len(found) > 0 {
		w.tellVerdict(e.rank, &found[0], states)
		if w.config.Dump != nil {
			w.config.Dump(states, &found[0])
		}
	}
}

// wasSearched reports whether another rank has looked for a deadlock a short time ago. Without other
// processes only the rank in its turn may call it.
func (c *Comm) wasSearched() bool {
	w := c.e.world
	if w.control == nil {
		return time.Since(w.lastSearch[c.id]) < w.config.StallAfter/2
	}
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	return time.Since(c.askedStall) < min(stateTime, w.config.StallAfter/2)
}

// tellVerdict lets rank 0 of the world report a finding; if rank 0 can't, this rank does. It tells it straight: in
// the control tree a stopped rank may be on the way, and what is sent there has been sent.
func (w *World) tellVerdict(me levels.Rank, f *verdict.Finding, states []flight.State) {
	if w.control == nil || me == 0 || !canReport(states) ||
		w.control.deliverDirect(directNote{0, verdictControl, note{Verdict: f}.bytes()}) != nil {
		w.reportVerdict(f)
	}
}

// canReport reports whether rank 0 has answered and hears news.
func canReport(states []flight.State) bool {
	for i := range states {
		if d := states[i].Doing; states[i].Rank == 0 {
			return d == flight.Inside || d == flight.Outside || d == flight.Computing
		}
	}
	return false
}

// reportVerdict logs a finding, unless the same was logged a short time ago: several communicators
// may stand still because of it.
func (w *World) reportVerdict(f *verdict.Finding) {
	log := w.config.Stalls
	if f == nil || log == nil {
		return
	}
	w.reporting.Lock()
	again := w.lastFinding.Same(f) && time.Since(w.lastFindingAt) < w.config.StallAfter/2
	if !again {
		w.lastFinding, w.lastFindingAt = *f, time.Now()
	}
	w.reporting.Unlock()
	if !again {
		log.Warn("stalled", "verdict", f.String())
	}
}

// noteLoss notes the control plane's loss of a rank.
func (c *control) noteLoss(rank levels.Rank, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.losses[rank] = err
}

// whyLossOf returns the control plane's reason for a rank's loss; nil: it wasn't lost.
func (c *control) whyLossOf(rank levels.Rank) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.losses[rank]
}

// noteFailed keeps the first failure of a communicator of this rank, and dumps its state.
func (c *Comm) noteFailed(by levels.Rank, err error) {
	e := c.e
	if e.failed != nil {
		return
	}
	e.failed, e.failedAt = c.failedAs(by, err), time.Now()
	if dump := e.world.config.Dump; dump != nil {
		s := flight.State{Rank: int(e.rank), Doing: flight.Outside, PID: os.Getpid(), Failed: e.failed}
		dump([]flight.State{s}, nil)
	}
}

// failedAs returns a failure's class, and the ranks to blame.
func (c *Comm) failedAs(by levels.Rank, err error) *flight.Failed {
	e := c.e
	f := &flight.Failed{Rank: int(by), Text: shortenText(c.broken.Error())}
	if m, ok := errors.AsType[*MismatchError](err); ok {
		f.Kind = verdict.Mismatch.String()
		for _, r := range m.blamed() {
			if m.Comm == c.id && int(r) < len(c.ranks) { // else the numbers are another communicator's
				f.Ranks = append(f.Ranks, int(c.ranks[r]))
			}
		}
		return f
	}
	if l, ok := errors.AsType[*LateError](err); ok {
		f.Kind = verdict.Late.String()
		late := l.Late
		if len(l.Circle) > 0 {
			f.Kind, late = verdict.Deadlock.String(), l.Circle
		}
		for _, r := range late {
			f.Ranks = append(f.Ranks, int(c.ranks[r.Rank]))
		}
		return f
	}
	var lost error
	if e.world.control != nil {
		lost = e.world.control.whyLossOf(by)
	}
	f.Kind = classOf(err, lost, by == e.rank)
	return f
}

// classOf returns the class of a failure of a rank; empty: none. lost is the control plane's reason
// for its loss, nil if it wasn't lost.
func classOf(err, lost error, own bool) string {
	for _, limit := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOSPC, syscall.ENOBUFS} {
		if errors.Is(err, limit) {
			return verdict.Resources.String()
		}
	}
	switch {
	case lost != nil && isSilence(lost):
		return verdict.Unreachable.String()
	case lost != nil, errors.Is(err, ErrUnwound):
		return verdict.Died.String()
	case own, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, ErrClosed):
		return ""
	}
	return verdict.Died.String()
}

// isSilence reports whether a rank was given up because nothing came from its host.
func isSilence(lost error) bool {
	text := lost.Error() // it may have come from another rank
	return slices.ContainsFunc([]string{"timed out", "timeout", "unreachable", "no route"}, func(word string) bool {
		return strings.Contains(text, word)
	})
}

// blamed returns the ranks of the communicator to blame for a mismatch: all known ones if none are odd.
func (e *MismatchError) blamed() []levels.Rank {
	if len(e.Odd) > 0 {
		return e.Odd
	}
	all := slices.Concat([]levels.Rank{e.Rank, e.Peer}, e.With, e.PeerWith)
	slices.Sort(all)
	return all
}

// oddOne returns the first odd rank of the world, -1 if there is none.
func (c *Comm) oddOne(m *MismatchError) levels.Rank {
	if m.Comm != c.id || len(m.Odd) == 0 || int(m.Odd[0]) >= len(c.ranks) { // another one's numbers say nothing here
		return -1
	}
	return c.ranks[m.Odd[0]]
}
