package tasks

// Row is all that tells one collective from the others. The questions about a request
// ([Request.Receives], [Request.Promised], …) are answered from it: a new collective begins as a
// row.
type Row struct {
	Name   string // in lower case
	Suffix string // in a task's name: the b of ib; empty: it is never a task
	Doc    string // what it does, in one line

	Input     Side      // the ranks with an input, and their input
	Output    Side      // the ranks with a result, and their result
	From      Source    // whose input a result is made of
	Placement Placement // where a rank that works in place has its input
	Counts    bool      // blocks may differ, see [Counts]
	Matrix    bool      // blocks may differ for each pair of ranks, see [Matrix]

	// Values is how many vectors of a segment a rank keeps between phases, on two levels at most. It is 1 for
	// most collectives, 2 for a scan (its result, and the prefix of its group), 3 for an exscan (the group's
	// total too), and 0 without data.
	Values int

	// BusTrips counts how often the busiest link carries the message, except for one rank's part
	// of it: trips × (n−1)/n times. 0: it carries the message once.
	BusTrips int

	// Straight marks a collective that passes nothing through leaders: of the common shapes it
	// has the flat ones.
	Straight bool

	Recipe Recipe           // of the common shapes; zero: only a task
	Shapes map[Shape]Recipe // of this collective's further shapes
	Alone  Collective       // the task of a communicator of one rank, a copy; 0: none
}

// Side is one end of a collective: its input, or its result.
type Side struct {
	Holders Holders
	Content Content
}

// Holders are the ranks with a part in a side.
type Holders uint8

// The holders.
const (
	_ Holders = iota
	TheRoot
	AllRanks
)

// Content is each holder's part.
type Content uint8

// The contents.
const (
	_         Content = iota
	Nothing           // of a barrier
	Vector            // the whole message
	OwnBlock          // the rank's own block
	AllBlocks         // a block for each rank, in the order of ranks
)

// Source is the origin of a result's data.
type Source uint8

// The sources.
const (
	_             Source = iota
	NoSource             // of a barrier
	RootsData            // the root's
	OwnersData           // of each block its owner's data
	CombinedData         // all ranks' data, combined in their order
	PrefixThrough        // the data of ranks 0 to the receiver, combined in their order
	PrefixBelow          // the data of the ranks before the receiver, combined in their order; rank 0 gets nothing
)

// Placement is where a rank that works in place has its input.
type Placement uint8

// The placements.
const (
	_        Placement = iota
	InRecv             // in the receive buffer, a block at its place there
	InSend             // in the send buffer, and the result stays there: the block of a scatter's root
	OnlyRecv           // in the receive buffer, in place or not: there is no other
	Apart              // in the send buffer: it is never in place
)

// Recipe is the operations of a segment's way through the levels at which some group has several
// ranks; 0 for none.
type Recipe struct {
	First  Collective   // at the innermost level on the way up; 0: Up there too
	Up     Collective   // below the outermost level on the way up
	Top    []Collective // at the outermost level
	Down   Collective   // below the outermost level on the way down
	Single []Collective // if there is only one such level; nil: Top
}

var (
	holdersTexts = [...]string{TheRoot: "the root", AllRanks: "every rank"}
	contentTexts = [...]string{Nothing: "nothing", Vector: "the message", OwnBlock: "its own block", AllBlocks: "all blocks"}
	sourceTexts  = [...]string{
		NoSource: "of nobody", RootsData: "of the root", OwnersData: "of the owners", CombinedData: "of all, combined",
		PrefixThrough: "of ranks through its own, combined", PrefixBelow: "of ranks below its own, combined",
	}
	placementTexts = [...]string{InRecv: "in recv", InSend: "in send", OnlyRecv: "only recv", Apart: "only send"}
)

// String returns the holders in words: the root.
func (h Holders) String() string { return textOf(holdersTexts[:], int(h)) }

// String returns the content in words: all blocks.
func (c Content) String() string { return textOf(contentTexts[:], int(c)) }

// String returns the source in words: of all, combined.
func (s Source) String() string { return textOf(sourceTexts[:], int(s)) }

// String returns the placement in words: in recv.
func (p Placement) String() string { return textOf(placementTexts[:], int(p)) }

// textOf returns the i-th text, or ? for a value outside the list.
func textOf(texts []string, i int) string {
	if i == 0 || i >= len(texts) {
		return "?"
	}
	return texts[i]
}

// String returns the side in words: every rank, its own block.
func (s Side) String() string { return s.Holders.String() + ", " + s.Content.String() }

// combines reports whether a result is made of the data of several ranks.
func (s Source) combines() bool {
	return s == CombinedData || s == PrefixThrough || s == PrefixBelow
}

// takesBlocks reports whether the input is a block for each rank.
func (row *Row) takesBlocks() bool { return row.Input.Content == AllBlocks }

// givesBlocks reports whether the result is a block of each rank.
func (row *Row) givesBlocks() bool { return row.Output.Content == AllBlocks }

// recipe returns the one of a shape.
func (row *Row) recipe(s Shape) Recipe {
	if special, ok := row.Shapes[s]; ok {
		return special
	}
	return row.Recipe
}
