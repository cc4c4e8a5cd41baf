package priced

import (
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/price"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// predictSteps bounds the simulation of Predict, in steps: about half a second.
const predictSteps = 4_000_000

// Predict prices one plan on a machine, or simulates it if it has no price. The plan was chosen
// elsewhere. If a simulation would be too long, Expected is a lower bound: the time of a rank's
// bytes on the slowest link. A machine without a link that the topology needs is an error.
func Predict(m *machine.Machine, asked *builtin.Asked, plan tasks.Plan, reg submodules.Registry) (Priced, error) {
	one := Priced{Plan: plan}
	p, err := price.New(m, asked.On, asked.Request(), reg)
	if err != nil {
		return one, err
	}
	known := false
	if one.Price, known = p.Plan(plan); known {
		return one, nil
	}
	one.Price = price.Price{}
	s := newRehearsal(m, asked, reg, predictSteps)
	if one.Simulated, _, known = s.time(plan, 0); known {
		return one, nil
	}
	one.Simulated = 0
	for k := range asked.On.Depth() {
		if l, err := m.Link(asked.On.Level(k)); err == nil && asked.On.Size() > 1 {
			one.Expected = max(one.Expected, l.Latency+float64(float64(asked.Request().Bytes())*max(l.Byte, l.SendByte)))
		}
	}
	return one, nil
}
