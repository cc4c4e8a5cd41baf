// Package choose asks for the plan of a request: one chooser after the other, until one knows.
//
// A [Question] is a request on a topology. A [Chain] puts it to choosers: what is forced
// narrows it. Then rules of the user are asked, then a decision table, then prices on a known machine, then the
// built-in rule, which always knows. Each chooser is a file of this package, and a row where
// package planner makes its chain. Nobody further down is asked once one knows.
//
// It measures nothing, reads no files and knows no ranks that run.
//
//	q, err := choose.Ask(request, topology, registry, "")
//	d, err := choose.Chain{table, choose.Rule{}}.Choose(q)
//	fmt.Print(d.Explain(q))
package choose
