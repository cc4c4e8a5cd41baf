package submodules

import "fmt"

// Schedule is the flows of an operation: from rank to rank, how much, and in which order.
// Algorithms of one schedule cost the same but for how their steps wait for each other: a price
// follows from it.
type Schedule uint8

// The schedules, of n ranks. Along a tree messages go down in a bcast or a scatter, and up in a
// reduce or a gather. A part is the data of one rank.
const (
	_                 Schedule = iota // none of these
	DigitTree                         // a tree in digits of a radix, the algorithm's number; 2 without: binomial (Thakur, Rabenseifner, Gropp, IJHPCA 2005, 4.1)
	FanTree                           // a tree: each rank feeds the algorithm's number of others, all about as many ranks deep (ADAPT, HPDC 2018)
	ChainTree                         // as many chains below the root as the algorithm's number; 1 without (ADAPT, HPDC 2018)
	StarTree                          // the root speaks with each other rank (coll/basic)
	AroundRing                        // each passes its last message on to the next (Patarasuk, Yuan, JPDC 2009)
	RecursiveDoubling                 // pairs at distances 1, 2, 4, … exchange all they have (Thakur, Rabenseifner, Gropp, IJHPCA 2005, 4.1)
	RecursiveHalving                  // pairs at distances n/2, n/4, … exchange half of the rest (the same, 4.2)
	HalvingDoubling                   // a reduce-scatter by halving, then a gather or an allgather (Rabenseifner, ICCS 2004)
	CirculantGraph                    // each sends to ranks at the distances of a circulant graph (Träff, arXiv:2407.18004, arXiv:2410.14234)
	DistanceDoubling                  // each sends to ranks at distances 1, 2, 4, …, or of the digits of a radix (Bruck et al., IEEE TPDS 1997; Hensgen, Finkel, Manber, IJPP 1988)
	NeighborExchange                  // two parts at a time with the neighbour on either side in turn (Chen, Sun, Zhang, IPDPS 2005)
	AllAtOnce                         // each sends each other rank its part at once (coll/basic)
	OneByOne                          // the same, one partner after the other: pairwise exchange (Thakur, Rabenseifner, Gropp, IJHPCA 2005, 4.2)
	maxSchedule
)

var scheduleNames = [maxSchedule]string{
	"none", "tree of digits", "tree of fans", "chains", "star", "ring", "recursive doubling", "recursive halving", "halving and doubling",
	"circulant graph", "distance doubling", "neighbor exchange", "all at once", "one by one",
}

// String is the schedule's name.
func (s Schedule) String() string {
	if s >= maxSchedule {
		return fmt.Sprintf("Schedule(%d)", uint8(s))
	}
	return scheduleNames[s]
}

// Hand is how ranks with shared memory give each other data.
type Hand uint8

// The hands.
const (
	ByLink  Hand = iota // as over any link
	Posted              // in messages, of any length
	Slotted             // in slots, and up to [InlineMax] bytes in messages
	Read                // each reads the data in place
	maxHand
)

var handNames = [maxHand]string{"by link", "posted", "slotted", "read"}

// String is the hand's name.
func (h Hand) String() string {
	if h >= maxHand {
		return fmt.Sprintf("Hand(%d)", uint8(h))
	}
	return handNames[h]
}
