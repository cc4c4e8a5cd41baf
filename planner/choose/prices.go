package choose

import (
	"cmp"
	"fmt"
	"math/bits"
	"strings"
	"sync"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/price"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/plans"
	"github.com/tierflow/tierflow/planner/priced"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Machine chooses by prices on a known machine.
type Machine struct {
	*machine.Machine        // nil: it could not be measured
	Origin           string // a file's name, or the option
	Why              string // there is no machine, or it isn't kept; empty: all is well

	mu      sync.Mutex
	classes map[class]priced.Choice // on hasty numbers only
	scales  map[classScale]scaled   // of plans that tables have of other machines
}

// class stands for requests of sizes near its own, on a communicator.
type class struct {
	request tasks.Request
	forced  string
	on      *levels.Topology
}

// maxClasses bounds the known choices: beyond it all are forgotten.
const maxClasses = 1024

// classify returns r with a size in place of all near it: three bits of it count, so it is at most an
// eighth more or less. Blocks of different sizes stand for themselves.
func classify(r tasks.Request) (as tasks.Request, shared bool) {
	if r.Counts != (tasks.Counts{}) || r.Matrix != (tasks.Matrix{}) {
		return r, false
	}
	as, as.Pitch = r, 0
	if unit := int64(1) << max(0, bits.Len64(uint64(r.Count))-3); unit > 1 {
		as.Count = (r.Count + unit/2) / unit * unit
	}
	return as, true
}

var _ Chooser = (*Machine)(nil)

// Hastily begins the method of a machine's numbers if the ranks of a job have measured them when they
// joined.
const Hastily = "measured by pairs of ranks in "

// isKnown reports whether there is a machine.
func (m *Machine) isKnown() bool { return m != nil && m.Machine != nil }

// Check is an error if the machine lacks a link of t.
func (m *Machine) Check(t *levels.Topology) error {
	if !m.isKnown() {
		return nil
	}
	if _, err := price.New(m.Machine, t, tasks.Request{Coll: tasks.Barrier}, nil); err != nil {
		return fmt.Errorf("%s: %w", m.Origin, err)
	}
	return nil
}

// Choose asks for the cheapest plan with the forced words. A forced order leaves all to the rule.
func (m *Machine) Choose(q *Question) (Answer, error) {
	if q.prices == nil || q.prices.machine != m {
		p, err := m.price(q)
		if err != nil {
			return p, err
		}
		q.prices = p
	}
	return q.prices, nil
}

// price is Choose, whatever q keeps.
func (m *Machine) price(q *Question) (*Prices, error) {
	p := &Prices{machine: m, on: q.On, asked: q.Request(), as: q.Request(), registry: q.Registry, Choice: priced.Choice{Ruled: true}}
	if !m.isKnown() || q.Forced.Order != tasks.AnyOrder {
		return p, nil
	}
	as, shared := classify(q.Request())
	if !shared || m.margin() < priced.Hasty {
		var err error
		p.Choice, err = m.cheapest(q)
		return p, err
	}
	// A choice takes milliseconds, and calls of many sizes may come once each.
	p.as = as
	m.mu.Lock()
	defer m.mu.Unlock()
	key := class{as, q.Forced.String(), q.On}
	choice, known := m.classes[key]
	if !known {
		like := &Question{Asked: builtin.Ask(as, q.On), Registry: q.Registry, Links: q.Links, Forced: q.Forced}
		var err error
		if choice, err = m.cheapest(like); err != nil {
			return p, err
		}
		if m.classes == nil || len(m.classes) >= maxClasses {
			m.classes = map[class]priced.Choice{}
		}
		m.classes[key] = choice
	}
	p.Choice = choice
	return p, nil
}

// cheapest returns the choice among the rule's plan and its rivals with the forced words.
func (m *Machine) cheapest(q *Question) (priced.Choice, error) {
	ruled := q.rule().plan
	rivals := plans.Rivals(q.Asked, ruled)
	if q.isNarrowed() {
		rivals = q.constrain(rivals)
	}
	return priced.ChooseAmong(m.Machine, q.Asked, ruled, rivals, q.Registry, m.margin())
}

// Prices is the answer by prices.
type Prices struct {
	priced.Choice
	machine  *Machine
	on       *levels.Topology
	as       tasks.Request // stands for asked; often the same
	asked    tasks.Request
	registry submodules.Registry
}

// Plan returns the cheapest plan, if it is not the rule's.
func (p *Prices) Plan() (plan tasks.Plan, known bool) {
	if p.Ruled {
		return plan, false
	}
	return p.Plans[0].Plan, true
}

// Time is the simulated time of the chosen plan, or else its price.
func (p *Prices) Time() (ns float64, known bool) {
	if !p.Ruled || len(p.Plans) > 0 {
		ns = cmp.Or(p.Plans[0].Time(), p.Plans[0].Price.NS)
	} else {
		ns = p.Rule.Price.NS
	}
	return ns, ns > 0
}

// Explain says the plan's price, and the tasks by which others cost more.
func (p *Prices) Explain(text *strings.Builder) {
	if !p.machine.isKnown() {
		fmt.Fprintf(text, "  machine: not known, the built-in rule decides: %s\n", p.machine.Why)
		return
	}
	fmt.Fprintf(text, "  machine: %s, %s", p.machine.Origin, p.machine.Provenance.Method)
	if date := p.machine.Provenance.Date; date != "" {
		fmt.Fprintf(text, ", %s", date)
	}
	text.WriteByte('\n')
	for _, l := range p.machine.Links {
		fmt.Fprintf(text, "  link %c: latency %.4g µs, a byte %.3g ns, a message %.3g µs of the sender and %.3g of the receiver\n",
			l.Level, l.Latency/1e3, max(l.Byte, l.SendByte), l.Send/1e3, l.Recv/1e3)
	}
	if p.machine.Why != "" {
		fmt.Fprintf(text, "  machine: %s\n", p.machine.Why)
	}
	if p.as.Count != p.asked.Count {
		fmt.Fprintf(text, "  machine: decided as for %d elements, which stand for sizes near them\n", p.as.Count)
	}
	if len(p.Plans) == 0 {
		switch ns := p.Rule.Price.NS; {
		case p.Large:
			fmt.Fprintf(text, "  price: %.1f µs; the rule's plan is too large to be simulated, and stays: the machine was measured in a hurry\n", ns/1e3)
		case ns > 0:
			fmt.Fprintf(text, "  price: %.1f µs, no other plan has one\n", ns/1e3)
		}
		return
	}
	best := p.Plans[0]
	if best.Simulated > 0 {
		fmt.Fprintf(text, "  simulated: %.1f µs, the best of %d plans\n", best.Simulated/1e3, p.Tried)
	}
	if best.Price.NS > 0 {
		fmt.Fprintf(text, "  price: %.1f µs: %s\n", best.Price.NS/1e3, parts(&best.Price.Terms))
	}
	costs := p.costs()
	costs.explain(text, best.Plan)
	switch {
	case p.Ruled:
	case p.Rule.Time() == 0:
		fmt.Fprintf(text, "  price: the rule's plan %v has none\n", p.Rule.Plan)
	default:
		fmt.Fprintf(text, "  price: %.1f%% less than that of the rule's plan %v: %s\n", 100*p.Saved, p.Rule.Plan, costs.loss(&best, &p.Rule))
	}
	for _, o := range p.Plans[1:] {
		fmt.Fprintf(text, "  runner-up: %v: %.1f µs, %s\n", o.Plan, o.Time()/1e3, costs.loss(&best, &o))
	}
}

// margin returns by how much a plan must be cheaper than the rule's to be chosen on this machine, as a
// share of its own price.
func (m *Machine) margin() float64 {
	if strings.HasPrefix(m.Provenance.Method, Hastily) {
		return priced.Hasty
	}
	return priced.Exact
}
