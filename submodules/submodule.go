package submodules

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// ErrUnsupported is wrapped by errors of choices that can't be lowered. The error's text lists what can.
var ErrUnsupported = errors.New("not supported")

// Reach says between which ranks a submodule works.
type Reach uint8

// The reaches.
const (
	Anywhere   Reach = iota // over links of any kind
	SharedNode              // only between ranks that share memory
)

// InlineMax is how many bytes of payload a send between ranks that share memory
// carries in the cache line of its message. What fits there costs less sent than
// in a slot, which takes a line of its own and a word back.
const InlineMax = 24

// Algorithm is one way of a submodule to do operations, with what it needs.
type Algorithm struct {
	Name   string
	Ops    []tasks.Collective // the task operations it does
	Inner  bool               // takes an inner segment size
	Tree   bool               // reduces along the tree over the group's ranks, whoever leads; see [tasks.Split]
	InTurn bool               // scans by adding one rank after the other: the same order on any layout
	Number Number

	Inners []int64 // inner segments that are worth a search beside those for all algorithms, bytes

	Traits

	Needs  []Restriction
	Source string // paper and section, or the system it is known from
	Doc    string // one line
}

// Restriction is a condition on a task that an algorithm may have.
type Restriction uint8

// The restrictions.
const (
	_                Restriction = iota
	NeedsRootFirst               // with a non-commutative operation, the group's leader must be its lowest rank
	NeedsCommutative             // combines operands in another order than that of ranks
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
	// Doc says in one line what it is and where it comes from.
	Doc() string
	// Reach says between which ranks it works.
	Reach() Reach
	// Algorithms lists what it can do, the default for each operation first. Nobody may write
	// to the slice.
	Algorithms() []Algorithm
	// Lower emits the steps of c's rank for c's task. The choice has been
	// resolved and checked against Algorithms; group and spans are not empty
	// of ranks, but may be of bytes.
	Lower(e *Emitter, c *Call) error
}

// Call is one task to be lowered on one rank.
type Call struct {
	tasks.Task
	Me        int // this rank's index in Group.Ranks
	Algorithm string
	Inner     int64 // bytes, a multiple of Elem; 0: the segment in one piece
	Elem      int64 // bytes of an element; 1 when there is no data
	N         int   // the algorithm's number; 0: its default
	Eager     int64 // see [tasks.Plan]

	// Of a task that gathers or scatters, by index in the group: where the members'
	// parts lie on this rank, as spans of equal lengths on all ranks and cut by Inner
	// already. A Gather puts them there at the leader, an Allgather everywhere; a
	// Scatter takes them from there at the leader, a ReduceScatter everywhere. What a
	// rank doesn't store has lengths and no region.
	Parts [][]tasks.Span
	// Held is where this rank's own part lies when the task begins, of a Scatter or
	// ReduceScatter where it is to lie when it ends: at its place in Parts, or apart
	// from all of them.
	Held []tasks.Span
	// Scan says of a Scan, Exscan or Prefix where the values are: a Scan and an Exscan take
	// Src and leave there what they want. A Prefix puts the leader's Src before what is
	// there.
	Scan tasks.Scanned
	// Out and In are an Alltoall's pieces, by index in the group: what this rank gives each
	// member, and what it gets from each, where they lie here. What one member gives
	// another is as many pieces of equal lengths on both. In place Out and In are the same
	// memory: what comes from a member lies over what that member gets.
	Out, In [][]tasks.Span
	// On is the topology of the communicator.
	On *levels.Topology
	// Full says of an Allgather that all parts lie on this rank already. It is the root
	// of a Bcast then, and its buffer must be left alone even when the call fails.
	Full bool
}

// Shards divides a span into as many shards as the group has ranks, each cut by
// Inner; empty ones have no piece.
func (c *Call) Shards(s tasks.Span) [][]tasks.Span {
	all := make([][]tasks.Span, len(c.Group.Ranks))
	for i := range all {
		if shard := s.Shard(i, len(all), c.Elem); shard.Len > 0 {
			all[i] = c.cut([]tasks.Span{shard})
		}
	}
	return all
}

// cut divides spans by the inner segment.
func (c *Call) cut(all []tasks.Span) []tasks.Span {
	if c.Inner <= 0 {
		return all
	}
	var pieces []tasks.Span
	for _, s := range all {
		for off := int64(0); off < s.Len; off += c.Inner {
			pieces = append(pieces, s.Cut(off, min(c.Inner, s.Len-off)))
		}
	}
	return pieces
}

// Keep adds copying this rank's own part to its place in Parts, or what a Scatter or
// ReduceScatter has there to Held, unless they are the same.
func (c *Call) Keep(e *Emitter, after ...dag.ID) (steps []dag.ID) {
	for i, held := range c.Held {
		dst, src := c.Parts[c.Me][i], held
		if c.Kind.Op.Scatters() {
			dst, src = src, dst
		}
		if dst != src {
			steps = append(steps, e.Copy(dst, src, after...))
		}
	}
	return steps
}

// Alone reports whether this rank is the only one of its group, and then adds its work: a copy of its data
// to their place.
func (c *Call) Alone(e *Emitter) bool {
	if len(c.Group.Ranks) > 1 {
		return false
	}
	switch {
	case c.Out != nil:
		c.KeepOwn(e)
	case c.Parts != nil:
		c.Keep(e)
	case c.Src != c.Dst:
		e.Copy(c.Dst, c.Src)
	}
	return true
}

// Part is where a member's part lies, this rank's own as it came.
func (c *Call) Part(i int) []tasks.Span {
	if i == c.Me {
		return c.Held
	}
	return c.Parts[i]
}

// Registry is a set of submodules to choose from.
type Registry []Submodule

// Find looks a submodule up by name.
func (r Registry) Find(name string) (Submodule, error) {
	for _, s := range r {
		if s.Name() == name {
			return s, nil
		}
	}
	names := make([]string, len(r))
	for i, s := range r {
		names[i] = s.Name()
	}
	return nil, fmt.Errorf("unknown submodule %q; known are %s", name, strings.Join(names, ", "))
}

// Check reports the first word of a plan that names no submodule or algorithm,
// or a parameter that the algorithm doesn't take.
func (r Registry) Check(p tasks.Plan) error {
	for _, key := range p.Keys() {
		c, _ := p.Choice(key)
		s, err := r.Find(c.Submodule)
		if err != nil {
			return fmt.Errorf("%s=%v: %w", key, c, err)
		}
		if c.Algorithm == "" && c.Inner == 0 && c.N == 0 {
			continue
		}
		a, ok := find(s, c.Algorithm, 0)
		if !ok {
			return fmt.Errorf("%s=%v: unknown algorithm %q; %s has %s", key, c, c.Algorithm, s.Name(), algorithmNames(s, 0))
		}
		if c.Inner != 0 && !a.Inner {
			return fmt.Errorf("%s=%v: %s/%s takes no inner segment", key, c, s.Name(), a.Name)
		}
		if c.N != 0 && !a.Number.Taken() {
			return fmt.Errorf("%s=%v: %s/%s takes no number", key, c, s.Name(), a.Name)
		}
	}
	return nil
}

// Algorithm returns what a choice names; false if it names none, or leaves it to the submodule.
func (r Registry) Algorithm(c tasks.Choice) (a Algorithm, known bool) {
	s, err := r.Find(c.Submodule)
	if err != nil || c.Algorithm == "" {
		return a, false
	}
	return find(s, c.Algorithm, 0)
}

// Does reports whether a choice that Check has nothing against can do an operation,
// somewhere.
func (r Registry) Does(c tasks.Choice, op tasks.Collective) bool {
	_, does := r.Row(c, op)
	return does
}

// Row returns the algorithm that does an operation by such a choice; false if none does. Nobody may
// write to it.
func (r Registry) Row(c tasks.Choice, op tasks.Collective) (*Algorithm, bool) {
	for _, s := range r {
		if s.Name() == c.Submodule {
			all := s.Algorithms()
			for i := range all {
				if (c.Algorithm == "" || all[i].Name == c.Algorithm) && slices.Contains(all[i].Ops, op) {
					return &all[i], true
				}
			}
		}
	}
	return nil, false
}

// keepsTree reports whether the algorithm combines in the same order on any layout.
func (a Algorithm) keepsTree(op tasks.Collective) bool {
	if op.Scans() {
		return a.InTurn
	}
	return a.Tree
}

// find returns the submodule's algorithm of that name for op. An empty name stands
// for any algorithm, op 0 for any operation.
func find(s Submodule, name string, op tasks.Collective) (Algorithm, bool) {
	for _, a := range s.Algorithms() {
		if (name == "" || a.Name == name) && (op == 0 || a.Does(op)) {
			return a, true
		}
	}
	return Algorithm{}, false
}

// PrefersPowers reports whether the algorithm works on a power of two of ranks: other groups
// it refuses for some operation, or folds.
func (a *Algorithm) PrefersPowers() bool {
	return a.Folds || slices.Contains(a.Needs, NeedsPowerOfTwo)
}

// Does reports whether the algorithm does an operation.
func (a Algorithm) Does(op tasks.Collective) bool {
	for _, o := range a.Ops {
		if o == op {
			return true
		}
	}
	return false
}

func algorithmNames(s Submodule, op tasks.Collective) string {
	var names []string
	for _, a := range s.Algorithms() {
		if op == 0 || a.Does(op) {
			names = append(names, a.Name)
		}
	}
	return strings.Join(names, ", ")
}

// resolve finds who does a task kind under a plan, and how.
func (r Registry) resolve(p tasks.Plan, k tasks.Kind) (Submodule, Algorithm, tasks.Choice, error) {
	c, ok := p.For(k)
	if !ok {
		return nil, Algorithm{}, c, fmt.Errorf("%v: plan %q chooses no submodule for level %c", k, p, k.Symbol)
	}
	s, err := r.Find(c.Submodule)
	if err != nil {
		return nil, Algorithm{}, c, fmt.Errorf("%v=%v: %w", k, c, err)
	}
	a, ok := find(s, c.Algorithm, k.Op)
	if !ok {
		return nil, a, c, fmt.Errorf("%v=%v: %v by %s: %w; for %v there is %s",
			k, c, k.Op, c, ErrUnsupported, k.Op, r.offers(k.Op, SharedNode))
	}
	if c.Inner != 0 && !a.Inner {
		return nil, a, c, fmt.Errorf("%v=%v: an inner segment for %s/%s: %w", k, c, s.Name(), a.Name, ErrUnsupported)
	}
	if c.N != 0 && !a.Number.Taken() {
		return nil, a, c, fmt.Errorf("%v=%v: a number for %s/%s: %w", k, c, s.Name(), a.Name, ErrUnsupported)
	}
	return s, a, c, nil
}

// Offers lists submodule/algorithm for an operation, those of one node included
// if all ranks share memory.
func (r Registry) Offers(op tasks.Collective, shared bool) string {
	if shared {
		return r.offers(op, SharedNode)
	}
	return r.offers(op, Anywhere)
}

// offers lists submodule/algorithm for an operation over the given reach.
func (r Registry) offers(op tasks.Collective, reach Reach) string {
	return r.list(op, func(s Submodule, _ *Algorithm) bool { return s.Reach() <= reach })
}

// keepTree lists submodule/algorithm that do an operation with order=tree.
func (r Registry) keepTree(op tasks.Collective) string {
	return r.list(op, func(_ Submodule, a *Algorithm) bool { return a.keepsTree(op) })
}

func (r Registry) list(op tasks.Collective, is func(s Submodule, a *Algorithm) bool) string {
	var all []string
	for _, s := range r {
		for _, a := range s.Algorithms() {
			if a.Does(op) && is(s, &a) {
				all = append(all, s.Name()+"/"+a.Name)
			}
		}
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

// Pieces yields offset and length of the inner segments in order; a message
// without bytes is one empty piece.
func (c *Call) Pieces() iter.Seq2[int64, int64] {
	return func(yield func(off, n int64) bool) {
		step := c.Inner
		if step <= 0 {
			step = c.Dst.Len
		}
		for off := int64(0); ; off += step {
			n := min(step, c.Dst.Len-off)
			if !yield(off, n) || off+step >= c.Dst.Len {
				return
			}
		}
	}
}

// Others yields the ranks of the group but this one, ascending.
func (c *Call) Others() iter.Seq2[int, levels.Rank] {
	return func(yield func(int, levels.Rank) bool) {
		for i, r := range c.Group.Ranks {
			if i != c.Me && !yield(i, r) {
				return
			}
		}
	}
}
