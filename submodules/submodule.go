package submodules

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/tasks"
)

// ErrUnsupported is wrapped by errors of choices that can't be lowered. The error's text lists
// the possible ones.
var ErrUnsupported = errors.New("not supported")

// Reach is the ranks between which a submodule works.
type Reach uint8

// The reaches.
const (
	Anywhere   Reach = iota // over links of any kind
	SharedNode              // only between ranks with shared memory
)

// InlineMax is how many bytes of payload a send between ranks with shared memory carries in the
// cache line of its message. Up to this length a message costs less than a slot, with a line of
// its own and a word back.
const InlineMax = 24

// Algorithm is one way of a submodule to do operations, with its needs.
type Algorithm struct {
	Name   string
	Ops    []tasks.Collective // the task operations it does
	Inner  bool               // takes an inner segment size
	Tree   bool               // reduces along the tree over the group's ranks, whoever leads; see [tasks.Split]
	InTurn bool               // scans by adding one rank after the other: the same order on any layout
	Number Number

	Inners []int64 // inner segments worth a search beside those for all algorithms, bytes

	Traits

	Needs  []Restriction
	Source string // paper and section, or the system it is known from
	Doc    string // one line
}

// Restriction is a condition of an algorithm on a task.
type Restriction uint8

// The restrictions.
const (
	_                Restriction = iota
	NeedsRootFirst               // with a non-commutative operation, the group's leader must be its lowest rank
	NeedsCommutative             // combines operands in another order than the ranks'
	NeedsPowerOfTwo              // an allgather or reduce-scatter only in groups of a power of two of ranks
	NeedsEven                    // an allgather only in groups of an even number of ranks, or of one
	NeedsNoData                  // an allreduce only of a barrier
	NeedsDense                   // an alltoall only if all members of a group give each other as much
	maxRestriction
)

var restrictionTexts = [maxRestriction]string{
	NeedsRootFirst:   "a non-commutative operation only when the leader is the group's lowest rank",
	NeedsCommutative: "a commutative operation only",
	NeedsPowerOfTwo:  "an allgather or reducescatter only in groups of 1, 2, 4, 8, … ranks",
	NeedsNoData:      "an allreduce only of a barrier, which has no data",
	NeedsDense:       "an alltoall only of equal blocks, between groups of equal size",
	NeedsEven:        "an allgather only in groups of 1, 2, 4, 6, … ranks",
}

// String says the restriction in words.
func (r Restriction) String() string {
	if r == 0 || r >= maxRestriction {
		return fmt.Sprintf("Restriction(%d)", uint8(r))
	}
	return restrictionTexts[r]
}

// Submodule lowers tasks. Its methods are pure and safe for concurrent use.
type Submodule interface {
	// Name is the word for it in plans.
	Name() string
	// Doc describes it in one line, with its source.
	Doc() string
	// Reach is the ranks between which it works.
	Reach() Reach
	// Algorithms lists its algorithms, the default for each operation first. Nobody may write to
	// the slice.
	Algorithms() []Algorithm
	// Lower emits the steps of c's rank for c's task. The choice has been
	// resolved and checked against Algorithms; group and spans are not empty
	// of ranks, but may be of bytes.
	Lower(e *Emitter, c *Call) error
}

// keepsTree reports whether the algorithm combines in the same order on any layout.
func (a *Algorithm) keepsTree(op tasks.Collective) bool {
	if op.Scans() {
		return a.InTurn
	}
	return a.Tree
}

// PrefersPowers reports whether the algorithm works on a power of two of ranks: other groups
// it refuses for some operation, or folds.
func (a *Algorithm) PrefersPowers() bool {
	return a.Folds || slices.Contains(a.Needs, NeedsPowerOfTwo)
}

// Does reports whether the algorithm does an operation.
func (a *Algorithm) Does(op tasks.Collective) bool { return slices.Contains(a.Ops, op) }
