package trace

import (
	"math/bits"

	"github.com/tierflow/tierflow/levels"
)

// Bound describes the calls of one run. It stays as it is while they are traced.
type Bound struct {
	Comm                     uint64        // the communicator's number
	Rank                     levels.Rank   // of it
	Members                  []levels.Rank // its ranks' numbers in the world
	Request, Operation, Plan string
	Reasons                  []string // for the plan; none: unknown
	Bytes                    int64    // of the caller's buffer
	Passes                   int64    // of Whole, before Rest
	Whole, Rest              Linked   // nil: none
}

// Ring keeps the steps of one rank in a sample of its calls: the last ones. Its memory is taken
// when it is made. A nil one does nothing. It is not safe for concurrent use.
type Ring struct {
	every uint64
	steps []span
	calls []call
	step  uint64 // steps so far
	call  uint64 // calls so far
}

// span is a step that has ended. Times count from the executor's start.
type span struct {
	call       uint32
	pass       uint32
	step       int32
	begin, end int64
}

type call struct {
	bound      *Bound
	seq        uint32
	begin, end int64 // end 0: not yet
	first      uint64
	last       uint64 // steps [first, last) may be its own
}

// The size of a ring unless told: 4 MiB, touched as they are used.
const (
	ringSteps = 1 << 17
	ringCalls = 1 << 12
)

// NewRing returns a ring that takes one call of every. Numbers of steps and calls
// are rounded up to powers of two; 0: 131,072 and 4,096.
func NewRing(every, steps, calls int) *Ring {
	size := func(n, usual int) int {
		if n <= 0 {
			n = usual
		}
		return 1 << bits.Len(uint(n-1))
	}
	return &Ring{every: uint64(max(1, every)), steps: make([]span, size(steps, ringSteps)), calls: make([]call, size(calls, ringCalls))}
}

// Takes reports whether a call is in the sample. All ranks take the same calls without a
// word between them: it follows from the numbers of the communicator and of the call on
// it. The numbers are stirred, as programs repeat calls in periods.
func (r *Ring) Takes(comm uint64, seq uint32) bool {
	return r != nil && (r.every == 1 || stir(comm^uint64(seq)<<32^uint64(seq))%r.every == 0)
}

// stir is the finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
func stir(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Begin begins a call and returns its number, for the other methods.
func (r *Ring) Begin(b *Bound, seq uint32, at int64) (number uint32) {
	number = uint32(r.call)
	r.calls[r.call&uint64(len(r.calls)-1)] = call{bound: b, seq: seq, begin: at, first: r.step}
	r.call++
	return number
}

// Step adds an ended step.
func (r *Ring) Step(number, pass uint32, step int32, begin, end int64) {
	r.steps[r.step&uint64(len(r.steps)-1)] = span{number, pass, step, begin, end}
	r.step++
}

// End ends a call. Failed calls are not ended, and not kept.
func (r *Ring) End(number uint32, at int64) {
	if uint32(r.call)-number <= uint32(len(r.calls)) {
		c := &r.calls[number&uint32(len(r.calls)-1)]
		c.end, c.last = max(1, at), r.step
	}
}

// File returns the whole calls, with base added to all times, and their
// programs. Lost counts the others. The caller adds the rank.
func (r *Ring) File(base int64) *File {
	f := &File{Format: format, Every: int(r.every)}
	bounds, programs := map[*Bound]int{}, map[Linked]int{}
	oldest := r.call - min(r.call, uint64(len(r.calls)))
	f.Lost = int64(oldest)
	for n := oldest; n < r.call; n++ {
		c := &r.calls[n&uint64(len(r.calls)-1)]
		if c.end == 0 || r.step-c.first > uint64(len(r.steps)) {
			f.Lost++
			continue
		}
		at, known := bounds[c.bound]
		if !known {
			at = len(f.Kinds)
			bounds[c.bound] = at
			f.Kinds = append(f.Kinds, f.kind(c.bound, programs))
		}
		one := Call{Kind: at, Seq: c.seq, Begin: base + c.begin, End: base + c.end}
		for i := c.first; i < c.last; i++ {
			if s := &r.steps[i&uint64(len(r.steps)-1)]; s.call == uint32(n) {
				one.Steps = append(one.Steps, Step{int64(s.pass), int64(s.step), base + s.begin, base + s.end})
			}
		}
		f.Calls = append(f.Calls, one)
	}
	return f
}

// kind returns a bound as a file has it, and adds its programs.
func (f *File) kind(b *Bound, programs map[Linked]int) Kind {
	k := Kind{
		Comm: b.Comm, Rank: b.Rank, Members: b.Members, Request: b.Request, Operation: b.Operation, Plan: b.Plan,
		Reasons: b.Reasons, Bytes: b.Bytes, Passes: b.Passes, Whole: -1, Rest: -1,
	}
	number := func(p Linked) int {
		at, known := programs[p]
		if !known {
			at = len(f.Programs)
			programs[p] = at
			f.Programs = append(f.Programs, describe(p))
		}
		return at
	}
	if b.Whole != nil && b.Passes > 0 {
		k.Whole = number(b.Whole)
	}
	if b.Rest != nil {
		k.Rest = number(b.Rest)
	}
	return k
}
