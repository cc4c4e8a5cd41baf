package flow_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/executor/flow"
)

// kind is what a message of the model is.
type kind string

const (
	eager  kind = "eager"  // a payload without credit
	direct kind = "direct" // a payload against credit
	want   kind = "want"   // asks for credit
	offer  kind = "offer"  // of a point-to-point payload: asks for credit
	credit kind = "credit"
	giving kind = "return" // gives back budget, nothing else
)

// letter is a message of the model on its way.
type letter struct {
	kind   kind
	of     *send // nil in one that only gives back
	refund int32
}

// send is a payload on its way from a side to the other one, with what both know of it.
type send struct {
	number, edge int
	size         int64
	tagged       bool // point-to-point
	waits        bool // for credit or budget
	credited     bool
	gone         bool

	ready   bool // its recv
	asked   bool // for credit
	arrived bool // kept, or taken if it is ready
	over    bool // taken or dropped
	broken  bool // its communicator: who still hears of it drops it
}

// side is a rank of the model, as an engine uses its Pair.
type side struct {
	name  string
	pair  flow.Pair
	lead  flow.Lead
	out   []letter // on their way to the other side
	sends []*send  // in order; the other side finds its recvs here
}

// model is two ranks, or one that sends to itself, with the messages between them. It
// writes down what happens.
type model struct {
	limits   flow.Limits
	a, b     *side
	far      bool
	limit    int64
	numbered int
	log      strings.Builder
	forged   bool   // nothing adds up any more
	problem  string // the first broken promise
}

func newModel(limits flow.Limits, far, self bool) *model {
	m := &model{limits: limits, far: far, limit: limits.NearBudget}
	if far {
		m.limit = limits.FarBudget
	}
	m.a = &side{name: "a", pair: flow.NewPair(m.limit)}
	m.b = m.a
	if !self {
		m.b = &side{name: "b", pair: flow.NewPair(m.limit)}
	}
	return m
}

func (m *model) say(format string, args ...any) { fmt.Fprintf(&m.log, format+"\n", args...) }

func (m *model) other(s *side) *side {
	if s == m.a {
		return m.b
	}
	return m.a
}

// post sends a letter, with what is owed.
func (m *model) post(s *side, k kind, of *send) {
	l := letter{k, of, s.pair.Settle()}
	s.out = append(s.out, l)
	if k == eager {
		m.say("%s says %v; has charged %d, budget %d", s.name, l, of.size+flow.Overhead, s.pair.Budget())
		return
	}
	m.say("%s says %v", s.name, l)
}

// String is like eager #1 100 B, gives back 164.
func (l letter) String() string {
	text := string(l.kind)
	if l.of != nil {
		text += fmt.Sprintf(" #%d %d B", l.of.number, l.of.size)
	}
	if l.refund != 0 {
		text += fmt.Sprintf(", gives back %d", l.refund)
	}
	return text
}

// send begins a step's message, or a point-to-point one.
func (m *model) send(s *side, size int64, tagged bool) {
	m.numbered++
	one := &send{number: m.numbered, edge: len(s.sends), size: size, tagged: tagged}
	s.sends = append(s.sends, one)
	if !tagged {
		m.try(s, one)
		return
	}
	small := m.limits.EagerMax
	if m.far {
		small = m.limits.FarMax()
	}
	if one.gone = size <= small && s.pair.Charge(size); one.gone {
		m.post(s, eager, one)
		return
	}
	one.waits = true
	m.post(s, offer, one)
}

func (m *model) isEager(s *side, one *send) bool {
	return one.size <= m.limits.EagerMax || s.lead.CanSend(int32(one.edge))
}

// try moves a step's message as far as it can.
func (m *model) try(s *side, one *send) {
	switch way := s.pair.Choose(one.size, one.credited, m.isEager(s, one)); way {
	case flow.Direct:
		one.gone, one.waits = true, false
		m.post(s, direct, one)
	case flow.Eager:
		one.gone, one.waits = true, false
		m.post(s, eager, one)
	case flow.Ask:
		if !one.waits {
			m.post(s, want, one)
		}
		fallthrough
	default:
		one.waits = true
		m.say("%s keeps #%d %d B: %v", s.name, one.number, one.size, way)
	}
}

// receive makes a side's recv of a message ready.
func (m *model) receive(s *side, one *send) {
	if one.broken {
		return
	}
	one.ready = true
	switch from := m.other(s); {
	case one.arrived:
		m.consume(s, one, "takes")
	case one.asked, !one.tagged && !m.isEager(from, one):
		m.post(s, credit, one)
	default:
		m.say("%s waits for #%d", s.name, one.number)
	}
}

// consume lets go of a message that was charged.
func (m *model) consume(s *side, one *send, how string) {
	one.over = true
	due := s.pair.Consume(one.size)
	m.say("%s %s #%d, owes %d", s.name, how, one.number, s.pair.Owed())
	if due {
		m.post(s, giving, nil)
	}
}

// hear takes the first letter to a side.
func (m *model) hear(s *side) {
	from := m.other(s)
	l := from.out[0]
	from.out = from.out[1:]
	if !s.pair.Refund(int64(l.refund)) {
		m.say("%s accuses %s: %v was not sent", s.name, from.name, l.refund)
		return
	}
	m.say("%s hears %v", s.name, l)
	if l.refund > 0 {
		m.resume(s)
	}
	one := l.of
	if one != nil && one.broken {
		if l.kind == eager {
			m.consume(s, one, "drops")
		}
		return
	}
	switch l.kind {
	case eager:
		if one.arrived = true; one.ready {
			m.consume(s, one, "takes")
		} else {
			m.say("%s keeps #%d", s.name, one.number)
		}
	case direct:
		one.over = true
	case want, offer:
		if one.asked = true; one.ready && !one.arrived {
			m.post(s, credit, one)
		}
	case credit:
		if one.gone {
			m.say("%s ignores it: #%d has left", s.name, one.number)
		} else if one.credited = true; one.tagged {
			one.gone = true
			m.post(s, direct, one)
		} else {
			m.try(s, one)
		}
	}
}

// resume sends what waits for budget.
func (m *model) resume(s *side) {
	for _, one := range s.sends {
		if one.waits && !one.broken && !one.tagged && !one.credited && m.isEager(s, one) && s.pair.Charge(one.size) {
			one.gone, one.waits = true, false
			m.post(s, eager, one)
		}
	}
}

// abandon is a failure: each side drops what it keeps, and what has not left against
// credit leaves only its refund behind.
func (m *model) abandon() {
	for _, s := range slices.Compact([]*side{m.a, m.b}) {
		refund := int32(0)
		s.out = slices.DeleteFunc(s.out, func(l letter) bool {
			if l.kind == direct {
				refund += l.refund
			}
			return l.kind == direct
		})
		if refund > 0 {
			l := letter{giving, nil, refund}
			s.out = append(s.out, l)
			m.say("%s says %v, for what it drops", s.name, l)
		}
		for _, one := range m.other(s).sends {
			one.broken = true
			if one.arrived && !one.over {
				m.consume(s, one, "drops")
			}
		}
	}
}

// check adds up where the budget of each direction is.
func (m *model) check() string {
	var text []string
	for _, s := range slices.Compact([]*side{m.a, m.b}) {
		other, away, kept, back := m.other(s), int64(0), int64(0), int64(0)
		for _, l := range s.out {
			if l.kind == eager {
				away += l.of.size + flow.Overhead
			}
		}
		for _, one := range s.sends {
			if one.arrived && !one.over {
				kept += one.size + flow.Overhead
			}
		}
		for _, l := range other.out {
			back += int64(l.refund)
		}
		text = append(text, fmt.Sprintf("%s: budget %d, on its way %d, kept %d, owed %d, on its way back %d",
			s.name, s.pair.Budget(), away, kept, other.pair.Owed(), back))
		sum := s.pair.Budget() + away + kept + other.pair.Owed() + back
		if m.problem == "" && !m.forged && (sum != m.limit || s.pair.Budget() < 0 || s.pair.Owed() > m.limit/2) {
			m.problem = fmt.Sprintf("%s add up to %d, want %d", text[len(text)-1], sum, m.limit)
		}
	}
	return strings.Join(text, "\n")
}
