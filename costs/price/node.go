package price

import (
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// share is a task of a node's ranks, of whom one speaks with each of the others.
type share struct {
	*group
	others float64 // ranks beside the one
	n      float64 // bytes between the one and another
	posts  bool    // in messages, else s.others read what is offered
	reads  bool    // they read it where it lies
}

// newShare returns nil for another way.
func newShare(g *group, w *way, n float64) *share {
	if w.hand == submodules.ByLink || w.Schedule != submodules.StarTree && w.Schedule != submodules.AllAtOnce {
		return nil
	}
	return &share{
		group: g, others: float64(g.size - 1), n: n, reads: w.hand == submodules.Read,
		posts: w.hand == submodules.Posted || w.hand == submodules.Slotted && n <= submodules.InlineMax,
	}
}

// word returns what it takes to tell another rank something, of both processors.
func (s *share) word() Terms {
	return Terms{Latency: s.Latency, Processor: 2*s.step + s.Send + s.Recv}
}

// offer returns the time of making n bytes readable, and take that of reading them with so many others at
// once.
func (s *share) offer() float64 {
	if s.reads {
		return s.step
	}
	return s.copies(s.n)
}

func (s *share) take(per, others float64) float64 {
	t := s.step + per*s.n
	if s.reads {
		t += s.touch + s.peer*s.n
	}
	return max(t, 2*s.memory*s.n*others)
}

// stage returns that of an operation.
func (s *share) stage(op tasks.Collective) (stage, bool) {
	switch op {
	case tasks.Bcast, tasks.Scatter:
		return s.outward(op == tasks.Scatter), true
	case tasks.Reduce, tasks.Gather:
		return s.inward(op == tasks.Reduce), true
	case tasks.Allgather, tasks.ReduceScatter:
		return s.shared(op == tasks.ReduceScatter), true
	}
	return stage{}, false
}

// outward is a bcast or, of parts, a scatter.
func (s *share) outward(parts bool) (st stage) {
	if s.posts {
		each := s.step + s.Send + max(s.SendByte, s.passes()*s.memory)*s.n
		st.first = Terms{Latency: s.Latency, Processor: s.others*each + s.step + s.Recv + s.RecvByte*s.n}
		st.alike(load{busy: Terms{Processor: s.others * each}})
	} else {
		offered := s.offer()
		if parts {
			offered *= s.others
		}
		take := s.take(s.copy, s.others)
		st.first = s.word().plus(Terms{Processor: (s.others - 1) * (s.step + s.Send), Work: offered + take})
		st.alike(load{busy: later(Terms{Processor: s.others * (2*s.step + s.Send + s.Recv), Work: offered}, work(take))})
	}
	st.total, st.lag = s.others*st.root.busy.sum(), st.first.sum()
	return st
}

// inward is a reduce or, of parts, a gather.
func (s *share) inward(combines bool) (st stage) {
	each, carried := s.copies(s.n), s.passes()*s.memory*s.n*s.others
	if combines {
		each, carried = s.combines(s.n), carried+3*s.memory*s.n*s.others
	}
	if s.n == 0 {
		each = 0
	}
	if s.posts {
		st.first = Terms{Latency: s.Latency, Processor: s.step + s.Send + s.SendByte*s.n + s.others*(s.step+s.Recv), Work: s.others * each}
		if !combines {
			st.first.Work = 0 // it arrives where it is to be
		}
		st.first.Work = max(st.first.Work, carried)
		st.alike(load{busy: Terms{Processor: s.others * (s.step + s.Recv), Work: st.first.Work}})
	} else {
		if s.reads {
			each += s.touch + s.peer*s.n
		}
		st.first = s.word().plus(Terms{Processor: s.others * (2*s.step + s.Send + s.Recv), Work: s.offer() + s.others*each})
		st.alike(load{busy: Terms{Processor: s.others * (2*s.step + s.Send + s.Recv), Work: s.others * each}})
	}
	st.total, st.lag = st.root.busy.sum()+s.others*s.offer(), st.first.sum()
	return st
}

// passes returns how often a posted byte passes the node's memory: large messages are copied.
func (s *share) passes() float64 {
	if s.n > s.eager {
		return 2
	}
	return 0
}

// kept returns the time of an unexpected short message, if all ranks send to all: it is kept, then copied
// to its place, and the node's memory serves one rank after the other.
func (s *share) kept() float64 {
	if !s.posts || s.n > s.eager || s.memory == 0 || s.n == 0 {
		return 0
	}
	return float64(s.size) * (s.Recv + s.step + 4*s.memory*s.n)
}

// shared is an allgather or, combining, a reduce-scatter of n bytes in all. All ranks use the
// node's memory at the same time: a copy passes it twice, and a combination three times.
func (s *share) shared(combines bool) (st stage) {
	all := s.n
	s.n /= float64(s.size)
	per, passes := s.copy, 2.0
	if s.posts {
		passes = s.passes()
	}
	switch {
	case combines && s.posts:
		per, passes = s.reduce, passes+3
	case combines:
		per, passes = s.reduce, 3
	}
	carried := passes * s.memory * s.others * all // by the ranks together
	st.first = s.word()
	if s.posts {
		st.first.Processor += s.others * (2*s.step + s.Send + s.Recv + (s.SendByte+s.RecvByte)*s.n)
		if combines {
			st.first.Work = s.others * s.combines(s.n)
		}
	} else {
		offers := 1.0
		if combines {
			offers = s.others
		}
		st.first.Processor += s.others * 2 * (2*s.step + s.Send + s.Recv)
		st.first.Work = offers*s.offer() + s.others*s.take(per, float64(s.size))
	}
	st.first.Work = max(st.first.Work, carried)
	busy := st.first
	busy.Latency = 0
	st.alike(load{busy: busy})
	st.total, st.lag = float64(s.size)*st.root.busy.sum(), st.first.sum()
	return st
}
