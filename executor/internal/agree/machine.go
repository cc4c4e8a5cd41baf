package agree

// Quorum reports whether these of n ranks may go on without the others: more than half; half
// of them with rank 0; or all but ranks with a proven end. Two disjoint sets of the first two
// kinds don't exist. One of the third kind has all ranks that may know of an earlier decision.
// The lost are counted among the n: without them two sides could go on.
func Quorum(n int, ranks, proven Set) bool {
	count := ranks.Count()
	return 2*count > n || 2*count == n && ranks.Has(0) || ranks.Union(proven).Count() == n
}

// Config starts a machine.
type Config struct {
	Size int    // of the broken communicator
	Rank int    // this one's
	ID   uint64 // drawn by this rank; its decisions have it
}

// Machine is one rank's part in one decision. Its methods must not be called concurrently;
// returned messages are for sending, in order. A machine may be copied.
type Machine struct {
	config Config
	began  bool
	calls  uint32 // Begin's
	ok     bool   // Begin's

	lost   Set // includes proven and left; only grows; never this rank
	proven Set
	left   Set  // left out on purpose
	out    bool // this rank was left out: it takes no part, and waits for the decision

	promised Ballot    // it accepts no lower one
	accepted Ballot    // of value
	value    *Decision // the last it has accepted; nil: none
	decided  *Decision // nil: not yet

	votedFor    int // the root with this rank's vote; itself: it has told the others; -1: none
	votedLost   Set // as told then
	votedProven Set
	missing     Set // the votes that its root awaits, by its last word; nil: it has said none

	tally     tally
	count     uint32    // ballots proposed by this rank
	proposal  *Decision // the last of them; nil: none
	proposed  Set       // the ranks lost then
	accepters Set       // of it

	msgs []Message // to be sent
}

// tally is the sum of the votes for this rank.
type tally struct {
	voters Set
	calls  [2]uint32 // fewest and most
	ok     bool      // of all
	ballot Ballot    // the highest ballot accepted by a voter, of lower roots
	value  *Decision // accepted by it; nil: nobody has accepted any
}

// New returns a machine before its first message.
func New(c Config) Machine { return Machine{config: c, votedFor: -1} }

// Begin gives this rank's vote: how many calls on the communicator have their data complete
// here, and whether this rank says yes to the question. It takes effect once.
func (m *Machine) Begin(calls uint32, ok bool) []Message {
	if !m.began {
		m.began, m.calls, m.ok = true, calls, ok
		m.settle()
	}
	return m.flush()
}

// Began reports whether this rank has voted.
func (m *Machine) Began() bool { return m.began }

// Lose takes in a lost rank; proven: its end is certain.
func (m *Machine) Lose(rank int, proven bool) []Message {
	if rank != m.config.Rank {
		m.addLost(Of(rank), proven)
		m.settle()
	}
	return m.flush()
}

// LeaveOut takes in a rank that is to be left out, though it may live. It counts as lost without a
// proof from now on, and abstains when it hears of it.
func (m *Machine) LeaveOut(rank int) []Message {
	if rank != m.config.Rank && !m.lost.Has(rank) {
		m.left = m.left.With(rank)
		m.addLost(Of(rank), false)
		m.settle()
	}
	return m.flush()
}

// Decision returns the decision; nil: none yet.
func (m *Machine) Decision() *Decision { return m.decided }

// Lost returns the ranks counted as lost here, and those of them with a certain end.
func (m *Machine) Lost() (lost, proven Set) { return m.lost, m.proven }

// Awaited returns the ranks that have yet to answer, as far as this rank knows: the root knows all, another
// rank what the root has told it, else only the root.
func (m *Machine) Awaited() Set {
	switch root := m.root(); {
	case m.decided != nil:
		return nil
	case root != m.config.Rank && m.missing.Count() > 0:
		return m.missing
	case root != m.config.Rank:
		return Of(root)
	case m.proposal == nil:
		return m.living().Without(m.supporters())
	default:
		return m.living().Without(m.accepters)
	}
}

// Owing returns the ranks that hold this one up by their own silence: the root knows all, another rank the root alone.
func (m *Machine) Owing() Set {
	if m.decided != nil || m.out {
		return nil
	}
	if root := m.root(); root != m.config.Rank {
		return Of(root)
	}
	return m.Awaited()
}

// IsHeard reports whether the root has said that it has this rank's vote.
func (m *Machine) IsHeard() bool { return m.missing.Count() > 0 && !m.missing.Has(m.config.Rank) }

// Waits returns the message to a voter for this rank that says whose votes are missing; false: this rank is not
// its root, has not voted itself, or awaits no votes.
func (m *Machine) Waits(voter int) (Message, bool) {
	if !m.began || m.decided != nil || m.root() != m.config.Rank || m.proposal != nil || !m.supporters().Has(voter) {
		return Message{}, false
	}
	return Message{Kind: Start, From: m.config.Rank, To: voter, Lost: m.lost, Proven: m.proven, Missing: m.Awaited()}, true
}

// Quorate reports whether the ranks not lost here may decide without the others. With a rank that was
// left out they may not.
func (m *Machine) Quorate() bool {
	if m.out {
		return false
	}
	return Quorum(m.config.Size, m.living(), m.proven)
}

// Hear takes a message.
func (m *Machine) Hear(msg Message) []Message {
	switch {
	case msg.Kind == Decide:
		m.hearDecision(msg)
	case m.decided != nil:
		m.answer(msg.From)
	case m.out:
	case m.lost.Has(msg.From):
		if !msg.Lost.Has(m.config.Rank) { // else two would tell each other for ever
			m.send(Message{Kind: Start, To: msg.From})
		}
	case msg.Left.Has(m.config.Rank):
		m.abstain(msg.From)
	case msg.Lost.Has(m.config.Rank):
		m.addLost(Of(msg.From), false)
		m.settle()
	default:
		m.take(msg)
		m.settle()
	}
	return m.flush()
}

// abstain ends this rank's part, because another one leaves it out. It tells the others: they need not wait for it.
func (m *Machine) abstain(by int) {
	m.out = true
	for _, r := range All(m.config.Size).Without(m.proven).Without(Of(m.config.Rank, by)).Ranks() {
		m.msgs = append(m.msgs, Message{Kind: Start, From: m.config.Rank, To: r, Lost: Of(r)})
	}
}

// take takes a message from a living rank.
func (m *Machine) take(msg Message) {
	news := m.lost.Without(msg.Lost)
	m.addLost(msg.Lost, false)
	m.addLost(msg.Proven, true)
	m.left = m.left.Union(msg.Left)
	switch msg.Kind {
	case Start:
		if msg.Missing != nil && msg.From == m.votedFor {
			m.missing = msg.Missing
		}
	case Vote:
		m.tally.add(msg, m.config)
	case Propose:
		switch d := msg.Value; {
		case msg.Ballot.less(m.promised):
		case d.Members.Without(news).Count() < d.Members.Count():
			m.votedFor = -1 // the root will propose again: it doesn't know all lost ranks yet
		default:
			m.promised, m.accepted, m.value = msg.Ballot, msg.Ballot, msg.Value
			m.send(Message{Kind: Accepted, To: msg.From, Ballot: msg.Ballot})
		}
	case Accepted:
		if m.proposal != nil && msg.Ballot == m.ballot() {
			m.accepters = m.accepters.With(msg.From)
		}
	}
}

// add counts a vote for rank c.Rank.
func (t *tally) add(msg Message, c Config) {
	if t.voters == nil {
		t.calls, t.ok = [2]uint32{msg.Calls, msg.Calls}, true
	}
	t.voters = t.voters.With(msg.From)
	if int32(msg.Calls-t.calls[0]) < 0 { // numbers of calls begin anew after 1 << 32
		t.calls[0] = msg.Calls
	}
	if int32(msg.Calls-t.calls[1]) > 0 {
		t.calls[1] = msg.Calls
	}
	t.ok = t.ok && msg.OK
	// A ballot of its own was not decided if this rank doesn't know it.
	if msg.Value != nil && int(msg.Ballot.Root) < c.Rank && (t.value == nil || t.ballot.less(msg.Ballot)) {
		t.ballot, t.value = msg.Ballot, msg.Value
	}
}

// hearDecision takes a decision, once.
func (m *Machine) hearDecision(msg Message) {
	switch d := msg.Value; {
	case m.decided != nil:
	case m.proven.Includes(d.Members):
		// Nobody is left to go on with it. A living rank with this decision is no member, and waits for nothing.
		if !d.Members.Has(msg.From) {
			m.addLost(Of(msg.From), true)
			m.settle()
		}
	default:
		m.decided = d
		m.passOn(msg.From)
	}
}

// passOn tells the root a decision from another rank, or as the root tells all: the sender may have
// died before it told them.
func (m *Machine) passOn(from int) {
	root := m.root()
	m.votedFor = root
	switch root {
	case m.config.Rank:
		m.tellDecision(from)
	case from:
	default:
		m.answer(root)
	}
}

// tellDecision tells all but one.
func (m *Machine) tellDecision(but int) {
	for _, r := range All(m.config.Size).Without(m.proven).Ranks() {
		if r != but && r != m.config.Rank {
			m.answer(r)
		}
	}
}

// answer tells a rank the decision.
func (m *Machine) answer(to int) {
	m.send(Message{Kind: Decide, To: to, Value: m.decided})
}

// settle acts on the knowledge of this rank.
func (m *Machine) settle() {
	root := m.root()
	switch {
	case m.decided != nil:
		if root != m.votedFor {
			m.passOn(-1)
		}
	case !m.began || m.out:
	case root != m.config.Rank:
		if root != m.votedFor || !m.lost.Equal(m.votedLost) || !m.proven.Equal(m.votedProven) {
			m.vote(root)
		}
	default:
		m.lead()
		m.propose()
	}
}

// vote votes for a root, and promises to accept nothing from a lower one.
func (m *Machine) vote(root int) {
	m.votedFor, m.votedLost, m.votedProven, m.missing = root, m.lost, m.proven, nil
	if b := (Ballot{Root: int32(root)}); m.promised.less(b) {
		m.promised = b
	}
	m.send(m.ownVote(root))
}

// ownVote returns this rank's vote for a root.
func (m *Machine) ownVote(root int) Message {
	return Message{Kind: Vote, To: root, Calls: m.calls, OK: m.ok, Ballot: m.accepted, Value: m.value}
}

// lead tells the others of this rank as the root, and the lost ranks of their loss.
func (m *Machine) lead() {
	me := m.config.Rank
	told := m.lost.Without(m.votedLost)
	if m.votedFor != me {
		m.votedFor = me
		told = All(m.config.Size)
		own := m.ownVote(me)
		own.From = me
		m.tally.add(own, m.config)
	}
	m.votedLost = m.lost
	for _, r := range told.Without(m.proven).Without(m.supporters()).Ranks() {
		if r != me {
			m.send(Message{Kind: Start, To: r})
		}
	}
}

// supporters returns the living ranks with a vote for this rank.
func (m *Machine) supporters() Set { return m.tally.voters.Without(m.lost) }

// propose proposes a decision by the votes, once all have come, and decides once all have
// accepted it.
func (m *Machine) propose() {
	living, me := m.living(), m.config.Rank
	if !m.tally.voters.Includes(living) || !m.Quorate() {
		return
	}
	if m.proposal == nil || !m.proposed.Equal(m.lost) {
		d := m.tally.value
		if d == nil {
			d = &Decision{ID: m.config.ID, Members: living, Lost: m.lost, Proven: m.proven, Calls: m.tally.calls, OK: m.tally.ok}
		}
		m.count++
		m.accepters = nil
		m.proposal, m.proposed, m.accepters = d, m.lost, m.accepters.With(me)
		m.promised, m.accepted, m.value = m.ballot(), m.ballot(), d
		for _, r := range living.Ranks() {
			if r != me {
				m.send(Message{Kind: Propose, To: r, Ballot: m.ballot(), Value: d})
			}
		}
	}
	if m.accepters.Includes(living) {
		m.decided = m.proposal
		m.tellDecision(me)
	}
}

// ballot is that of the last proposal.
func (m *Machine) ballot() Ballot { return Ballot{int32(m.config.Rank), m.count} }

// living returns all ranks but the lost ones.
func (m *Machine) living() Set { return All(m.config.Size).Without(m.lost) }

// root returns the lowest living rank.
func (m *Machine) root() int {
	r := 0
	for m.lost.Has(r) {
		r++
	}
	return r
}

// addLost counts ranks as lost; this one never.
func (m *Machine) addLost(ranks Set, proven bool) {
	ranks = ranks.Without(Of(m.config.Rank))
	m.lost = m.lost.Union(ranks)
	if proven {
		m.proven = m.proven.Union(ranks)
	}
}

// send queues a message with the losses known to this rank.
func (m *Machine) send(msg Message) {
	msg.From, msg.Lost, msg.Proven, msg.Left = m.config.Rank, m.lost, m.proven, m.left
	m.msgs = append(m.msgs, msg)
}

// flush returns the queued messages.
func (m *Machine) flush() []Message {
	out := m.msgs
	m.msgs = nil
	return out
}
