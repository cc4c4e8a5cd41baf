package submodules

import (
	"fmt"
	"math/bits"

	"github.com/tierflow/tierflow/tasks"
)

// Traits are the facts about an algorithm that need no measurement. Package submoduletest holds
// them against its programs.
type Traits struct {
	Traffic Traffics // at the algorithm's usual number

	Folds   bool   // in an allreduce or a reduce of no power of two of ranks some hand over to a neighbour first, and wait for the result
	InOrder bool   // its tree is over the ranks as they are numbered, whoever leads
	Eager   bool   // heeds a plan's eager=
	Ways    Growth // in how many ways the inner segments of a bcast come to a rank; the zero value: all in one
	Handed  Hand   // how ranks with shared memory give each other data

	// Like names an algorithm of the same submodule with as much work for each rank, and Share
	// is the part of the message on its edges here. If this algorithm has no price, a search
	// leaves a plan out by the price of that one. Nobody chooses by it. Empty: there is none.
	Like  string
	Share float64
}

// Traffic is an operation's demand on ranks, each sending to one other at a time and receiving
// from one.
type Traffic struct {
	Schedule Schedule // the flows between ranks
	Rounds   Growth   // until the operation is over, the message being in one piece
	Partners Growth   // of the busiest rank
	AtOnce   int      // partners of a rank at the same time; 0: no bound, or the schedule's
}

// Traffics are the traffic of several operations.
type Traffics map[tasks.Collective]Traffic

// Alike gives some operations the same traffic.
func Alike(schedule Schedule, rounds, partners Growth, some ...tasks.Collective) Traffics {
	return Traffics{}.And(schedule, rounds, partners, some...)
}

// And adds operations of another traffic. It returns the same map.
func (all Traffics) And(schedule Schedule, rounds, partners Growth, some ...tasks.Collective) Traffics {
	for _, op := range some {
		all[op] = Traffic{Schedule: schedule, Rounds: rounds, Partners: partners}
	}
	return all
}

// Growth is how a number grows with a group's ranks. The zero value: there is no closed form.
type Growth uint8

// The growths.
const (
	_              Growth = iota
	Doublings             // ⌈log2 n⌉
	TwiceDoublings        // 2⌈log2 n⌉
	Others                // n-1
	TwiceOthers           // 2(n-1)
	Half                  // n/2, of an even n
	Neighbours            // 2, or 1 of two ranks
	maxGrowth
)

var growthTexts = [maxGrowth]string{
	"no closed form", Doublings: "⌈log2 n⌉", TwiceDoublings: "2⌈log2 n⌉",
	Others: "n-1", TwiceOthers: "2(n-1)", Half: "n/2", Neighbours: "min(2, n-1)",
}

// String is the growth as a formula.
func (g Growth) String() string {
	if g >= maxGrowth {
		return fmt.Sprintf("Growth(%d)", uint8(g))
	}
	return growthTexts[g]
}

// Growths lists the growths with a closed form.
func Growths() []Growth {
	return []Growth{Doublings, TwiceDoublings, Others, TwiceOthers, Half, Neighbours}
}

// Of returns the number for n ranks; 1 <= n. Without a closed form it is 0.
func (g Growth) Of(n int) int {
	switch g {
	case Doublings:
		return bits.Len(uint(n - 1))
	case TwiceDoublings:
		return 2 * bits.Len(uint(n-1))
	case Others:
		return n - 1
	case TwiceOthers:
		return 2 * (n - 1)
	case Half:
		return n / 2
	case Neighbours:
		return min(2, n-1)
	}
	return 0
}

// Number is a parameter of an algorithm in a plan, 2 to [tasks.MaxNumber]. The zero value: it
// takes none.
type Number struct {
	Meaning string // in some words
	Usual   int    // its value if a plan has none
	Worth   []int  // values worth a search, beside the usual one
}

// Taken reports whether there is such a parameter.
func (n *Number) Taken() bool { return n.Meaning != "" }

// String describes the parameter with its usual value; empty if there is no such parameter.
func (n *Number) String() string {
	if !n.Taken() {
		return ""
	}
	return fmt.Sprintf("%s, default %d", n.Meaning, n.Usual)
}
