package planner

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/rule"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// decision is a plan with its reasons.
type decision struct {
	plan   tasks.Plan
	forced tasks.Plan // the part that was forced
	others []string   // choices that were forced, but for other collectives
	origin string     // by whom
	why    []string   // of the rest
	advice *advice    // of a table; nil without one
	prices *bid       // of prices; nil: nobody asked for them
}

// policy is what plans are chosen by.
type policy struct {
	registry submodules.Registry
	forced   tasks.Forced
	origin   string       // where forced comes from
	table    *loadedTable // nil: none
	links    string       // between nodes, see [Options.Links]
	wish                  // machine: nil, nothing is known
}

// policy reads what the options and the environment say.
func (o *Options) policy() (p policy, err error) {
	p.registry = all.Submodules()
	if p.forced, p.origin, err = o.forced(p.registry); err == nil {
		p.table, err = o.table(p.registry)
	}
	if err == nil {
		p.wish, err = o.wish()
	}
	return p, err
}

// linksOn names the links between the nodes of t; empty: unknown.
func (o *Options) linksOn(t *levels.Topology) string {
	name := cmp.Or(o.Links, os.Getenv(LinksVariable))
	if name == "" && o.Link == nil && t.IsOneProcess() {
		return table.SharedMemory
	}
	return name
}

// settle completes p for a topology.
func (p *policy) settle(o *Options, t *levels.Topology) error {
	p.links = o.linksOn(t)
	return p.wish.on(t)
}

// decide is choose, asked once for equal requests.
func (c *Comm) decide(r tasks.Request) (*decision, error) {
	if d := c.memo.find(r); d != nil {
		return d, nil
	}
	d, err := c.choose(r, c.topology)
	if err != nil {
		return nil, err
	}
	c.memo.put(r, &d)
	return &d, nil
}

// choose chooses the plan for a request: what is forced, completed by the table, or else by
// the built-in rule. Where nothing is forced and the machine is known, prices decide in place
// of the rule.
func (p policy) choose(r tasks.Request, t *levels.Topology) (decision, error) {
	if err := r.Validate(t.Size()); err != nil {
		return decision{}, fmt.Errorf("%v: %w", r, err)
	}
	forced, others := forcedFor(p.forced, r, t, p.registry)
	base, why := rule.Choose(r, t, forced)
	d := decision{plan: forced.Over(base), forced: forced, others: others, origin: p.origin, why: why}
	if p.table != nil {
		var plan tasks.Plan
		if d.advice, plan = p.table.consult(forced, r, t, p); d.advice.chosen >= 0 {
			d.plan, d.why = plan, nil
		}
	}
	if d.advice == nil || d.advice.chosen < 0 {
		var err error
		if d.prices, err = p.machine.offer(r, t, d.plan, forced, p.registry); err != nil {
			return d, err
		}
		if d.prices != nil && !d.prices.Ruled {
			d.plan, d.why = d.prices.Offers[0].Plan, nil
		}
	}
	if err := p.registry.Check(d.plan); err != nil {
		return d, fmt.Errorf("%v: %w", r, err)
	}
	return d, nil
}

// planned is what a communicator of topology t with options o would choose, and by
// what.
func planned(r tasks.Request, t *levels.Topology, o *Options) (p policy, d decision, err error) {
	if t == nil || t.Depth() == 0 {
		return p, d, errNoTopology
	}
	if o == nil {
		o = &Options{}
	}
	if p, err = o.policy(); err != nil {
		return p, d, err
	}
	if err = p.settle(o, t); err != nil {
		return p, d, err
	}
	if p.measures {
		p.machine = &knownMachine{why: "only a communicator's ranks can measure it"}
	}
	d, err = p.choose(r, t)
	return p, d, err
}

// Decide returns the plan that creating a collective would choose for a request on a
// topology, without ranks or buffers. Ranks count as processes, unless the topology
// has them as goroutines, see [levels.Topology.OneProcess]. A forced plan may be one
// that no rank could compile: [Explain] is an error then.
func Decide(r tasks.Request, t *levels.Topology, o *Options) (tasks.Plan, error) {
	_, d, err := planned(r, t, o)
	return d.plan, err
}

// Explain returns a text: the plan chosen for this collective, by whom and why, and
// the alternatives.
func (c *Collective) Explain() string {
	c.mustBeMade()
	return c.decision.explain(c.request, c.comm.topology, c.comm.registry)
}

// Explain says what [Collective.Explain] would for a request on a topology,
// without ranks or buffers. A plan that no rank could compile is the error that
// creating the collective would return.
func Explain(r tasks.Request, t *levels.Topology, o *Options) (string, error) {
	d, err := Inspect(r, t, o)
	if err != nil {
		return "", err
	}
	return d.Text, nil
}

// Decision is all there is to know of why a plan was chosen.
type Decision struct {
	Plan     tasks.Plan
	Forced   tasks.Plan          // the part of Plan that was forced
	Registry submodules.Registry // what Plan was chosen from
	Text     string              // as [Explain] returns it
	Table    *table.Table        // that was consulted; nil: there is none
	Origin   string              // where Table is from; empty without one
	Links    string              // between nodes, see [Options.Links]; empty: unknown
	Answer   table.Answer        // of Table; without one it has no estimates
	Fallback string              // why Table did not decide; empty: it did, or there is none
}

// Inspect returns what [Explain] is made of.
func Inspect(r tasks.Request, t *levels.Topology, o *Options) (*Decision, error) {
	p, d, err := planned(r, t, o)
	if err != nil {
		return nil, err
	}
	if _, err := rule.Fits(r, t, d.plan, p.registry); err != nil {
		return nil, err
	}
	all := &Decision{Plan: d.plan, Forced: d.forced, Registry: p.registry, Links: p.links, Text: d.explain(r, t, p.registry)}
	if a := d.advice; a != nil {
		all.Table, all.Origin, all.Answer = a.from.Table, a.from.origin, a.Answer
		if a.chosen < 0 {
			all.Fallback = a.Why
		}
	}
	return all, nil
}

func (d *decision) explain(r tasks.Request, t *levels.Topology, reg submodules.Registry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v on %v\n", r, t)
	fmt.Fprintf(&b, "  plan: %v\n", d.plan)
	if f := d.forced.String(); f != "" {
		fmt.Fprintf(&b, "  forced by %s: %s\n", d.origin, f)
	}
	for _, choice := range d.others {
		fmt.Fprintf(&b, "  forced by %s: %s, but for other collectives: it does no task of %v\n", d.origin, choice, r.Coll)
	}
	for _, w := range d.why {
		fmt.Fprintf(&b, "  rule: %s\n", w)
	}
	if d.advice != nil || d.prices == nil {
		d.advice.explain(&b)
	}
	if d.prices != nil {
		d.prices.explain(t, &b)
	}
	for _, s := range tasks.ShapesOf(r.Coll) {
		if s != d.plan.Shape {
			fmt.Fprintf(&b, "  alternative: shape=%v\n", s)
		}
	}
	g, err := rule.Outline(r, t, d.plan)
	if err != nil {
		return b.String() // nobody could have compiled it
	}
	for k := range g.On.Depth() {
		for _, kind := range rule.KindsAt(g, k) {
			fmt.Fprintf(&b, "  alternative: %v= %s\n", kind, reg.Offers(kind.Op, g.On.WithinNodes(k)))
		}
	}
	return b.String()
}
