package planner

import (
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/internal/inside"
	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// policy holds the settings for choosing plans.
type policy struct {
	common        common
	forced        tasks.Forced                       // of common's Plan, or those of a Split
	origin        string                             // of forced, for texts
	rules         *rules.Base                        // nil: none
	compiled      func(*rules.Params) (string, bool) // see [Options.Decide]; nil: none
	table         *choose.Table                      // nil: none
	lenient       bool                               // forced plans are left out if the ranks can't run them
	tableFile     string                             // of rank 0: the kept table of its size and kind of hosts; empty: none
	remembers     bool                               // results of trials go to tableFile
	machineSource                                    // machine: nil, nothing is known
}

// policy returns the policy on a topology of ranks that need not agree: goroutines, or none at all.
func (o *settings) policy(t *levels.Topology, reg submodules.Registry) (p policy, err error) {
	c, unknown := o.common()
	p = policy{common: c, compiled: o.Decide, origin: c.PlanOrigin}
	if p.common.Links == "" && o.Link == nil && t.IsOneProcess() {
		p.common.Links = table.SharedMemory
	}
	if p.forced, err = choose.ParseForced(c.Plan, c.PlanOrigin, reg); err == nil {
		p.table, err = o.table(reg)
	}
	if err == nil {
		p.rules, err = o.rules(reg)
	}
	if err == nil {
		p.machineSource, err = o.machineSource()
	}
	if err == nil {
		err = unknown
	}
	if err == nil {
		err = p.machineSource.settleOn(t, false)
	}
	return p, err
}

// chain lists the choosers in the order of asking.
func (p *policy) chain() choose.Chain {
	all := choose.Chain{choose.Forced{Plans: p.forced, Origin: p.origin}}
	if p.rules != nil {
		all = append(all, &choose.Rules{Base: p.rules, Machine: p.machine})
	}
	if p.compiled != nil {
		all = append(all, &choose.Compiled{Decide: p.compiled, Machine: p.machine})
	}
	if p.table != nil {
		all = append(all, &choose.Table{Table: p.table.Table, Origin: p.table.Origin, Machine: p.machine})
	}
	if p.machine != nil {
		all = append(all, p.machine)
	}
	return append(all, choose.Rule{})
}

// clone returns p for a new communicator, with a copy of the rules' named values. The communicator
// changes these on all of its ranks at the same call.
func (p policy) clone() policy {
	if p.rules != nil {
		p.rules = p.rules.Clone()
	}
	return p
}

// choose chooses the plan for a request.
func (p policy) choose(r tasks.Request, t *levels.Topology, reg submodules.Registry) (choose.Decision, error) {
	q, err := choose.Ask(r, t, reg, p.common.Links)
	if err != nil {
		return choose.Decision{}, err
	}
	d, err := p.chain().Choose(q)
	if !p.lenient || len(p.forced) == 0 {
		return d, err
	}
	if err == nil {
		if _, unfit := builtin.Ask(r, t).Fits(d.Plan, reg); unfit == nil {
			return d, nil
		}
	}
	if q, err = choose.Ask(r, t, reg, p.common.Links); err != nil {
		return choose.Decision{}, err
	}
	all := p.chain()
	dropped := choose.Forced{Origin: p.origin, Dropped: p.forced}
	if order := p.forced.For(r.Coll).Order; order != 0 { // results must not depend on the ranks left
		dropped.Plans = tasks.Forced{{Plan: tasks.Plan{Order: order}}}
	}
	all[0] = dropped
	return all.Choose(q)
}

// planFor returns the decision of a communicator of topology t with options o, and its policy.
func planFor(r tasks.Request, t *levels.Topology, o *Options) (p policy, d choose.Decision, err error) {
	if t == nil || t.Depth() == 0 {
		return p, d, errNoTopology
	}
	reg := all.Submodules()
	if p, err = o.settings().policy(t, reg); err != nil {
		return p, d, err
	}
	if p.measures {
		p.machine = &choose.Machine{Why: "only a communicator's ranks can measure it"}
	}
	d, err = p.choose(r, t, reg)
	return p, d, err
}

// Decide returns the plan for a request on a topology, as creating a collective would choose
// it, without ranks or buffers. Ranks count as processes, unless the topology
// has them as goroutines, see [levels.Topology.OneProcess]. A forced plan is returned
// even if no rank could compile it: [Explain] is an error then.
func Decide(r tasks.Request, t *levels.Topology, o *Options) (tasks.Plan, error) {
	_, d, err := planFor(r, t, o)
	return d.Plan, err
}

// Explain returns the text of [Collective.Explain] for a request on a topology,
// without ranks or buffers. If no rank can compile the plan, it returns the error of
// creating the collective.
func Explain(r tasks.Request, t *levels.Topology, o *Options) (string, error) {
	d, err := inspect(r, t, o)
	if err != nil {
		return "", err
	}
	return d.Text, nil
}

// inspect is raw.Inspect.
func inspect(r tasks.Request, t *levels.Topology, o *Options) (*inside.Decision, error) {
	p, d, err := planFor(r, t, o)
	if err != nil {
		return nil, err
	}
	reg, asked := all.Submodules(), builtin.Ask(r, t)
	if _, err := asked.Fits(d.Plan, reg); err != nil {
		return nil, err
	}
	all := &inside.Decision{Plan: d.Plan, Forced: d.Forced, Registry: reg, Links: p.common.Links, Text: d.Explain(asked, reg)}
	if a := d.FromTable(); a != nil {
		all.Table, all.Origin, all.Answer = a.From.Table, a.From.Origin, a.Answer
		if _, known := a.Plan(); !known {
			all.Fallback = a.Why
		}
	}
	return all, nil
}
