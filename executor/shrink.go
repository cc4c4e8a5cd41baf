package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/internal/agree"
	"github.com/tierflow/tierflow/executor/internal/ballot"
	"github.com/tierflow/tierflow/levels"
)

// Shrunk is the outcome of [Comm.Shrink].
type Shrunk struct {
	Comm *Comm         // of the ranks that go on, in the old order
	Old  []levels.Rank // by rank of Comm: its rank in the old communicator
	Lost []Loss        // ascending by rank
	// Decided is when this rank heard the decision.
	Decided time.Time
}

// Loss is a rank left out of the new communicator.
type Loss struct {
	Rank   levels.Rank // of the old communicator
	Err    error       // as far as this rank knows; it wraps [ErrClosed] if the rank has left
	Proven bool        // its end is certain; else it was only suspected, and may hear that it is excluded
	MayRun bool        // this rank has left it out, or has found it silent
}

// forsakenTime is how long an agreement goes on after the others have given up its communicator.
const forsakenTime = 2 * time.Second

// Shrink makes a communicator of the living members. All of them agree on these, and none has to
// call anything: their libraries vote. c is broken afterwards on all ranks, if it wasn't before.
// Called again it returns the same. After an error of ctx it may be called again too.
//
// More than half of c's members may go on, or half with its rank 0, or all members without a
// certain end. Others get [ErrMinority]. A member counted as lost gets [ErrExcluded] if it hears of
// the decision.
//
// The members without, other ones than this rank, are left out, though they may live: to the others they are lost from now on,
// without a certain end. It has no effect if the members are agreed on already. If the others
// may not go on by themselves, the error is ErrMinority, at once, and nothing has happened.
func (c *Comm) Shrink(ctx context.Context, without ...levels.Rank) (*Shrunk, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	if err := c.leaveOut(without); err != nil {
		return nil, err
	}
	if err := c.giveUp(); err != nil {
		return nil, err
	}
	m, err := c.decide(ctx, 0)
	if err != nil {
		return nil, err
	}
	return c.succeed(m)
}

// MayLeaveOut is an error, one that wraps [ErrMinority], unless the members other than these may go on,
// as far as this rank knows who is lost.
func (c *Comm) MayLeaveOut(without []levels.Rank) error {
	if len(without) == 0 {
		return nil
	}
	lost, ended, _ := c.e.whoIsLost(ballot.Topic{Comm: c.id})
	proven := c.setOf(ended)
	rest := agree.All(c.Size()).Without(proven).Without(c.setOf(lost))
	for _, n := range without {
		rest = rest.Without(agree.Of(int(n)))
	}
	if !agree.Quorum(c.Size(), rest, proven) {
		return fmt.Errorf("without ranks %v %d of %d would be left: %w", without, rest.Count(), c.Size(), ErrMinority)
	}
	return nil
}

// setOf returns the members among ranks of the world, as a set of members.
func (m *membership) setOf(ranks []levels.Rank) (set agree.Set) {
	for _, n := range m.numbersOf(ranks) {
		if n >= 0 {
			set = set.With(int(n))
		}
	}
	return set
}

// leaveOut counts members as lost in the agreement on those that go on.
func (c *Comm) leaveOut(without []levels.Rank) error {
	if err := c.MayLeaveOut(without); err != nil {
		return err
	}
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	for _, n := range without {
		if r := c.ranks[n]; !slices.Contains(c.leftOut, r) {
			c.leftOut = append(c.leftOut, r)
		}
	}
	return nil
}

// giveUp breaks the communicator if it is whole, for the program: because of a rank that has left before a call, if there is
// one. It returns an error if this rank has left it.
func (c *Comm) giveUp() error {
	c.e.mu.Lock()
	left, whole, quit := c.isClosed(c.e.stopped), c.broken == nil, c.quitCause
	by, why := c.e.rank, ErrRevoked
	if c.limit != nil {
		by, why = c.ranks[c.limit.err.Rank], c.limit.err.Err
	}
	c.heard = true
	c.e.mu.Unlock()
	switch {
	case quit != nil:
		return quit
	case left:
		return ErrClosed
	case whole:
		c.e.world.failComm(c, by, why)
	}
	return nil
}

// lastChance is how long a rank that a deadline has found late has to notice, in Agree and again in [Comm.Unheard]: both, and
// what it takes the others to go on, are within a second. No more than half of [Config.CallTimeout]: who waits must not
// be late itself.
const lastChance = 300 * time.Millisecond

// lastChance returns lastChance with this configuration.
func (c *Config) lastChance() time.Duration {
	if c.CallTimeout > 0 {
		return min(lastChance, c.CallTimeout/2)
	}
	return lastChance
}

// Unheard breaks the communicator, if it is whole, and returns those of some members whose programs have not noticed after
// a while, 0.3 s, or half of [Config.CallTimeout] if that is less: they hang, are stopped or out of reach. It returns at
// once if all have, and returns none if the ranks have agreed who goes on.
func (c *Comm) Unheard(ctx context.Context, members []levels.Rank) ([]levels.Rank, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	if err := c.giveUp(); err != nil {
		return nil, err
	}
	end := time.Now().Add(c.e.world.config.lastChance())
	defer c.e.beginVote("the question who hangs")()
	agreed := func() bool { m := c.e.voter.Find(ballot.Topic{Comm: c.id}); return m != nil && m.Decision() != nil }
	isOver := func() bool { return ctx.Err() != nil || !time.Now().Before(end) || agreed() }
	var left []levels.Rank // of the world
	for _, m := range members {
		left = append(left, c.ranks[m])
	}
	for pause := 5 * time.Millisecond; ; pause *= 2 {
		states := c.e.world.states(left, askReason{comm: c.id}, isOver)
		left = nil
		for _, s := range states {
			if !s.HasHeard(uint64(c.id)) && s.Votes == "" && s.Doing != flight.Left {
				left = append(left, levels.Rank(s.Rank))
			}
		}
		rest := time.Until(end)
		switch {
		case agreed():
			return nil, nil
		case len(left) == 0 || rest <= 0:
			return c.numbersOf(left), nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(min(pause, rest)):
		}
	}
}

// makeNext makes this rank's end of the new communicator, unless it has left the old one. Who leaves
// after the decision leaves the new one too.
func (e *Endpoint) makeNext(m *ballot.Agreement) {
	id, ranks := m.Next()
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.comms[m.Topic.Comm]; c == nil || c.hasLeft {
		return
	}
	if next := e.ensureComm(id); next.local == nil {
		next.defineMembers(ranks)
	}
}

// succeed gives the program this rank's end of the new communicator.
func (c *Comm) succeed(m *ballot.Agreement) (*Shrunk, error) {
	e, d := c.e, m.Take()
	if !d.Members.Has(int(c.me)) {
		return nil, c.excluded(d)
	}
	id, _ := m.Next()
	e.mu.Lock()
	next := e.comms[id]
	if next == nil || next.local == nil { // c was closed before the decision
		e.mu.Unlock()
		return nil, ErrClosed
	}
	if !c.succeeded {
		c.succeeded, c.successor = true, next
		c.waitedFor = nil // nobody calls anything here any more
		for _, d := range c.departures {
			next.blameStranded(d)
		}
	}
	e.release()
	c.refuseWords()
	s := &Shrunk{Comm: next, Decided: m.Heard()}
	for r := range levels.Rank(c.Size()) {
		if d.Members.Has(int(r)) {
			s.Old = append(s.Old, r)
		} else {
			s.Lost = append(s.Lost, Loss{r, c.whyGone(c.ranks[r]), d.Proven.Has(int(r)), c.mayRun(c.ranks[r])})
		}
	}
	return s, nil
}

// excluded is the error of this rank if it is no member of a decision. It says why the communicator
// broke: mostly because this rank was late.
func (c *Comm) excluded(d *agree.Decision) error {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	if c.cause.err == nil {
		return fmt.Errorf("%d of %d ranks: %w", d.Members.Count(), c.Size(), ErrExcluded)
	}
	return fmt.Errorf("%d of %d ranks: %w, after: %v", d.Members.Count(), c.Size(), ErrExcluded, c.broken)
}

// mayRun reports whether this rank knows no more of a lost rank of the world than that it hangs or is silent.
func (c *Comm) mayRun(rank levels.Rank) bool {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	return slices.Contains(c.leftOut, rank) || slices.Contains(c.e.muted, rank)
}

// errUnseen is the error of a lost rank unless this one has seen its end.
var errUnseen = errors.New("others count it as lost")

// errMuted is that of a rank whose library was silent for too long.
var errMuted = errors.New("its library has not answered for about ten seconds, though its connections stand: it may be stopped")

// errLeftOut is that of a rank left out by this one.
var errLeftOut = errors.New("it was left out, though it may live")

// whyGone returns the reason why a rank of the world doesn't go on.
func (c *Comm) whyGone(rank levels.Rank) error {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	for _, f := range c.e.lost {
		if f.peer == rank {
			return f.err
		}
	}
	if slices.Contains(c.outsiders(), rank) {
		return fmt.Errorf("left: %w", ErrClosed)
	}
	return errUnseen
}

// Agree returns whether all living members say ok, the same on all of them. It waits until each of
// them has called it as often, died, or closed the communicator, which may be broken; a member gone
// on with another communicator says no. Losses are no error as long as the living may go on, see
// [Comm.Shrink]. When ctx ends, or [Config.CallTimeout] has passed, the rank's word stands all the
// same.
func (c *Comm) Agree(ctx context.Context, ok bool) (all bool, err error) {
	if ctx == nil {
		return false, errNoContext
	}
	e := c.e
	e.mu.Lock()
	if c.isClosed(e.stopped) {
		e.mu.Unlock()
		return false, ErrClosed
	}
	c.agreements++
	c.heard = c.broken != nil
	round := c.agreements
	m := c.openAgreement(round)
	e.mu.Unlock()
	if m == nil {
		return false, ErrClosed
	}
	if round > 2 {
		e.voter.Forget(ballot.Topic{Comm: c.id, Round: round - 2}) // ranks in this round have the result of the one before
	}
	m.Begin(0, ok)
	if err := c.awaitWords(ctx, m); err != nil {
		return false, err
	}
	d := m.Take()
	if !d.Members.Has(int(c.me)) {
		return false, c.excluded(d)
	}
	return d.OK, nil
}

// awaitWords waits for the words of all members. It reports a stall as a call does, and has a
// call's time.
func (c *Comm) awaitWords(ctx context.Context, m *ballot.Agreement) error {
	e, config := c.e, &c.e.world.config
	if config.CallTimeout > 0 {
		limited, cancel := e.world.limitCall(ctx)
		defer cancel()
		ctx = limited
	}
	var forsaken time.Time // the others count as having given up from then on; zero: they have not
	var lastWord time.Time // who says nothing until then is late; zero: no deadline has broken the communicator
	began, report := time.Now(), config.StallAfter
	err := e.await(ctx, m, func(now time.Time) error {
		if long := now.Sub(began); report > 0 && long >= report {
			report *= 2
			e.mu.Lock()
			e.noteStall(c, "agree", "words", long, fmt.Sprint(c.numbersOf(m.Awaited())))
			e.mu.Unlock()
		}
		e.mu.Lock()
		brokenBy, isLate := errors.AsType[*LateError](c.broken)
		e.mu.Unlock()
		if isLate && lastWord.IsZero() {
			lastWord = now.Add(config.lastChance())
		} else if isLate && now.After(lastWord) {
			return c.lateWords(m, now.Sub(began), brokenBy.Err)
		}
		switch given := e.voter.Find(ballot.Topic{Comm: c.id}); {
		case given == nil || given.Decision() == nil:
		case forsaken.IsZero():
			forsaken = now.Add(forsakenTime)
		case now.After(forsaken):
			return ErrRevoked
		}
		return nil
	})
	switch {
	case err == nil || err != context.Cause(ctx):
		return err
	case ctx.Err() == context.DeadlineExceeded:
		return c.lateWords(m, time.Since(began), err)
	}
	return fmt.Errorf("ranks %v have said nothing: %w", c.numbersOf(m.Awaited()), err)
}

// lateWords is the error of an agreement whose deadline has passed.
func (c *Comm) lateWords(m *ballot.Agreement, after time.Duration, cause error) error {
	late, over := &LateError{Request: "agree", For: after, Err: cause}, func() bool { return m.Decision() != nil }
	for _, s := range c.e.world.states(m.Awaited(), askReason{comm: c.id, forLate: true}, over) {
		if s.Votes == "" { // else it waits itself, and its word has not come past the late ones
			late.Late = append(late.Late, LateRank{c.numberOf(levels.Rank(s.Rank)), s})
		}
	}
	if len(late.Late) == 0 {
		return late
	}
	return c.failure(levels.Rank(late.Late[0].State.Rank), late)
}

// numbersOf returns the numbers of ranks of the world in the communicator.
func (m *membership) numbersOf(ranks []levels.Rank) (numbers []levels.Rank) {
	for _, r := range ranks {
		numbers = append(numbers, m.numberOf(r))
	}
	return numbers
}
