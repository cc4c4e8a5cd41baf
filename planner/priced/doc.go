// Package priced chooses plans by what they cost on a known machine: of the shapes and
// algorithms of the catalogue between nodes, each with several segments, the one whose
// price is least. Prices are those of package costs/price.
//
// The built-in rule's plan is one of the candidates. Another one takes its place only if
// it is cheaper by more than prices are usually off. Where nothing has a price, such as a
// scan, the rule's plan stays. Where only others have one, the cheapest of them is taken.
//
// It measures nothing, and compiles and simulates nothing. Equal arguments give equal
// plans on all ranks.
//
//	ruled, _ := rule.Choose(request, topology, tasks.Plan{})
//	choice, err := priced.Choose(machine, request, topology, ruled, registry, priced.Exact)
package priced
