package planner

import (
	"cmp"
	"os"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/rule"
	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// policy is what plans are chosen by.
type policy struct {
	registry      submodules.Registry
	forced        tasks.Forced
	origin        string                             // where forced comes from
	rules         *rules.Base                        // nil: none
	compiled      func(*rules.Params) (string, bool) // see [Options.Decide]; nil: none
	table         *choose.Table                      // nil: none
	links         string                             // between nodes, see [Options.Links]
	tries         bool                               // plans are tried, see [Options.Effort]
	uniform       bool                               // calls end alike on all ranks, see [Options.Uniform]
	lenient       bool                               // forced plans that the ranks can't run are left out
	tableFile     string                             // of rank 0: where jobs of the same ranks find a table; empty: nowhere
	remembers     bool                               // what is tried goes to tableFile
	machineSource                                    // machine: nil, nothing is known
}

// policy reads what the options and the environment say.
func (o *Options) policy() (p policy, err error) {
	p.registry, p.compiled, p.uniform = all.Submodules(), o.Decide, o.Uniform
	if p.forced, p.origin, err = o.forced(p.registry); err == nil {
		p.table, err = o.table(p.registry)
	}
	if err == nil {
		p.rules, err = o.rules(p.registry)
	}
	if err == nil {
		p.machineSource, err = o.machineSource()
	}
	if err == nil {
		p.tries, err = o.effort()
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
	return p.machineSource.settleOn(t, false)
}

// chain lists the choosers in the order in which they are asked.
func (p *policy) chain() choose.Chain {
	all := choose.Chain{choose.Forced{Plans: p.forced, Origin: p.origin}}
	if p.rules != nil {
		all = append(all, &choose.Rules{Base: p.rules, Machine: p.machine})
	}
	if p.compiled != nil {
		all = append(all, &choose.Compiled{Decide: p.compiled, Machine: p.machine})
	}
	if p.table != nil {
		all = append(all, p.table)
	}
	if p.machine != nil {
		all = append(all, p.machine)
	}
	return append(all, choose.Rule{})
}

// own is p for a communicator: with named values of its own, which it changes on all of its
// ranks at the same call.
func (p policy) own() policy {
	if p.rules != nil {
		p.rules = p.rules.Clone()
	}
	return p
}

// choose chooses the plan for a request.
func (p policy) choose(r tasks.Request, t *levels.Topology) (choose.Decision, error) {
	q, err := choose.Ask(r, t, p.registry, p.links)
	if err != nil {
		return choose.Decision{}, err
	}
	d, err := p.chain().Choose(q)
	if !p.lenient || len(p.forced) == 0 {
		return d, err
	}
	if err == nil {
		if _, unfit := rule.Ask(r, t).Fits(d.Plan, p.registry); unfit == nil {
			return d, nil
		}
	}
	if q, err = choose.Ask(r, t, p.registry, p.links); err != nil {
		return choose.Decision{}, err
	}
	all := p.chain()
	dropped := choose.Forced{Origin: p.origin, Dropped: p.forced}
	if order := p.forced.For(r.Coll).Order; order != 0 { // results must not depend on who is left
		dropped.Plans = tasks.Forced{{Plan: tasks.Plan{Order: order}}}
	}
	all[0] = dropped
	return all.Choose(q)
}

// planned is what a communicator of topology t with options o would choose, and by
// what.
func planned(r tasks.Request, t *levels.Topology, o *Options) (p policy, d choose.Decision, err error) {
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
		p.machine = &choose.Machine{Why: "only a communicator's ranks can measure it"}
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
	return d.Plan, err
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
	asked := rule.Ask(r, t)
	if _, err := asked.Fits(d.Plan, p.registry); err != nil {
		return nil, err
	}
	all := &Decision{Plan: d.Plan, Forced: d.Forced, Registry: p.registry, Links: p.links, Text: d.Explain(asked, p.registry)}
	if a := d.FromTable(); a != nil {
		all.Table, all.Origin, all.Answer = a.From.Table, a.From.Origin, a.Answer
		if _, known := a.Plan(); !known {
			all.Fallback = a.Why
		}
	}
	return all, nil
}
