package price

import (
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// share is a task of a node's ranks, of whom one speaks with each of the others.
type share struct {
	*link
	ranks float64
	n     float64 // bytes between the one and another
	sends bool    // in messages, else others read what is offered
	reads bool    // they read it where it lies
}

// newShare returns nil for what is no such submodule.
func newShare(l *link, c tasks.Choice, ranks int, n float64) *share {
	s := &share{link: l, ranks: float64(ranks), n: n}
	switch {
	case c.Submodule == submodules.SM && c.Algorithm == submodules.Rings:
		s.sends = true
	case c.Submodule == submodules.SM && (c.Algorithm == "" || c.Algorithm == submodules.Slots):
		s.sends = n <= submodules.InlineMax
	case c.Submodule == submodules.Solo && (c.Algorithm == "" || c.Algorithm == submodules.Linear):
		s.reads = true
	default:
		return nil
	}
	return s
}

// word returns what it takes to tell another rank something, of both processors.
func (s *share) word() Terms {
	return Terms{Latency: s.Latency, Processor: 2*s.step + s.Send + s.Recv}
}

// offer returns what it takes to make n bytes readable, and take what it takes to read
// them, with so many others at the same time.
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

// outward is a bcast or, of parts, a scatter.
func (s *share) outward(parts bool) (st stage) {
	others := s.ranks - 1
	if s.sends {
		each := s.step + s.Send + s.SendByte*s.n
		st.first = Terms{Latency: s.Latency, Processor: others*each + s.step + s.Recv + s.RecvByte*s.n}
		st.alike(load{busy: Terms{Processor: others * each}})
	} else {
		offered := s.offer()
		if parts {
			offered *= others
		}
		take := s.take(s.copy, others)
		st.first = s.word().plus(Terms{Processor: (others - 1) * (s.step + s.Send), Work: offered + take})
		st.alike(load{busy: later(Terms{Processor: others * (2*s.step + s.Send + s.Recv), Work: offered}, work(take))})
	}
	st.total, st.lag = others*st.root.busy.sum(), st.first.sum()
	return st
}

// inward is a reduce or, of parts, a gather.
func (s *share) inward(combines bool) (st stage) {
	others := s.ranks - 1
	per := s.copy
	if combines {
		per = s.reduce
	}
	each := s.step + per*s.n
	if s.n == 0 {
		each = 0
	}
	if s.sends {
		st.first = Terms{Latency: s.Latency, Processor: s.step + s.Send + s.SendByte*s.n + others*(s.step+s.Recv), Work: others * each}
		if !combines {
			st.first.Work = 0 // it arrives where it is to be
		}
		st.alike(load{busy: Terms{Processor: others * (s.step + s.Recv), Work: st.first.Work}})
	} else {
		if s.reads {
			each += s.touch + s.peer*s.n
		}
		st.first = s.word().plus(Terms{Processor: others * (2*s.step + s.Send + s.Recv), Work: s.offer() + others*each})
		st.alike(load{busy: Terms{Processor: others * (2*s.step + s.Send + s.Recv), Work: others * each}})
	}
	st.total, st.lag = st.root.busy.sum()+others*s.offer(), st.first.sum()
	return st
}

// manyRanks is of how many ranks each holds up the others for as long as it combines what has
// been sent, as simulations have it.
const manyRanks = 16

// kept is how many times as long the node's memory takes as for combining alone where short
// pieces come before they are expected, and queued how many more for large ones in a node of
// many ranks, of whom each combines in the order of the ranks, as simulations have it.
const (
	kept   = 6
	queued = 1.5
)

// shared is an allgather or, combining, a reduce-scatter of n bytes in all. All ranks use the
// node's memory at the same time.
func (s *share) shared(combines bool) (st stage) {
	others := s.ranks - 1
	carried := s.memory * others * s.n // once all pieces that go to another rank
	s.n /= s.ranks
	per := s.copy
	if combines {
		per = s.reduce
	}
	st.first = s.word()
	later := 0.0 // what memory takes for a further segment
	if s.sends {
		if !combines && s.n <= s.eager {
			st.early = kept * carried
		}
		st.first.Processor += others * (2*s.step + s.Send + s.Recv + (s.SendByte+s.RecvByte)*s.n)
		if combines {
			own := others * s.combines(s.n)
			switch {
			case s.n <= s.eager && s.ranks > manyRanks:
				st.first.Work = own * s.ranks * s.ranks / manyRanks
			case s.n <= s.eager:
				st.first.Work, later = max(own, 3*carried), kept*3*carried
			default:
				st.first.Work = max(own, 3*carried*max(1, 1+queued-7/s.ranks))
			}
		}
	} else {
		offers := 1.0
		if combines {
			offers = others
		}
		st.first.Processor += others * 2 * (2*s.step + s.Send + s.Recv)
		st.first.Work = offers*s.offer() + others*s.take(per, s.ranks)
		if combines {
			later = 5 * carried // copied, then combined
			if s.reads {
				later = 3 * carried
			}
			st.first.Work = max(st.first.Work, later-st.first.Processor)
		}
	}
	busy := st.first
	busy.Latency, busy.Work = 0, max(busy.Work, later)
	st.alike(load{busy: busy})
	st.total, st.lag = s.ranks*st.root.busy.sum(), st.first.sum()
	return st
}
