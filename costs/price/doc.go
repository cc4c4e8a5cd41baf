// Package price says in microseconds of computing about how long a plan takes on a
// described machine, by closed forms: it compiles and simulates nothing. So a choice may
// ask for the prices of a hundred plans.
//
// A plan's segments flow through phases, one for each kind of task. Each phase has a time
// for the first segment, from a path of messages through its group, and a load for each
// further one, on wires and processors. A plan takes
//
//	the first times of all phases + (segments − 1) × the largest load
//
// A load is what a segment takes of the busiest wire, or of the busiest processor over
// all phases. Few segments on their way may be a limit, too: then it is a phase's time
// divided by the window.
//
// Package machine says what messages cost. The rest is counted: rounds, messages of a rank, bytes
// over the busiest node's wire. No number is fitted to simulations. Unlike a simulation a price knows
// neither budgets nor messages waiting for each other because of their order. Prices are for
// comparing plans of one request. Package planner/priced says how well they do that.
//
// It is pure. Equal arguments give equal prices on all systems of one kind.
package price
