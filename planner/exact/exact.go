package exact

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/bits"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// Float lists the types of elements.
type Float interface{ float32 | float64 }

// MaxContributions bounds the contributions of all ranks together.
const MaxContributions = 1 << 16

// DefaultBlock is how many elements share an exponent, unless [Options.Block] says otherwise.
const DefaultBlock = 64

// Options are those of a sum. nil and the zero value are ready to use. All ranks give
// the same.
type Options struct {
	// Block is how many elements share an exponent, 1 or more. 0: DefaultBlock.
	Block int
	// Average divides the sum by the number of contributions that there were, once, before the
	// result is rounded. For float64 this rounds a second time.
	Average bool
}

// Sum adds up contributions of n elements each. It is used again and again: Look for each
// contribution of this rank, Agree, Add for each contribution, Sum. A rank may have no contribution.
// Agree and Sum are collectives of the communicator. After the first round it allocates nothing.
//
// Its methods must not be called at the same time.
type Sum[T Float] struct{ of adder[T] }

// Look takes a contribution's exponents into account.
func (s *Sum[T]) Look(x []T) error { return s.of.look(x) }

// Agree agrees on exponents with all ranks. It is a collective.
func (s *Sum[T]) Agree(ctx context.Context) error { return s.of.agree(ctx) }

// Add adds a contribution that Look has seen in this round. It keeps nothing of x.
func (s *Sum[T]) Add(x []T) error { return s.of.add(x) }

// Sum writes the sum of all ranks' contributions to dst, which may be one of them. It is a
// collective. More contributions than New was told are an error on all ranks, and so is one that
// Look hasn't seen, or none at all.
func (s *Sum[T]) Sum(ctx context.Context, dst []T) error { return s.of.sum(ctx, dst) }

// Run is a round of its own: the sum of this rank's contributions and those of all others.
func (s *Sum[T]) Run(ctx context.Context, contributions [][]T, dst []T) error {
	for _, x := range contributions {
		if err := s.Look(x); err != nil {
			return err
		}
	}
	if err := s.Agree(ctx); err != nil {
		return err
	}
	for _, x := range contributions {
		if err := s.Add(x); err != nil {
			return err
		}
	}
	return s.Sum(ctx, dst)
}

// Free gives memory back that other ranks may read. The Sum must not be used afterwards.
func (s *Sum[T]) Free() { s.of.free() }

// adder is a Sum for one type of elements.
type adder[T Float] interface {
	look(x []T) error
	agree(ctx context.Context) error
	add(x []T) error
	sum(ctx context.Context, dst []T) error
	free()
}

// New makes a sum of n elements, for at most so many contributions of all ranks together. No
// message is sent, unless [planner.Options.Effort] is [planner.EffortMeasure].
func New[T Float](ctx context.Context, c *planner.Comm, n, contributions int, o *Options) (*Sum[T], error) {
	if o == nil {
		o = &Options{}
	}
	block := o.Block
	if block == 0 {
		block = DefaultBlock
	}
	if n < 0 || contributions < 1 || contributions > MaxContributions || block < 1 {
		return nil, fmt.Errorf("exact sum of %d elements, %d contributions, blocks of %d; allowed are 0 elements or more, 1 to %d contributions, blocks of 1 or more",
			n, contributions, o.Block, MaxContributions)
	}
	var s Sum[T]
	var err error
	p := problem{n, contributions, block, o.Average}
	switch any(*new(T)).(type) {
	case float32:
		var a *round[float32, uint8, int32]
		a, err = newRound(ctx, c, p, loops32)
		s.of, _ = any(a).(adder[T])
	default:
		var a *round[float64, uint16, int64]
		a, err = newRound(ctx, c, p, loops64)
		s.of, _ = any(a).(adder[T])
	}
	if err != nil {
		return nil, fmt.Errorf("exact sum: %w", err)
	}
	return &s, nil
}

// Allreduce sums one contribution of each rank: recv of all ranks is the sum of send of all ranks.
// Both may be the same slice. It makes a [Sum] and frees it; who calls often keeps one.
func Allreduce[T Float](ctx context.Context, c *planner.Comm, send, recv []T) error {
	s, err := New[T](ctx, c, len(send), c.Size(), nil)
	if err != nil {
		return err
	}
	defer s.Free()
	return s.Run(ctx, [][]T{send}, recv)
}

// problem is equal on all ranks.
type problem struct {
	n, contributions, block int
	average                 bool
}

func (p problem) String() string {
	text := fmt.Sprintf("%d elements, %d contributions, blocks of %d", p.n, p.contributions, p.block)
	if p.average {
		text += ", average"
	}
	return text
}

// shift is h, the bits that a sum of contributions may be longer than one.
func (p problem) shift() int { return bits.Len(uint(p.contributions - 1)) }

// hash tells problems apart.
func (p problem) hash() uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(p.String())) // never fails
	return h.Sum32()
}

// exponent is a float's exponent field.
type exponent interface{ uint8 | uint16 }

// carrier is the type of sent multiples.
type carrier interface{ int32 | int64 }

// Words behind the tops: a hash of the problem, its complement, and whether an element is special.
// A maximum of both a word and its complement shows that all are equal.
const (
	hashWords   = 4
	specialWord = 2 * hashWords
	topWords    = specialWord + 1
)

// Words behind the accumulators.
const (
	countWord = iota // contributions
	aboveWord        // contributions that Look had not seen
	accWords
)

// Marks of elements that no integer stands for.
const (
	isNaN = 1 << iota
	isPlusInf
	isMinusInf
)

// phase is the next step of a sum.
type phase uint8

const (
	looking phase = iota
	adding
	freed
)

// round is a [Sum] in one round.
type round[T Float, E exponent, Q carrier] struct {
	problem
	loops *loops[T, E, Q]
	comm  *planner.Comm
	id    uint32 // the problem's hash
	phase phase

	all    []E // tops, and words behind
	tops   []E
	most   *planner.Collective // the maximum of all, in place
	lent   []Q                 // acc, and words behind
	acc    []Q
	total  *planner.Collective // the sum of lent, in place
	flags  []uint8             // marks by element; nil: never needed yet
	marked bool                // in this round there are special elements
}

func newRound[T Float, E exponent, Q carrier](ctx context.Context, c *planner.Comm, p problem, l *loops[T, E, Q]) (s *round[T, E, Q], err error) {
	blocks := (p.n + p.block - 1) / p.block
	s = &round[T, E, Q]{problem: p, loops: l, comm: c, id: p.hash()}
	s.all = make([]E, blocks+topWords)
	s.tops = s.all[:blocks]
	if s.lent, err = planner.Alloc[Q](c, p.n+accWords); err != nil {
		return nil, err
	}
	s.acc = s.lent[:p.n]
	if s.most, err = planner.PrepareAllreduce(ctx, c, s.all, s.all, tasks.Max); err == nil {
		s.total, err = planner.PrepareAllreduce(ctx, c, s.lent, s.lent, tasks.Sum)
	}
	if err != nil {
		planner.Free(c, s.lent)
		return nil, err
	}
	s.reset()
	return s, nil
}

// reset begins a round.
func (s *round[T, E, Q]) reset() {
	s.phase, s.marked = looking, false
	clear(s.all)
	for i := range hashWords {
		b := uint8(s.id >> (8 * i))
		s.all[len(s.tops)+i], s.all[len(s.tops)+hashWords+i] = E(b), E(^b)
	}
	clear(s.lent)
	clear(s.flags)
}

// check is an error unless x may be given to a method now.
func (s *round[T, E, Q]) check(method string, now phase, n int) error {
	switch {
	case s.phase == freed:
		return fmt.Errorf("exact sum: %s after Free", method)
	case s.phase != now && now == looking:
		return fmt.Errorf("exact sum: %s after Agree; Sum ends the round", method)
	case s.phase != now:
		return fmt.Errorf("exact sum: %s before Agree", method)
	case n != s.n:
		return fmt.Errorf("exact sum: %s of %d elements; it was made for %d", method, n, s.n)
	}
	return nil
}

func (s *round[T, E, Q]) look(x []T) error {
	if err := s.check("Look", looking, len(x)); err != nil {
		return err
	}
	if s.loops.look(s.tops, x, s.block) {
		s.all[len(s.tops)+specialWord] = 1
	}
	return nil
}

func (s *round[T, E, Q]) agree(ctx context.Context) error {
	if err := s.check("Agree", looking, s.n); err != nil {
		return err
	}
	if err := s.most.Run(ctx); err != nil {
		s.reset()
		return fmt.Errorf("exact sum: agree on exponents: %w", err)
	}
	words := s.all[len(s.tops):]
	for i := range hashWords {
		if words[i]+words[hashWords+i] != 0xff {
			s.reset()
			return fmt.Errorf("exact sum: ranks differ in what they sum; this one has %v", s.problem)
		}
	}
	s.phase = adding
	if s.marked = words[specialWord] != 0; s.marked && s.flags == nil {
		s.flags = make([]uint8, s.n)
	}
	return nil
}

func (s *round[T, E, Q]) add(x []T) error {
	if err := s.check("Add", adding, len(x)); err != nil {
		return err
	}
	var flags []uint8
	if s.marked {
		flags = s.flags
	}
	if s.loops.addAll(s.acc, x, s.tops, s.block, s.shift(), flags) {
		s.lent[s.n+aboveWord]++
	}
	s.lent[s.n+countWord]++
	return nil
}

func (s *round[T, E, Q]) sum(ctx context.Context, dst []T) error {
	if err := s.check("Sum", adding, len(dst)); err != nil {
		return err
	}
	defer s.reset()
	if err := s.total.Run(ctx); err != nil {
		return fmt.Errorf("exact sum: %w", err)
	}
	if s.marked {
		if err := planner.Allreduce(ctx, s.comm, s.flags, s.flags, tasks.Bor); err != nil {
			return fmt.Errorf("exact sum: NaN and infinities: %w", err)
		}
	}
	count, above := int64(s.lent[s.n+countWord]), s.lent[s.n+aboveWord]
	switch {
	case count > int64(s.contributions):
		return fmt.Errorf("exact sum: %d contributions; it was made for %d", count, s.contributions)
	case above > 0:
		return fmt.Errorf("exact sum: %d contributions were added that Look had not seen on that rank", above)
	case count == 0:
		return errNone
	case !s.average:
		count = 1
	}
	s.loops.results(dst, s.acc, s.tops, s.block, s.shift(), count)
	if s.marked {
		mark(dst, s.flags)
	}
	return nil
}

var errNone = errors.New("exact sum: no rank has added a contribution")

func (s *round[T, E, Q]) free() {
	if s.phase != freed {
		s.phase = freed
		planner.Free(s.comm, s.lent)
	}
}
