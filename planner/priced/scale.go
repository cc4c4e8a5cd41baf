package priced

import (
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/price"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// scaleSteps bounds each simulation of Scale, in steps: some 5 ms.
const scaleSteps = 30_000

// Scale returns what a plan takes on two topologies of a machine, ns. On both it is simulated, or simulated with one
// node for all where they are too many ranks, or else priced. Neither is known of a plan that has no price then, or that
// fits only one of them.
func Scale(m *machine.Machine, here, there *builtin.Asked, plan tasks.Plan, reg submodules.Registry) (hereNS, thereNS float64, known bool) {
	simulated := func(noneStands bool) func(a *builtin.Asked) (float64, bool) {
		return func(a *builtin.Asked) (float64, bool) {
			s := newRehearsal(m, a, reg, scaleSteps)
			s.noneStands = noneStands
			ns, _, ok := s.time(plan, 0)
			return ns, ok
		}
	}
	prices := func(a *builtin.Asked) (float64, bool) {
		p, err := price.New(m, a.On, a.Request(), reg)
		if err != nil {
			return 0, false
		}
		one, ok := p.Plan(plan)
		return one.NS, ok
	}
	for _, ask := range []func(a *builtin.Asked) (float64, bool){simulated(true), simulated(false), prices} {
		var ok bool
		if hereNS, ok = ask(here); !ok || hereNS <= 0 {
			continue
		}
		if there.On == here.On {
			return hereNS, hereNS, true
		}
		if thereNS, ok = ask(there); ok && thereNS > 0 {
			return hereNS, thereNS, true
		}
	}
	return 0, 0, false
}
