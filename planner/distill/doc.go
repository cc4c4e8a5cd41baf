// Package distill makes few rules of a decision table: a small decision tree for each collective.
//
// A tree asks for nodes, ranks a node, bytes, the layout and the kind of ranks. A leaf has the least
// slow plan on average over the leaf's points. The tree is grown until no point gains,
// and pruned from its leaves while the mean slowdown stays below a bound. Slowdown is a plan's time
// by the fastest one's of the same point. Leaves of one plan that follow each other are merged. A
// threshold between two sizes is set as ACCLAiM does (Wilkins and others, CLUSTER 2022, section V).
//
// It measures nothing. Equal tables give equal rules.
//
//	made, err := distill.Rules(table, distill.Bounds{Mean: 1.02})
//	fmt.Print(made.Text)
//
// The source is Pješivac-Grbović and others, Decision Trees and MPI Collective Algorithm Selection
// Problem (2007).
package distill
