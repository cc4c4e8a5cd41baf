package flow_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tierflow/tierflow/executor/flow"
)

func TestCharge(t *testing.T) {
	for _, test := range []struct {
		limit, n int64
		want     bool
	}{
		{0, 0, false},
		{-5, 0, false},
		{63, 0, false},
		{64, 0, true},
		{64, 1, false},
		{164, 100, true},
		{163, 100, false},
	} {
		p := flow.NewPair(test.limit)
		left := max(0, test.limit)
		if test.want {
			left -= test.n + flow.Overhead
		}
		if got := p.Charge(test.n); got != test.want || p.Budget() != left {
			t.Errorf("of %d charge %d: %v, %d left; want %v, %d", test.limit, test.n, got, p.Budget(), test.want, left)
		}
	}
}

func TestRefund(t *testing.T) {
	for _, test := range []struct {
		bytes, budget int64
		want          bool
	}{
		{0, 36, true},
		{1, 37, true},
		{164, 200, true},
		{165, 200, false}, // more than was out
		{1 << 62, 200, false},
		{-1, 36, false},
	} {
		p := flow.NewPair(200)
		p.Charge(100)
		if got := p.Refund(test.bytes); got != test.want || p.Budget() != test.budget {
			t.Errorf("refund %d: %v, budget %d; want %v, %d", test.bytes, got, p.Budget(), test.want, test.budget)
		}
	}
}

func TestConsume(t *testing.T) {
	p := flow.NewPair(400)
	if p.Consume(100) || p.Owed() != 164 {
		t.Errorf("less than half is due, or %d is owed", p.Owed())
	}
	if !p.Consume(0) || p.Owed() != 228 {
		t.Errorf("half is not due, or %d is owed", p.Owed())
	}
	if got := p.Settle(); got != 228 || p.Owed() != 0 || p.Settle() != 0 {
		t.Errorf("settle %d, then owe %d", got, p.Owed())
	}
	if none := flow.NewPair(0); !none.Consume(0) {
		t.Error("without any budget it is not due at once")
	}
}

// What is kept of before Renew is not given back, and no more than that.
func TestRenew(t *testing.T) {
	p := flow.NewPair(400)
	p.Charge(100)
	p.Consume(10)
	p.Renew(64 + 100)
	if p.Budget() != 400 || p.Owed() != 0 {
		t.Errorf("budget %d, owed %d after it was renewed", p.Budget(), p.Owed())
	}
	for _, want := range []int64{0, 0, 28, 92} { // of 64 bytes each, 164 are of before
		if p.Consume(0); p.Owed() != want {
			t.Errorf("owed %d, want %d", p.Owed(), want)
		}
	}
}

func TestChoose(t *testing.T) {
	for _, test := range []struct {
		n               int64
		credited, eager bool
		want            flow.Way
		name            string
		charged         int64
	}{
		{100, true, false, flow.Direct, "direct", 0},
		{100, true, true, flow.Direct, "direct", 0},
		{100, false, true, flow.Eager, "eager", 164},
		{200, false, true, flow.Ask, "ask", 0},
		{100, false, false, flow.Wait, "wait", 0},
	} {
		p := flow.NewPair(200)
		got := p.Choose(test.n, test.credited, test.eager)
		if got != test.want || got.String() != test.name || p.Budget() != 200-test.charged {
			t.Errorf("%+v: %v, budget %d", test, got, p.Budget())
		}
	}
	for _, w := range []flow.Way{0, 100} {
		if w.String() != "invalid" {
			t.Errorf("way %d is %v", w, w)
		}
	}
}

func TestNewLimits(t *testing.T) {
	for _, test := range []struct {
		eager, budget int64
		want          flow.Limits
		far           int64
	}{
		{0, 0, flow.Limits{EagerMax: 4096, Lead: 65536, NearBudget: 65536, FarBudget: 262144}, 65536},
		{4096, 0, flow.Limits{EagerMax: 4096, NearBudget: 65536, FarBudget: 262144}, 4096},
		{0, 65536, flow.Limits{EagerMax: 4096, Lead: 65472, NearBudget: 65536, FarBudget: 65536}, 65472},
		{0, 10, flow.Limits{EagerMax: 4096, NearBudget: 10, FarBudget: 10}, 4096},
		{-1, 1 << 40, flow.Limits{EagerMax: -1, NearBudget: 1 << 30, FarBudget: 1 << 30}, 0},
	} {
		got := flow.NewLimits(test.eager, test.budget)
		if got != test.want || got.FarMax() != test.far {
			t.Errorf("limits of %d and %d: %+v, far %d; want %+v, %d", test.eager, test.budget, got, got.FarMax(), test.want, test.far)
		}
	}
}

func TestCountLead(t *testing.T) {
	limits := flow.NewLimits(0, 0)
	for _, test := range []struct {
		sizes []int64
		want  int32
	}{
		{nil, 0},
		{[]int64{65536}, 1},
		{[]int64{65537}, 0},
		{[]int64{0, 65536, 0, 1}, 3},
		{[]int64{65537, 1}, 0}, // only the first ones
	} {
		got := limits.CountLead(slices.Values(test.sizes))
		lead := flow.Lead{Out: got, In: 1}
		if got != test.want || lead.CanSend(got) || got > 0 && !lead.CanSend(got-1) || !lead.CanReceive(0) || lead.CanReceive(1) {
			t.Errorf("of %v %d lead, want %d", test.sizes, got, test.want)
		}
	}
	if got := (&flow.Limits{}).CountLead(slices.Values([]int64{1})); got != 0 {
		t.Errorf("without leads %d lead", got)
	}
}

func TestAmong(t *testing.T) {
	for senders, want := range map[int]int64{0: 65536, 1: 65536, 16: 65536, 17: 61680, 1023: 1025, 1 << 30: 0} {
		if got := flow.NewLimits(0, 0).Among(senders); got.Lead != want || int64(senders)*got.Lead > flow.LeadsMax {
			t.Errorf("among %d a lead of %d bytes, want %d", senders, got.Lead, want)
		}
	}
}

// Whatever two ranks do, no byte of a budget is lost or made, and when all is consumed
// only less than half of the limit is owed.
func TestBudgetGoesInACircle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := flow.NewLimits(rapid.SampledFrom([]int64{-1, 0, 100}).Draw(t, "eager"), rapid.Int64Range(1, 2000).Draw(t, "budget"))
		m := newModel(limits, rapid.Bool().Draw(t, "far"), rapid.Bool().Draw(t, "self"))
		sides := []*side{m.a, m.b}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			s := rapid.SampledFrom(sides).Draw(t, "side")
			switch from := m.other(s); rapid.IntRange(0, 9).Draw(t, "step") {
			case 0, 1, 2:
				m.send(s, rapid.Int64Range(0, 300).Draw(t, "size"), m.a == m.b || rapid.Bool().Draw(t, "tagged"))
			case 3, 4, 5:
				if i := slices.IndexFunc(from.sends, func(one *send) bool { return !one.ready && !one.over }); i >= 0 {
					m.receive(s, from.sends[i])
				}
			case 6:
				if rapid.IntRange(0, 9).Draw(t, "fail") == 0 {
					m.abandon()
				}
			default:
				if len(from.out) > 0 {
					m.hear(s)
				}
			}
			if m.check(); m.problem != "" {
				t.Fatalf("%s\n%s", m.problem, m.log.String())
			}
		}
		settle(m)
		m.check()
		for _, s := range sides {
			if got := s.pair.Budget() + m.other(s).pair.Owed(); got != m.limit || m.other(s).pair.Owed() > m.limit/2 {
				m.problem = "something is left"
			}
			for _, one := range s.sends {
				if !one.over && one.gone && one.arrived {
					m.problem = "a message was not taken"
				}
			}
		}
		if m.problem != "" {
			t.Fatalf("%s\n%s\n%s", m.problem, m.check(), m.log.String())
		}
	})
}

// settle makes all recvs ready and hears all that is said.
func settle(m *model) {
	for _, s := range slices.Compact([]*side{m.a, m.b}) {
		for _, one := range m.other(s).sends {
			if !one.ready && !one.over {
				m.receive(s, one)
			}
		}
	}
	for len(m.a.out)+len(m.b.out) > 0 {
		for _, s := range []*side{m.a, m.b} {
			for len(m.other(s).out) > 0 {
				m.hear(s)
			}
		}
	}
}
