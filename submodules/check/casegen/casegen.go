// Package casegen draws random cases for property tests and for tierflow verify: a layout, a
// request and a plan within the catalogue. The same cases are checked symbolically and run for
// real. It has no generator of its own: numbers come from the caller, so a seed or a shrinking
// library decides.
package casegen

import (
	"fmt"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Case is one thing to check.
type Case struct {
	Request  tasks.Request
	Topology *levels.Topology
	Plan     tasks.Plan
}

// String is what one needs to make the case again.
func (c Case) String() string {
	place := ""
	if c.Request.InPlace {
		place = " in place"
	}
	return fmt.Sprintf("%v%s on %v with plan %v", c.Request, place, c.Topology, c.Plan)
}

// Source draws numbers; *rand.Rand is one.
type Source interface {
	// IntN returns a number from 0 to n−1, small ones being the simpler cases.
	IntN(n int) int
}

// Options narrow what is drawn. Zero fields are drawn.
type Options struct {
	MaxRanks     int // 0: 64
	Coll         tasks.Collective
	Topology     *levels.Topology
	Plan         tasks.Plan          // what it leaves open is drawn
	Registry     submodules.Registry // what to draw algorithms from
	LeastSegment int64               // of drawn segments, inner ones too, bytes; 0: 1
}

// Draw makes a case.
func (o Options) Draw(s Source) Case {
	c := Case{Topology: o.Topology}
	if c.Topology == nil {
		c.Topology = o.topology(s)
	}
	c.Request = o.request(s, c.Topology.Size())
	c.Plan = o.Plan.Over(o.plan(s, c.Request, c.Topology))
	return c
}

func pick[T any](s Source, all ...T) T { return all[s.IntN(len(all))] }

// topology draws one to four levels, domains of unequal size, and ranks dealt
// out in blocks or at random.
func (o Options) topology(s Source) *levels.Topology {
	most := o.MaxRanks
	if most == 0 {
		most = 64
	}
	size := 1 + s.IntN(pick(s, 4, 9, most))
	depth := 1 + s.IntN(4)
	domains := make([]int, depth-1)
	for k := range domains {
		domains[k] = 1 + s.IntN(5)
	}
	interleaved := s.IntN(3) == 0
	paths := make([][]int32, size)
	for r := range paths {
		paths[r] = make([]int32, depth-1)
		for k, n := range domains {
			at := r * n / size
			if interleaved {
				at = s.IntN(n)
			}
			paths[r][k] = int32(at)
		}
	}
	t, err := levels.New(levels.Standard(depth), paths)
	if err != nil {
		panic(fmt.Sprintf("casegen: drew an impossible layout: %v", err))
	}
	return t
}

// concat is an operation to show every change of order.
var concat = tasks.UserOp("first", false, func(a, _ int32) int32 { return a })

func (o Options) request(s Source, size int) tasks.Request {
	r := tasks.Request{Coll: o.Coll}
	if r.Coll == 0 {
		r.Coll = pick(s, tasks.Requestable()...)
	}
	if !r.Coll.HasData() {
		return r
	}
	r.Type = pick(s, tasks.Int32, tasks.Uint8, tasks.Float64)
	r.Count = int64(s.IntN(pick(s, 3, 40, 3000)))
	if r.Rooted() {
		r.Root = levels.Rank(s.IntN(size))
	}
	if r.Blocks() {
		r.Count = int64(s.IntN(int(r.Count)/size + 2)) // of each rank
		r.InPlace = s.IntN(2) == 1 && r.Coll.HasInPlace()
	}
	if r.Coll.HasCounts() && s.IntN(2) == 1 {
		r.Counts, r.Count = differ(s, size, int(r.Count))
	}
	if r.Coll.HasMatrix() && s.IntN(2) == 1 {
		r.Matrix, r.Count = differByPair(s, size, int(r.Count), r.InPlace)
	}
	if !r.Reduces() {
		return r
	}
	r.Op = tasks.Sum
	if r.Type == tasks.Int32 && s.IntN(4) == 0 {
		r.Op = concat
	}
	r.InPlace = s.IntN(2) == 1
	return r
}

// plan draws parameters, and for every kind of task an algorithm for it; a registry without any
// leaves the kind without a choice.
func (o Options) plan(s Source, r tasks.Request, t *levels.Topology) tasks.Plan {
	p := tasks.Plan{Shape: pick(s, tasks.ShapesOf(r.Coll)...), Window: 1 + s.IntN(5)}
	bytes := int(max(1, r.Bytes()))
	p.Segment = max(o.LeastSegment, int64(1+s.IntN(pick(s, bytes, max(1, bytes/4), 64))))
	if s.IntN(4) == 0 {
		p.Segment = tasks.Whole
	}
	if r.Exchanges() && s.IntN(2) == 0 {
		p.Eager = int64(1 + s.IntN(bytes))
	}
	for k := range t.Depth() {
		level := t.Level(k).Symbol
		for _, op := range tasks.Operations(r.Coll, p.Shape) {
			kind := tasks.Kind{Symbol: level, Op: op}
			if can := o.choices(s, op, level == levels.NodeSymbol || k == 0, p); len(can) > 0 {
				p = p.Set(kind.String(), pick(s, can...))
			}
		}
	}
	return p
}

// mostNumber bounds the numbers of algorithms: groups are hardly larger.
const mostNumber = 9

// choices lists the algorithms for an operation inside nodes or between them, each with and
// without an inner segment, and with a number if it takes one.
func (o Options) choices(s Source, op tasks.Collective, inside bool, p tasks.Plan) (can []tasks.Choice) {
	for _, sub := range o.Registry {
		if sub.Reach() == submodules.SharedNode && !inside {
			continue
		}
		for _, a := range sub.Algorithms() {
			if !a.Does(op) {
				continue
			}
			c := tasks.Choice{Submodule: sub.Name(), Algorithm: a.Name}
			can = append(can, c)
			if a.Inner {
				c.Inner = max(o.LeastSegment, 1+int64(s.IntN(int(min(p.Segment, 4096)))))
				can = append(can, c)
			}
			if a.Number.Taken() {
				c.N = 2 + s.IntN(mostNumber-1)
				can = append(can, c)
			}
		}
	}
	return can
}
