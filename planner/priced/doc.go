// Package priced chooses plans by their times on a known machine: closed forms put the rule's plan
// and its rivals in order, and the most promising ones are simulated, within a budget. Prices
// are those of package costs/price. A simulation tells by how much the prices of a plan's
// family, its shape and algorithms, are off.
//
// Long messages are simulated in part: once a pipeline is full each further segment takes as long
// as the one before. If all nodes do the same one stands for all.
//
// The built-in rule's plan is one of the candidates. If nothing has a price, such as a
// scan, it stays.
//
// It measures nothing and reads no clock: the budget is counted in steps. Equal arguments give
// equal plans on all ranks, also on different processors: no product in a sum may be fused with it.
//
//	asked := builtin.Ask(request, topology)
//	ruled, _ := asked.Choose(tasks.Plan{})
//	choice, err := priced.Choose(machine, asked, ruled, registry, priced.Exact)
package priced
