package price

import (
	"github.com/tierflow/tierflow/executor/flow"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// share is a task of a node's ranks. One speaks with each of the others.
type share struct {
	*group
	others float64 // ranks beside the one
	n      float64 // bytes between the one and another
	posts  bool    // in messages, else the others read an offer
	reads  bool    // they read it where it lies
}

// newShare returns the share of messages of n bytes; nil for another way.
func newShare(g *group, w *way, n float64) *share {
	if w.hand == submodules.ByLink || w.Schedule != submodules.StarTree && w.Schedule != submodules.AllAtOnce {
		return nil
	}
	return &share{
		group: g, others: float64(g.size - 1), n: n, reads: w.hand == submodules.Read,
		posts: w.hand == submodules.Posted || w.hand == submodules.Slotted && n <= submodules.InlineMax,
	}
}

// stage returns that of an operation.
func (s *share) stage(op tasks.Collective) (stage, bool) {
	switch op {
	case tasks.Bcast, tasks.Scatter:
		return s.giveAll(op == tasks.Scatter), true
	case tasks.Reduce, tasks.Gather:
		return s.takeAll(op == tasks.Reduce), true
	case tasks.Allgather, tasks.ReduceScatter:
		return s.shareAll(op == tasks.ReduceScatter), true
	}
	return stage{}, false
}

// word returns what it takes to tell another rank something, of both processors.
func (s *share) word() Terms {
	return Terms{Latency: s.Latency, Processor: float64(2*s.step) + s.Send + s.Recv}
}

// offerTime returns the time of making n bytes readable. readTime returns the time of reading them
// while so many others do.
func (s *share) offerTime() float64 {
	if s.reads {
		return s.step
	}
	return s.copyTime(s.n)
}

func (s *share) readTime(per, others float64) float64 {
	t := s.step + float64(per*s.n)
	if s.reads {
		t += s.touch + float64(s.peer*s.n)
	}
	return max(t, 2*s.memory*s.n*others)
}

// postedPasses returns how often a posted byte passes the node's memory: large messages are copied.
func (s *share) postedPasses() float64 {
	if s.n > s.eager {
		return 2
	}
	return 0
}

// giveAll is a bcast or, of parts, a scatter.
func (s *share) giveAll(parts bool) stage {
	if s.posts {
		each := s.step + s.Send + float64(max(s.SendByte, s.postedPasses()*s.memory)*s.n)
		first := Terms{Latency: s.Latency, Processor: float64(s.others*each) + s.step + s.Recv + float64(s.RecvByte*s.n)}
		return stageOfEqual(first, load{busy: Terms{Processor: s.others * each}}, s.others)
	}
	offered, word := s.offerTime(), s.word()
	if parts {
		offered = float64(offered * s.others)
	}
	read := s.readTime(s.copy, s.others)
	first := word.plus(Terms{Processor: (s.others - 1) * (s.step + s.Send), Work: offered + read})
	return stageOfEqual(first, load{busy: later(Terms{Processor: s.others * word.Processor, Work: offered}, work(read))}, s.others)
}

// takeAll is a reduce or, of parts, a gather.
func (s *share) takeAll(combines bool) (st stage) {
	each, carried := 0.0, float64(s.postedPasses()*s.memory*s.n*s.others)
	switch {
	case combines:
		each, carried = s.combineTime(s.n), carried+float64(3*s.memory*s.n*s.others)
	case s.n > 0 && !s.posts: // a posted part arrives where it is to be
		each = s.copyTime(s.n)
	}
	if s.posts {
		busy := Terms{Processor: s.others * (s.step + s.Recv), Work: max(s.others*each, carried)}
		first := Terms{Latency: s.Latency, Processor: s.step + s.Send + float64(s.SendByte*s.n) + busy.Processor, Work: busy.Work}
		st = stageOfEqual(first, load{busy: busy}, 1)
	} else {
		if s.reads {
			each += s.touch + float64(s.peer*s.n)
		}
		word := s.word()
		first := word.plus(Terms{Processor: s.others * word.Processor, Work: s.offerTime() + float64(s.others*each)})
		st = stageOfEqual(first, load{busy: Terms{Processor: s.others * word.Processor, Work: s.others * each}}, 1)
	}
	st.total += float64(s.others * s.offerTime())
	return st
}

// shareAll is an allgather or, combining, a reduce-scatter of n bytes in all. All ranks use the
// node's memory at the same time: a copy passes it twice, and a combination three times.
func (s *share) shareAll(combines bool) stage {
	all, first := s.n*float64(s.size), s.word()
	word, per, passes := first.Processor, s.copy, 2.0
	switch {
	case s.posts:
		passes = s.postedPasses()
	case combines && s.reads: // it lies where it is read
		passes = 0
	}
	offers := 1.0
	if combines {
		per, passes, offers = s.reduce, passes+3, s.others
	}
	if s.posts {
		first.Processor += float64(s.others * (word + float64((s.SendByte+s.RecvByte)*s.n)))
		if combines {
			first.Work = s.others * s.combineTime(s.n)
		}
	} else {
		first.Processor += float64(s.others * 2 * word)
		first.Work = float64(offers*s.offerTime()) + float64(s.others*s.readTime(per, float64(s.size)))
	}
	kept := s.keptMessages()
	first.Work += float64(kept * s.keepTime())
	carried := (float64(passes*s.others) + float64(keepPasses*kept)) * s.memory * all // by the ranks together, which handle messages meanwhile
	first.Work = max(first.Work, carried-first.Processor)
	busy := first
	busy.Latency = 0
	return stageOfEqual(first, load{busy: busy}, float64(s.size))
}

// swapAll is an alltoall inside a node of messages of so many blocks of n bytes. Several blocks are
// packed and placed, by all ranks at the same time.
func (s *share) swapAll(blocks, n float64) stage {
	own, word := work(blocks*s.copyTime(n)), s.word()
	each := Terms{Processor: s.sendTime(s.n) + s.recvTime(s.n)}
	if !s.posts {
		each = Terms{Processor: word.Processor, Work: s.offerTime() + s.readTime(s.copy, float64(s.size))}
	}
	if blocks > 1 {
		each.Work = max(each.Work+float64(2*blocks*s.copyTime(n)), 4*s.memory*s.n*float64(s.size))
	}
	kept := s.keptMessages()
	own = own.plus(work(max(kept*s.keepTime(), float64(keepPasses*kept*s.memory*s.n*float64(s.size))-float64(s.others*each.Processor))))
	first := word.plus(each.times(s.others)).plus(own)
	return stageOfEqual(first, load{busy: each.times(s.others).plus(own)}, float64(s.size))
}

// keptMessages returns how many messages come to a rank before it is ready for them, at most, if all ranks send to
// all. A rank looks for messages every [flow.Burst] steps: sends first, then receives. At its first look it is ready for
// as many as the steps after its sends, and those of all others may be there. Long messages wait for
// credit.
func (s *share) keptMessages() float64 {
	if !s.posts || s.n > s.eager || s.n == 0 {
		return 0
	}
	ready := max(0, flow.Burst-s.others)
	return max(0, s.others-ready)
}

// keepPasses is how often a byte of a kept message passes the node's memory: it is copied to where it is kept, and from
// there.
const keepPasses = 4

// keepTime returns the time of both copies of a kept message.
func (s *share) keepTime() float64 { return 2 * max(s.copy, 2*s.memory) * s.n }
