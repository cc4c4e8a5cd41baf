// Package choose asks for the plan of a request: one chooser after the other, until one knows.
//
// A [Question] is a request on a topology. A [Chain] puts it to choosers, in this order:
//
//	Forced    forced parts of plans narrow the question
//	Rules     a file of rules
//	Compiled  a function of the program, Options.Decide
//	Table     a decision table, but for predictions where a machine is known
//	Machine   prices on a known machine
//	Rule      the built-in rule: it always knows
//
// Nobody further down is asked once one knows. Forced words are constraints on the search: if the plan chosen
// without them has them, it stays. Else each chooser looks for its best plan that has them, and the built-in
// rule takes the cheapest of its completions.
//
// A question is the same on all ranks of a call. It has nothing of what each rank decides for itself, such as
// to work in place. Each chooser is a type of this package, and a row
// of the chain in package planner. A new one stands before Rule. Its answers are the same on all
// ranks: facts about the world are from rank 0, who told the others when they joined, as it tells
// them its table. A program with a way of its own needs no chooser: Options.Decide asks it.
//
// It measures nothing, reads no files and knows no running ranks.
//
// The example shows how to ask a chain.
package choose
