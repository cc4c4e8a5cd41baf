// Package plans lists plans for a request on a topology, without choosing.
//
// [Rivals] are those that prices compare with the built-in rule's plan. [Combinations] has
// one for every combination of algorithms that a registry knows: searches and proofs go
// through them.
//
// It simulates and measures nothing. Equal arguments give equal lists, on all ranks.
//
//	asked := rule.Ask(request, topology)
//	ruled, _ := asked.Choose(tasks.Plan{})
//	for _, p := range plans.Rivals(asked, ruled) { … }
package plans
