package planner

import (
	"fmt"
	"strings"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// decision is a plan with its reasons.
type decision struct {
	plan   tasks.Plan
	forced tasks.Plan // the part that was forced
	origin string     // by whom
	why    []string   // of the rest
	advice *advice    // of a table; nil without one
}

// decide chooses the plan for a request: what is forced, completed by the table,
// or else by the built-in rule.
func (c *Comm) decide(r tasks.Request) (*decision, error) {
	if d := c.memo.find(r); d != nil {
		return d, nil
	}
	d, err := decide(r, c.topology, c.forced, c.origin, c.registry, c.table)
	if err != nil {
		return nil, err
	}
	c.memo.put(r, &d)
	return &d, nil
}

func decide(r tasks.Request, t *levels.Topology, f tasks.Forced, origin string, reg submodules.Registry, table *loadedTable) (decision, error) {
	if err := r.Validate(t.Size()); err != nil {
		return decision{}, fmt.Errorf("%v: %w", r, err)
	}
	forced := f.For(r.Coll)
	base, why := Rule(r, t, forced)
	d := decision{plan: forced.Over(base), forced: forced, origin: origin, why: why}
	if table != nil {
		d.consult(table, r, t, base, reg)
	}
	if err := reg.Check(d.plan); err != nil {
		return d, fmt.Errorf("%v: %w", r, err)
	}
	return d, nil
}

// Explain says what was chosen for this collective, by whom and why, and what the
// alternatives are.
func (c *Collective) Explain() string {
	return c.decision.explain(c.request, c.comm.topology, c.comm.registry)
}

// Explain says what [Collective.Explain] would for a request on a topology,
// without ranks or buffers. A plan that no rank could compile is the error that
// creating the collective would return.
func Explain(r tasks.Request, t *levels.Topology, o *Options) (string, error) {
	if o == nil {
		o = &Options{}
	}
	registry := all.Submodules()
	forced, origin, err := o.forced(registry)
	if err != nil {
		return "", err
	}
	table, err := o.table(registry)
	if err != nil {
		return "", err
	}
	d, err := decide(r, t, forced, origin, registry, table)
	if err != nil {
		return "", err
	}
	if _, err := fits(r, t, d.plan, registry); err != nil {
		return "", err
	}
	return d.explain(r, t, registry), nil
}

func (d *decision) explain(r tasks.Request, t *levels.Topology, reg submodules.Registry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v on %v\n", r, t)
	fmt.Fprintf(&b, "  plan: %v\n", d.plan)
	if f := d.forced.String(); f != "" {
		fmt.Fprintf(&b, "  forced by %s: %s\n", d.origin, f)
	}
	for _, w := range d.why {
		fmt.Fprintf(&b, "  rule: %s\n", w)
	}
	d.advice.explain(&b)
	for _, s := range tasks.ShapesOf(r.Coll) {
		if s != d.plan.Shape {
			fmt.Fprintf(&b, "  alternative: shape=%v\n", s)
		}
	}
	for k := range t.Depth() {
		shared := t.Hierarchy(0).WithinNodes(k)
		for _, op := range tasks.Operations(r.Coll, d.plan.Shape) {
			kind := tasks.Kind{Symbol: t.Level(k).Symbol, Op: op}
			fmt.Fprintf(&b, "  alternative: %v= %s\n", kind, reg.Offers(op, shared))
		}
	}
	return b.String()
}
