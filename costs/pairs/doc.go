// Package pairs measures messages between two ranks over any line. Ranks measure their machine with
// it when they join a job, and tierflow doctor looks at every pair.
//
// One rank of a pair leads and the other one follows. An order says how many bytes, and
// how many messages. The follower takes or gives them and, if it took them, answers with
// the time of its clock.
//
//	line.go    the orders: Leader and Follow
//	probe.go   what joining a job measures, in some hundredths of a second
//	link.go    a machine's link from those numbers
//	check.go   whether a link is still what it was
//	visit.go   latency, rates both ways and the other's clock
//	choose.go  which ranks of a level measure
//	host.go    what a rank finds without messages: its host, copies and sums
//
// Package measure has the measurements with intervals of confidence: it runs programs, and a
// simulator can run these, too.
package pairs
