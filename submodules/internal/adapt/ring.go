package adapt

import (
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// circle is one rank's place in a ring: it hears the rank before it and speaks to the
// one behind it. Rings go piece by piece: the same piece of all parts goes all the
// way round before the next one starts. So sends and waits never form a circle.
type circle struct {
	e   *submodules.Emitter
	c   *submodules.Call
	in  inlet
	out outlet
}

func newCircle(e *submodules.Emitter, c *submodules.Call) *circle {
	o := &circle{e: e, c: c}
	o.in.from, o.out.to = c.Group.Ranks[c.Member(c.Me-1)], c.Group.Ranks[c.Member(c.Me+1)]
	return o
}

// ringAllgather: a piece from the rank before goes on to the next as soon as it is there.
//
//	time →   0     1     2     3
//	part me  send
//	me-1     recv  send
//	me-2           recv  send
//	me-3                 recv
func ringAllgather(e *submodules.Emitter, c *submodules.Call) {
	c.Keep(e)
	if len(c.Group.Ranks) == 1 {
		return
	}
	o := newCircle(e, c)
	for p := range pieces(c.Parts) {
		if p < len(c.Held) {
			o.out.send(e, c.Held[p], submodules.None)
		}
		o.pass(c.Parts, p, nil)
	}
}

// pass gives everyone piece p of all parts: this rank's own has been sent. Before a
// part is overwritten here, the step in read has to be over.
func (o *circle) pass(parts [][]tasks.Span, p int, read []dag.ID) {
	n := len(o.c.Group.Ranks)
	for i := 1; i < n; i++ {
		from := o.c.Member(o.c.Me - i)
		if p >= len(parts[from]) {
			continue
		}
		after := submodules.None
		if read != nil {
			after = read[from]
		}
		got := o.in.recv(o.e, parts[from][p], after)
		o.in.noteUse(got)
		o.e.Ready(got)
		if i < n-1 {
			o.out.send(o.e, parts[from][p], got)
		}
	}
}

// ringReduceScatter: each part goes once around, from the rank behind its own to
// its own, and all add to it.
//
//	n = 3    rank 0         rank 1         rank 2
//	time 0   sends part 2   sends part 0   sends part 1
//	     1   adds to 1      adds to 2      adds to 0     and sends it on
//	     2   adds to 0      adds to 1      adds to 2     its own, which is complete
func ringReduceScatter(e *submodules.Emitter, c *submodules.Call) {
	if c.Alone(e) {
		return
	}
	o := newCircle(e, c)
	room := largest(c.Parts)
	for p := range pieces(c.Parts) {
		sum, _ := o.sum(c.Parts, c.Held, p, room)
		e.Ready(sum)
	}
}

// sum sends piece p of all parts around. After the step done this rank's own is complete in
// held; read are the steps that read its other parts.
func (o *circle) sum(parts [][]tasks.Span, held []tasks.Span, p int, room int64) (done dag.ID, read []dag.ID) {
	n := len(o.c.Group.Ranks)
	read = make([]dag.ID, n)
	done = submodules.None
	for i := 1; i <= n; i++ {
		from := o.c.Member(o.c.Me - i)
		if p >= len(parts[from]) {
			read[from] = submodules.None
			continue
		}
		own := parts[from][p]
		if i == 1 {
			read[from] = o.out.send(o.e, own, submodules.None)
			continue
		}
		buf := o.in.room(o.e, room).Cut(0, own.Len)
		got := o.in.recv(o.e, buf, submodules.None)
		if i == n {
			done = o.e.Reduce(held[p], buf, own, got)
			o.in.noteUse(done)
			read[from] = done
			continue
		}
		read[from] = o.e.Reduce(buf, buf, own, got)
		o.in.noteUse(o.out.send(o.e, buf, read[from]))
	}
	return done, read
}

// ringAllreduce is a reduce-scatter and an allgather around the ring, of as many
// shards as there are ranks; a piece goes on to the second part without waiting
// for others.
func ringAllreduce(e *submodules.Emitter, c *submodules.Call) {
	if c.Alone(e) {
		return
	}
	if c.Dst.Len == 0 {
		laps(e, c)
		return
	}
	o := newCircle(e, c)
	src, dst := c.Shards(c.Src), c.Shards(c.Dst)
	room := largest(src)
	for p := range pieces(src) {
		sum, read := o.sum(src, dst[c.Me], p, room)
		if sum != submodules.None {
			o.out.send(e, dst[c.Me][p], sum)
			e.Ready(sum)
		}
		o.pass(dst, p, read)
	}
}

// laps sends a message without bytes around the ring, from the first rank, twice: after the
// first lap the first rank knows that all have come, and the second one tells them.
//
//	n = 3   lap 1   0→1 1→2 2→0
//	        lap 2   0→1 1→2
func laps(e *submodules.Emitter, c *submodules.Call) {
	next, last := c.Group.Ranks[c.Member(c.Me+1)], c.Group.Ranks[c.Member(c.Me-1)]
	told := submodules.None
	if c.Me != 0 {
		told = e.Recv(last, c.Dst)
	}
	told = e.Recv(last, c.Dst, e.Send(next, c.Src, told))
	if !c.IsLast() {
		e.Send(next, c.Dst, told)
	}
}

// pieces is how many the longest part has.
func pieces(parts [][]tasks.Span) (n int) {
	for _, part := range parts {
		n = max(n, len(part))
	}
	return n
}

// largest is the bytes of the longest piece.
func largest(parts [][]tasks.Span) (n int64) {
	for _, part := range parts {
		for _, s := range part {
			n = max(n, s.Len)
		}
	}
	return n
}
