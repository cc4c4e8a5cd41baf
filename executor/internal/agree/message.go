package agree

// Ballot numbers a proposal. A higher root comes after all ballots of a lower one.
type Ballot struct {
	Root  int32 // the proposer
	Count uint32
}

// less reports whether b comes before o.
func (b Ballot) less(o Ballot) bool {
	return b.Root < o.Root || b.Root == o.Root && b.Count < o.Count
}

// Decision is the outcome. It is never changed. Ranks are those of the broken
// communicator.
type Decision struct {
	ID      uint64 // drawn by the proposer for the next communicator
	Members Set
	Lost    Set       // of the others, as the proposer knew them
	Proven  Set       // of Lost: their end is certain
	Calls   [2]uint32 // fewest and most of the votes, see [Machine.Begin]
	OK      bool      // no voter said otherwise
}

// Kind is the purpose of a message.
type Kind uint8

// The kinds of messages.
const (
	Start    Kind = 1 + iota // a decision is needed; or: the receiver is counted as lost
	Vote                     // for the receiver as the proposer
	Propose                  // a value
	Accepted                 // the ballot
	Decide                   // the decision
)

// Message goes from one rank to another one.
type Message struct {
	Kind     Kind
	From, To int
	Lost     Set       // as the sender knows them
	Proven   Set       // of Lost
	Left     Set       // of Lost: left out on purpose
	Ballot   Ballot    // of Propose and Accepted; of a Vote with a Value: the ballot of its acceptance
	Value    *Decision // of Propose and Decide; of a Vote: the value accepted by the sender, or nil
	Missing  Set       // of a Start: the ranks whose votes the sender still awaits; nil: not said
	Calls    uint32    // of a Vote: [Machine.Begin]'s
	OK       bool      // of a Vote: [Machine.Begin]'s
}
