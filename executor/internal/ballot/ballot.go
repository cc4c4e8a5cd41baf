// Package ballot takes one rank's part in agreements, see package agree. It keeps them, repeats
// messages until they are answered, and looks for proofs if suspicion alone lets nobody go on. A rank
// whose library gives no sign of life for about ten seconds counts as lost. The
// owner of a [Voter] carries its messages and knows the lost ranks.
package ballot

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tierflow/tierflow/executor/internal/agree"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// Topic is the question of an agreement.
type Topic struct {
	Comm  wire.CommID
	Round uint32 // 0: who goes on; from 1 on: a question to its members
}

// Port is how a voter reaches the rest of its rank. Its functions are called without a lock
// of this package, by any goroutine.
type Port struct {
	// Send sends a message to another rank of the world. It may be lost. straight: it must not be passed on by a third
	// rank, which may be stopped.
	Send func(to levels.Rank, t Topic, b []byte, straight bool)
	// Lost returns the ranks of the world that count as lost for a topic, the ranks with a certain
	// end, and those left out on purpose.
	Lost func(t Topic) (lost, ended, left []levels.Rank)
	// Gone finds out whether the end of a rank is certain. nil: it never is.
	Gone func(ctx context.Context, r levels.Rank) bool
	// Silent returns those of some ranks whose libraries don't answer. It takes some seconds at most, less
	// once isOver reports true. nil: all answer.
	Silent func(ranks []levels.Rank, isOver func() bool) []levels.Rank
	// Muted is called for a rank that counts as lost because it was silent.
	Muted func(r levels.Rank)
	// Draw returns a number for a communicator.
	Draw func() uint64
	// Decided is called once for each decision, before the callers that wait for it go on.
	Decided func(m *Agreement)
}

const (
	lookTime  = 10 * time.Millisecond  // between two looks for lost ranks
	againTime = 20 * time.Millisecond  // after which everything is said again: a round takes some ms,
	againRank = 100 * time.Microsecond // or after this for each rank, if that is more
	oftenTime = time.Second            // for so long; then the pause is doubled each time. Ways around the lost ranks are found by then
	mostAgain = 2 * time.Second        // its limit
	proofTime = time.Second            // for one proof
	quietTime = 200 * time.Millisecond // until silent ranks are asked for a sign of life, straight; then the pause is doubled each time
	quietRank = time.Millisecond       // or after this for each rank, if that is more: all may ask one
	mostQuiet = 10                     // times the first, its limit

	askAfter       = 3 * time.Second // without a word of a rank, until it is asked whether it is there
	askTime        = 2 * time.Second // between two questions; one takes as long
	mostUnanswered = 4               // questions, then it counts as lost
	mostAsked      = 32              // ranks at a time
)

// Agreement is one agreement.
type Agreement struct {
	voter   *Voter
	Topic   Topic
	Members []levels.Rank // of the world, by rank of the communicator

	known chan struct{} // closed when Decision is set and has had its effect
	nudge chan struct{} // has one to look for lost ranks, now

	// Guarded by voter.mu.
	machine   agree.Machine
	decision  *agree.Decision
	decidedAt time.Time               // of the decision
	repeats   map[int][]agree.Message // the last of each kind, by receiver
	patient   agree.Set               // voters for this rank that have asked again
	withdrawn bool                    // this rank takes no part any more
	taken     bool                    // the program knows the decision
	minority  time.Time               // since then the living may not decide; zero: they may
	straight  bool                    // messages go past all other ranks
	direct    agree.Set               // ranks whose messages have come past all others: so go those to them

	opened     time.Time
	heard      map[int]time.Time // the last word of a rank, or its answer
	unanswered map[int]int       // questions to a rank since then
	asking     bool              // ranks are being asked
	asked      time.Time         // when they were asked last
	turn       int               // the first of those to be asked next, if they are too many
}

// mayBeAsked reports whether a rank that lives, perhaps, is no member of the decision.
func (m *Agreement) mayBeAsked() bool {
	for r := range m.Members {
		if !m.decision.Members.Has(r) && !m.decision.Proven.Has(r) {
			return true
		}
	}
	return false
}

// rank is this rank's number in the communicator.
func (m *Agreement) rank() int { return slices.Index(m.Members, m.voter.me) }

// isOpen reports whether it is undecided and this rank takes part. The lock is held.
func (m *Agreement) isOpen() bool { return m.decision == nil && !m.withdrawn }

// Begin gives this rank's vote, once: how many calls have their data complete here, and yes or no.
func (m *Agreement) Begin(calls uint32, ok bool) {
	m.update() // a vote should have all knowledge of this rank
	m.do(func(a *agree.Machine) []agree.Message { return a.Begin(calls, ok) })
}

// Hear takes a message; straight: it has come past all other ranks. A message without sense is an error.
func (m *Agreement) Hear(from levels.Rank, b []byte, straight bool) error {
	msg, err := agree.Parse(b, len(m.Members))
	if err == nil && (m.Members[msg.From] != from || msg.To != m.rank()) {
		err = fmt.Errorf("rank %d of the world speaks as rank %d to rank %d, this is rank %d", from, msg.From, msg.To, m.rank())
	}
	if err != nil {
		return err
	}
	again := false
	m.do(func(a *agree.Machine) []agree.Message {
		m.heard[msg.From], m.unanswered[msg.From] = time.Now(), 0
		if straight {
			m.direct = m.direct.With(msg.From)
		}
		_, again = a.Waits(msg.From)
		return a.Hear(msg)
	})
	if msg.Kind == agree.Vote {
		m.tellMissing(msg.From, again)
	}
	return nil
}

// mostMissing bounds the missing votes at which all that wait hear of each one that comes.
const mostMissing = 8

// tellMissing tells a voter for this rank who votes again whose votes are missing, and later, when another one has
// voted, who is still missing.
func (m *Agreement) tellMissing(voter int, again bool) {
	v := m.voter
	v.mu.Lock()
	told := m.patient
	if again {
		m.patient = m.patient.With(voter)
		told = agree.Of(voter)
	}
	var out []agree.Message
	for _, r := range told.Ranks() {
		if msg, waits := m.machine.Waits(r); waits && m.isOpen() && (again || msg.Missing.Count() <= mostMissing) {
			out = append(out, msg)
		}
	}
	v.mu.Unlock()
	m.send(out, nil)
}

// do lets the machine do something, sends its messages, and takes the decision if there is one now.
func (m *Agreement) do(what func(a *agree.Machine) []agree.Message) {
	v := m.voter
	v.mu.Lock()
	if m.withdrawn {
		v.mu.Unlock()
		return
	}
	out := what(&m.machine)
	decided := m.decision == nil && m.machine.Decision() != nil
	if m.decision == nil {
		m.keep(out)
	}
	if decided {
		m.decision, m.repeats, m.decidedAt = m.machine.Decision(), nil, time.Now()
	}
	straight := m.straightTo(time.Now())
	v.mu.Unlock()
	m.send(out, straight)
	if decided {
		v.port.Decided(m)
		close(m.known)
	}
}

// mostStraight bounds the members that one rank reaches past all others at once: each takes a connection.
const mostStraight = 64

// GoStraight lets messages go past all other ranks from now on, as one that would pass them on may be stopped, unless the
// members are too many. Else they do to ranks that may not hear this one, after a while, and to those that have come so.
func (m *Agreement) GoStraight() {
	m.voter.mu.Lock()
	defer m.voter.mu.Unlock()
	m.straight = len(m.Members) <= mostStraight
}

// straightTo returns the ranks to which messages go past all others. The lock is held.
func (m *Agreement) straightTo(now time.Time) agree.Set {
	switch n := len(m.Members); {
	case m.straight:
		return agree.All(n)
	case now.Sub(m.opened) < quietAfter(n) || m.machine.IsHeard():
		return m.direct
	}
	return m.direct.Union(m.machine.Owing())
}

// quietAfter is after how long ranks that say nothing, of so many, are asked for a sign of life.
func quietAfter(ranks int) time.Duration { return max(quietTime, time.Duration(ranks)*quietRank) }

// superseded is, by kind of message, the kind before it. The earlier one need not be repeated after
// the later one.
var superseded = map[agree.Kind]agree.Kind{agree.Propose: agree.Start, agree.Accepted: agree.Vote}

// keep keeps messages for repetition. The lock is held.
func (m *Agreement) keep(out []agree.Message) {
	for _, msg := range out {
		m.repeats[msg.To] = append(slices.DeleteFunc(m.repeats[msg.To], func(old agree.Message) bool {
			return old.Kind == msg.Kind || old.Kind == superseded[msg.Kind]
		}), msg)
	}
}

// send sends messages; straight: those to these ranks past all others.
func (m *Agreement) send(out []agree.Message, straight agree.Set) {
	for _, msg := range out {
		m.voter.port.Send(m.Members[msg.To], m.Topic, msg.Append(nil, len(m.Members)), straight.Has(msg.To))
	}
}

// tend looks after an agreement until it is decided. It takes in losses, says things again, and
// proves ends.
func (m *Agreement) tend() {
	v := m.voter
	look := time.NewTicker(lookTime)
	defer look.Stop()
	ranks := time.Duration(len(m.Members))
	often, quiet := max(againTime, ranks*againRank), quietAfter(len(m.Members))
	begun := time.Now()
	again, proof := newSchedule(begun, often, mostAgain), newSchedule(begun, quiet, mostQuiet*quiet)
	for {
		select {
		case <-v.life.Done():
			return
		case <-m.known:
			return
		case <-m.nudge:
			begun = time.Now()
			again, proof = newSchedule(begun, often, mostAgain), newSchedule(begun, quiet, mostQuiet*quiet)
			again.due = begun // messages on their way through the lost rank are lost too
		case <-look.C:
		}
		m.update()
		silent := proof.isDue(time.Now())
		m.prove(silent)
		if silent {
			proof.next(time.Now(), true)
		}
		m.doubt(time.Now())
		v.mu.Lock()
		open := m.isOpen()
		var out []agree.Message
		var straight agree.Set
		if now := time.Now(); open && again.isDue(now) {
			again.next(now, now.Sub(begun) > oftenTime)
			_, proven := m.machine.Lost()
			for to, list := range m.repeats {
				if !proven.Has(to) {
					out = append(out, list...)
				}
			}
			straight = m.straightTo(now)
		}
		v.mu.Unlock()
		m.send(out, straight)
		if !open {
			return
		}
	}
}

// update takes in the ranks lost by now.
func (m *Agreement) update() {
	lost, ended, left := m.voter.port.Lost(m.Topic)
	m.do(func(a *agree.Machine) (out []agree.Message) {
		known, proven := a.Lost()
		take := func(ranks []levels.Rank, known agree.Set, tell func(n int) []agree.Message) {
			for _, r := range ranks {
				if n := slices.Index(m.Members, r); n >= 0 && r != m.voter.me && !known.Has(n) {
					out = append(out, tell(n)...)
				}
			}
		}
		take(ended, proven, func(n int) []agree.Message { return a.Lose(n, true) })
		take(lost, known, func(n int) []agree.Message { return a.Lose(n, false) })
		take(left, known, a.LeaveOut)
		switch {
		case a.Quorate():
			m.minority = time.Time{}
		case m.minority.IsZero():
			m.minority = time.Now()
		}
		return out
	})
}

// prove looks for proofs that lost ranks have ended, if the others can't go on without. silent: it looks for
// the ends of silent ranks, too. They may have ended unheard: the rank that should have passed on
// their goodbye died.
func (m *Agreement) prove(silent bool) {
	v := m.voter
	v.mu.Lock()
	lost, proven := m.machine.Lost()
	var asked agree.Set
	if !m.machine.Quorate() {
		asked = lost
	}
	if silent {
		asked = asked.Union(m.machine.Awaited())
	}
	open := m.isOpen()
	v.mu.Unlock()
	asked = asked.Without(proven).Without(agree.Of(m.rank()))
	if !open || asked.Count() == 0 || v.port.Gone == nil {
		return
	}
	ctx, cancel := context.WithTimeout(v.life, proofTime)
	defer cancel()
	var sure sync.Map
	var all sync.WaitGroup
	for _, n := range asked.Ranks() {
		all.Go(func() {
			if v.port.Gone(ctx, m.Members[n]) {
				sure.Store(n, true)
			}
		})
	}
	all.Wait()
	m.do(func(a *agree.Machine) (out []agree.Message) {
		for n := range sure.Range {
			out = append(out, a.Lose(n.(int), true)...)
		}
		return out
	})
}

// doubt asks ranks that hold this one up whether they are there. The ones that don't answer a few times in a row count as
// lost: a stopped process keeps its connections.
func (m *Agreement) doubt(now time.Time) {
	v := m.voter
	v.mu.Lock()
	defer v.mu.Unlock()
	if m.Topic.Round != 0 || v.port.Silent == nil || !m.isOpen() || m.asking || now.Sub(m.asked) < askTime {
		return
	}
	var quiet []int
	for _, n := range m.machine.Owing().Ranks() {
		last, ever := m.heard[n]
		if !ever {
			last = m.opened
		}
		if m.unanswered[n] > 0 || now.Sub(last) >= askAfter {
			quiet = append(quiet, n)
		}
	}
	if n := len(quiet); n > mostAsked {
		quiet = slices.Concat(quiet, quiet)[m.turn%n:][:mostAsked]
		m.turn += mostAsked
	}
	if len(quiet) > 0 {
		m.asking, m.asked = true, now
		v.running.Go(func() { m.ask(quiet) })
	}
}

// ask asks ranks whether they are there.
func (m *Agreement) ask(quiet []int) {
	v := m.voter
	silent := v.port.Silent(m.worldRanks(agree.Of(quiet...)), func() bool {
		select {
		case <-m.known:
			return true
		default:
			return v.life.Err() != nil
		}
	})
	v.mu.Lock()
	m.asking = false
	var mute []int
	for _, n := range quiet {
		if !slices.Contains(silent, m.Members[n]) {
			m.heard[n], m.unanswered[n] = time.Now(), 0
		} else if m.unanswered[n]++; m.unanswered[n] == mostUnanswered && m.isOpen() {
			mute = append(mute, n)
		}
	}
	v.mu.Unlock()
	for _, n := range mute {
		v.port.Muted(m.Members[n])
		m.do(func(a *agree.Machine) []agree.Message { return a.Lose(n, false) })
	}
}

// Known is closed when the decision is known here.
func (m *Agreement) Known() <-chan struct{} { return m.known }

// Decision returns the decision; nil: none yet.
func (m *Agreement) Decision() *agree.Decision {
	m.voter.mu.Lock()
	defer m.voter.mu.Unlock()
	return m.decision
}

// Heard returns when this rank has heard the decision; zero: not yet.
func (m *Agreement) Heard() time.Time {
	m.voter.mu.Lock()
	defer m.voter.mu.Unlock()
	return m.decidedAt
}

// Take is Decision for the program.
func (m *Agreement) Take() *agree.Decision {
	m.voter.mu.Lock()
	defer m.voter.mu.Unlock()
	m.taken = m.decision != nil
	return m.decision
}

// State says why an agreement takes long: since when the living may not decide, zero if they may,
// and the ranks counted as lost.
func (m *Agreement) State() (minority time.Time, lost []levels.Rank) {
	m.voter.mu.Lock()
	defer m.voter.mu.Unlock()
	all, _ := m.machine.Lost()
	return m.minority, m.worldRanks(all)
}

// Awaited returns the ranks of the world that have yet to answer, as far as this rank knows.
func (m *Agreement) Awaited() []levels.Rank {
	m.voter.mu.Lock()
	defer m.voter.mu.Unlock()
	return m.worldRanks(m.machine.Awaited())
}

// Next returns the number and the ranks of the next communicator, by the decision.
func (m *Agreement) Next() (id wire.CommID, ranks []levels.Rank) {
	d := m.Decision()
	return wire.CommID(d.ID), m.worldRanks(d.Members)
}

// worldRanks returns ranks of the communicator as those of the world.
func (m *Agreement) worldRanks(some agree.Set) (ranks []levels.Rank) {
	for _, n := range some.Ranks() {
		ranks = append(ranks, m.Members[n])
	}
	return ranks
}
