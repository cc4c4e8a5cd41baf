// Package plans lists plans for a request on a topology, without choosing.
//
// Prices compare [Rivals] with the built-in rule's plan. [Combinations] has a plan for every
// combination of a registry's algorithms: searches and proofs go through them.
//
// It simulates and measures nothing. Equal arguments give equal lists, on all ranks.
//
//	asked := builtin.Ask(request, topology)
//	ruled, _ := asked.Choose(tasks.Plan{})
//	for _, p := range plans.Rivals(asked, ruled) { … }
package plans
