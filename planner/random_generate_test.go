package planner_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tierflow/tierflow/dag/invariants"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/submodules/check/casegen"
	"github.com/tierflow/tierflow/tasks"
)

// What bounds a program.
const (
	randomMaxRanks = 8
	randomMaxComms = 8
	randomMaxDepth = 3
	randomMaxBytes = 4 << 20 // of a buffer, and of a program's large calls on all ranks
)

// randomDraw makes a program.
type randomDraw struct {
	*rand.Rand
	p     *randomProgram
	left  int  // bytes that may still be spent on large calls
	fine  bool // plans cut messages into tiny pieces, so there are only small ones
	least int  // index into the sizes of count: there are no smaller ones
}

// drawProgram makes the program of a seed.
func drawProgram(seed uint64, ranks string, faults bool) *randomProgram {
	p := &randomProgram{seed: seed, ranks: ranks}
	d := &randomDraw{Rand: rand.New(rand.NewPCG(seed, 0)), p: p, left: 8 * randomMaxBytes}
	d.place()
	d.options()
	members := make([]int, p.topology.Size())
	for r := range members {
		members[r] = r
	}
	d.comm(-1, 0, members)
	for i := 0; i < len(p.comms); i++ { // which makes further ones
		d.fill(p.comms[i])
	}
	if faults {
		p.fault = drawFault(p)
	}
	return p
}

func (d *randomDraw) chance(one int) bool { return d.IntN(one) == 0 }

// place draws ranks on nodes, in any order, with domains and sites or without.
func (d *randomDraw) place() {
	n := 1 + d.IntN(randomMaxRanks)
	nodes, depth := 1+d.IntN(min(4, n)), 2+max(0, d.IntN(6)-3)
	for r := range n {
		node := d.IntN(nodes)
		if d.chance(3) {
			node = r * nodes / n
		}
		at := fmt.Sprint("n", node)
		numa, site := fmt.Sprint(d.IntN(2)), fmt.Sprint("site", node/2)
		d.p.paths = append(d.p.paths, [][]string{2: {at}, 3: {numa, at}, 4: {numa, at, site}}[depth])
	}
	var err error
	if d.p.topology, err = levels.Named(levels.Standard(depth), d.p.paths); err != nil {
		panic(err)
	}
}

func (d *randomDraw) options() {
	p := d.p
	p.noPeerReads, p.slow, d.fine = d.chance(3), d.chance(6), d.chance(4)
	switch d.IntN(6) {
	case 0:
		p.deterministic = true
	case 1, 2, 3:
		p.plan = d.plans()
	}
	switch d.IntN(4) {
	case 0, 1: // prices decide, where nothing is forced
		p.machine, p.plan, d.fine, d.least = drawMachine(d.Rand), "", false, 13
	case 2:
		p.measured = true
	}
}

// plans forces plans on most collectives.
func (d *randomDraw) plans() (text string) {
	for _, coll := range tasks.Requestable() {
		if d.chance(4) {
			continue
		}
		plan := casegen.Options{Coll: coll, Topology: d.p.topology, Registry: all.Submodules()}.Draw(d).Plan
		if !d.fine {
			plan.Segment = max(plan.Segment, 4<<10<<d.IntN(8))
			for _, key := range plan.Keys() {
				if c, ok := plan.Choice(key); ok && c.Inner > 0 {
					c.Inner = max(c.Inner, 2<<10)
					plan = plan.Set(key, c)
				}
			}
		}
		text += fmt.Sprintf("%v:%v;", coll, plan)
	}
	return text
}

func (d *randomDraw) comm(parent, depth int, members []int) int {
	c := &randomComm{id: len(d.p.comms), parent: parent, depth: depth, members: members}
	d.p.comms = append(d.p.comms, c)
	return c.id
}

// fill draws what happens on a communicator.
func (d *randomDraw) fill(c *randomComm) {
	var calls []*randomOp
	for range 2 + d.IntN(10) {
		o := &randomOp{id: d.number()}
		switch k := d.IntN(20); {
		case k < 3 && c.depth < randomMaxDepth && len(d.p.comms) < randomMaxComms:
			o.kind, o.derive = deriveOp, d.derive(c)
		case k < 6 && len(calls) > 0:
			of := calls[d.IntN(len(calls))]
			o.kind, o.call, o.again = againOp, of.call, of.id
		case k == 6:
			o.kind = settleOp
		default:
			o.kind, o.call = callOp, d.request(c)
			if o.call.way == wayRuns {
				calls = append(calls, o)
			}
		}
		c.ops = append(c.ops, o)
	}
	for range d.IntN(2 + 2*c.size()) {
		d.message(c)
	}
	d.pair(c)
}

func (d *randomDraw) number() int { d.p.ops++; return d.p.ops - 1 }

func (d *randomDraw) derive(c *randomComm) *randomDerive {
	v := &randomDerive{how: "dup"}
	for i := range c.members {
		v.colors, v.keys = append(v.colors, 0), append(v.keys, i)
	}
	switch d.IntN(5) {
	case 0, 1, 2:
		v.how = "split"
		kinds := 1 + d.IntN(3)
		for i := range c.members {
			v.colors[i], v.keys[i] = d.IntN(kinds)*d.IntN(1000), d.IntN(5)-2
			if d.chance(8) {
				v.colors[i] = -1
			}
		}
	case 3:
		v.how, v.plan = "dupwith ", d.plans()
	}
	for _, color := range v.made() {
		v.children = append(v.children, d.comm(c.id, c.depth+1, v.members(c, color)))
	}
	return v
}

// made lists the colors of communicators in order.
func (v *randomDerive) made() []int {
	colors := slices.DeleteFunc(slices.Clone(v.colors), func(c int) bool { return c < 0 })
	slices.Sort(colors)
	return slices.Compact(colors)
}

// members are the ranks of the world with a color, by key and then by rank.
func (v *randomDerive) members(c *randomComm, color int) (world []int) {
	var at []int
	for i, mine := range v.colors {
		if mine == color {
			at = append(at, i)
		}
	}
	slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(v.keys[a], v.keys[b]) })
	for _, i := range at {
		world = append(world, c.members[i])
	}
	return world
}

// count draws a number of elements: mostly few. A buffer has one or more blocks of them.
func (d *randomDraw) count(elem, blocks, size int) int {
	most := []int{3, 3, 3, 20, 20, 20, 20, 300, 300, 300, 300, 300, 300, 5000, 5000, 5000, 5000, 20_000, 40_000, 300_000}[max(d.IntN(20), d.least)]
	if d.fine {
		most = min(most, 300)
	}
	if invariants.On {
		most = min(most, 5000) // the programs of all ranks are checked then
	}
	n := min(d.IntN(most+1), randomMaxBytes/16/blocks)
	if n > 5000 {
		if n*blocks*size*8 > d.left {
			return 7
		}
		d.left -= n * blocks * size * 8
	}
	return n
}

func (d *randomDraw) request(c *randomComm) *randomRequest {
	all := tasks.Requestable()
	r := &randomRequest{coll: all[d.IntN(len(all))], root: d.IntN(c.size()), way: randomWay(d.IntN(int(numWays))), runs: 1 + d.IntN(4)}
	r.elem, r.inPlace, r.shared, r.junk = d.elem(), d.Uint64(), 0, d.chance(3)
	r.inPlace &= uint64(1)<<c.size() - 1
	switch d.IntN(3) {
	case 0:
		r.inPlace = 0
	case 1:
		if d.p.machine == nil { // else some ranks work in place: prices could tell
			r.inPlace = uint64(1)<<c.size() - 1
		}
	}
	if d.chance(8) {
		r.shared = d.Uint64() & (uint64(1)<<c.size() - 1)
	}
	if r.coll.Reduces() {
		names := randomTypes[r.elem].reductions()
		r.op = names[d.IntN(len(names))]
	}
	switch r.coll {
	case tasks.Barrier:
		r.inPlace, r.shared = 0, 0
	case tasks.Bcast:
		r.inPlace, r.count = 0, d.count(r.elem, 1, c.size())
	case tasks.Allreduce, tasks.Reduce, tasks.Scan, tasks.Exscan:
		r.count = d.count(r.elem, 1, c.size())
	case tasks.Alltoall:
		r.count = d.count(r.elem, c.size(), c.size())
		if d.chance(2) {
			d.rows(r, c.size())
		}
	case tasks.Allgather, tasks.Gather, tasks.Scatter, tasks.ReduceScatter:
		r.count = d.count(r.elem, c.size(), c.size())
		if d.chance(2) {
			for range c.members {
				r.counts = append(r.counts, d.IntN(r.count+1)*min(1, d.IntN(4)))
			}
			r.count = slices.Max(r.counts)
		}
	}
	return r
}

// rows draws what each rank gives each: in place the same both ways.
func (d *randomDraw) rows(r *randomRequest, size int) {
	r.told, r.rows = r.way != wayNow && d.chance(3), make([][]int, size)
	most, largest := r.count, 0
	for from := range r.rows {
		r.rows[from] = make([]int, size)
		for to := range size {
			r.rows[from][to] = d.IntN(most+1) * min(1, d.IntN(4))
			if to < from && r.inPlace != 0 {
				r.rows[from][to] = r.rows[to][from]
			}
			largest = max(largest, r.rows[from][to])
		}
	}
	r.count = largest
}

// elem draws an element type, the common ones more often.
func (d *randomDraw) elem() int { return min(d.IntN(len(randomTypes)), d.IntN(2*len(randomTypes))) }

// leftTag is the first tag of messages that nobody receives.
const leftTag = 1000

// message puts both ends of one into the communicator's list.
func (d *randomDraw) message(c *randomComm) {
	m := &randomMessage{from: d.IntN(c.size()), to: d.IntN(c.size()), tag: []int{0, 0, 1, math.MaxInt32 - 1<<16}[d.IntN(4)], elem: d.elem(), received: true}
	m.n = d.count(m.elem, 1, 2)
	m.room, m.sendNow, m.recvNow = m.n, d.chance(2), d.chance(2)
	switch d.IntN(8) {
	case 0:
		m.room += d.IntN(100)
	case 1:
		m.room = d.IntN(m.n + 1)
	}
	id := d.number()
	insert := func(kind randomKind) {
		c.ops = slices.Insert(c.ops, d.IntN(len(c.ops)+1), &randomOp{kind: kind, id: id, msg: m})
	}
	// Who waits for a receiver that leaves must not be waited for itself.
	if c.members[m.from] < c.members[m.to] && d.chance(10) {
		m.received, m.tag, m.n, m.sendNow = false, leftTag+id, min(m.n, 8), false
		insert(sendOp)
		return
	}
	insert(sendOp)
	insert(recvOp)
}

// pair gives the messages of one channel to its receives in order: the first sent to the
// first posted. The end that comes first in the list must not wait for the other.
func (d *randomDraw) pair(c *randomComm) {
	type channel struct{ from, to, tag int }
	var sends, recvs []*randomOp
	for at, o := range c.ops {
		o.at = at
		switch {
		case o.kind == sendOp && o.msg.received:
			sends = append(sends, o)
		case o.kind == recvOp:
			recvs = append(recvs, o)
		}
	}
	ch := func(o *randomOp) channel { return channel{o.msg.from, o.msg.to, o.msg.tag} }
	for _, s := range sends {
		i := slices.IndexFunc(recvs, func(r *randomOp) bool { return ch(r) == ch(s) })
		r := recvs[i]
		recvs = slices.Delete(recvs, i, i+1)
		m := s.msg
		r.msg, r.id, m.sendAt, m.recvAt = m, s.id, s.at, r.at
		m.truncated = m.room < m.n
		if m.sendAt < m.recvAt {
			m.sendNow = false
		} else {
			m.recvNow = false
		}
	}
}
