package nbc

import (
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// bruckAlltoall: a block has to go some places ahead. Written in digits of a radix, 2 unless the
// plan says another, round k carries all blocks by their k-th digit: those of one digit in one
// message. So there are few rounds of radix−1 messages from each rank, and bytes travel several
// times.
//
//	n = 5     rank 0 sends blocks for ranks so many places ahead
//	round 0   1 3 to rank 1
//	round 1   2 3 to rank 2
//	round 2   4 to rank 4
func bruckAlltoall(r *rounds, c *submodules.Call) {
	r.open = append(r.open, c.KeepOwn(r.e, r.gate)...)
	n := len(c.Group.Ranks)
	at := make([][]tasks.Span, n) // the blocks that go so many places ahead: first in the caller's memory
	for ahead := range at {
		at[ahead] = c.Out[c.Member(c.Me+ahead)]
	}
	radix := max(2, c.N)
	for step := 1; step < n; step *= radix {
		bruckRound(r, c, at, step, radix)
	}
	for ahead := 1; ahead < n; ahead++ { // it has come from there
		spread(r, at[ahead], c.In[c.Member(c.Me-ahead)])
	}
	r.end()
}

// bruckRound carries blocks by the digit of their way worth step places.
func bruckRound(r *rounds, c *submodules.Call, at [][]tasks.Span, step, radix int) {
	type message struct {
		places     int
		goes, come tasks.Span
		blocks     []int
	}
	var all []message
	for digit := 1; digit < radix && digit*step < len(at); digit++ {
		m, bytes := message{places: digit * step}, int64(0)
		for ahead := range at {
			if ahead/step%radix == digit {
				m.blocks = append(m.blocks, ahead)
				bytes += tasks.TotalLen(at[ahead])
			}
		}
		m.goes, m.come = r.e.Scratch(bytes), r.e.Scratch(bytes)
		var from []tasks.Span
		for _, ahead := range m.blocks {
			from = append(from, at[ahead]...)
		}
		spread(r, from, []tasks.Span{m.goes})
		all = append(all, m)
	}
	r.end()
	for _, m := range all {
		if m.goes.Len > 0 {
			r.send(c.Group.Ranks[c.Member(c.Me+m.places)], m.goes)
			r.recv(c.Group.Ranks[c.Member(c.Me-m.places)], m.come)
		}
	}
	r.end()
	for _, m := range all {
		off := int64(0)
		for _, ahead := range m.blocks {
			n := tasks.TotalLen(at[ahead])
			at[ahead] = []tasks.Span{m.come.Cut(off, n)}
			off += n
		}
	}
}

// spread adds copying some spans, one after the other, to others of as many bytes.
func spread(r *rounds, from, to []tasks.Span) {
	for len(from) > 0 && len(to) > 0 {
		n := min(from[0].Len, to[0].Len)
		if n > 0 {
			r.copy(to[0].Cut(0, n), from[0].Cut(0, n))
		}
		from, to = dropFront(from, n), dropFront(to, n)
	}
}

// dropFront leaves out the first n bytes of spans, all of them in the first one.
func dropFront(spans []tasks.Span, n int64) []tasks.Span {
	if spans[0].Len == n {
		return spans[1:]
	}
	return append([]tasks.Span{spans[0].Cut(n, spans[0].Len-n)}, spans[1:]...)
}
