package submodules

import (
	"fmt"
	"math/bits"

	"github.com/tierflow/tierflow/tasks"
)

// Traits are what is known of an algorithm without a measurement. Package submoduletest
// holds them against the programs that the algorithm lowers to.
type Traits struct {
	Traffic map[tasks.Collective]Traffic // at the algorithm's usual number, by operation

	Folds   bool   // in an allreduce or a reduce of no power of two of ranks some hand over to a neighbour first, and wait for the result
	InOrder bool   // its tree is over the ranks as they are numbered, whoever leads
	Eager   bool   // heeds a plan's eager=
	Ways    Growth // in how many ways the inner segments of a bcast come to a rank; the zero value: all in one
	Handed  Hand   // how ranks that share memory give each other data

	// Like names an algorithm of the same submodule that each rank has as much to do in, and
	// Share is which part of the message its edges carry here. A search leaves a plan out by
	// that one's price where this one has none; nobody chooses by it. Empty: there is none.
	Like  string
	Share float64
}

// Traffic is an operation's demand on ranks that send to one other at a time and receive from one.
type Traffic struct {
	Schedule Schedule // who sends what to whom
	Rounds   Growth   // until all have what they want, the message being in one piece
	Partners Growth   // that the busiest rank exchanges messages with
	AtOnce   int      // partners that a rank exchanges with at the same time; 0: no bound, or what the schedule says
}

// Alike gives some operations the same traffic.
func Alike(schedule Schedule, rounds, partners Growth, some ...tasks.Collective) map[tasks.Collective]Traffic {
	all := map[tasks.Collective]Traffic{}
	for _, op := range some {
		all[op] = Traffic{Schedule: schedule, Rounds: rounds, Partners: partners}
	}
	return all
}

// Growth is how a number follows that of a group's ranks. The zero value: there is no
// closed form.
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

// Growths lists those that have a closed form.
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

// Number is a parameter that a plan may give an algorithm, 2 to [tasks.MaxNumber]. The zero
// value: it takes none.
type Number struct {
	Meaning string // in some words
	Usual   int    // what it is if a plan doesn't say
	Worth   []int  // that are worth a search, beside the usual one
}

// Taken reports whether there is such a parameter.
func (n *Number) Taken() bool { return n.Meaning != "" }

// String says what it means and what it usually is; empty if there is no such parameter.
func (n *Number) String() string {
	if !n.Taken() {
		return ""
	}
	return fmt.Sprintf("%s, default %d", n.Meaning, n.Usual)
}
