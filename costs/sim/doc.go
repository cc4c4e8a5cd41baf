// Package sim simulates programs on a described machine: the programs of ranks, without the ranks.
// It says when each step would end, so a machine of thousands of ranks fits on a laptop.
//
// It is pure: the same programs, machine and options give the same times on every system. Times are
// integers ([Time]). Events at the same time are taken in the order of their making. Ranks start
// together in an arbitrary order, chosen by the seed.
//
//	job, err := sim.Compile(request, topology, plan, all.Submodules())
//	result, err := job.Run(machine.Assumed(), sim.Options{})
//	fmt.Println(result.Time)
//
// # What is modelled
//
// Messages cost what package machine says (LogGOPS with a link per level). On top of it a rank
// behaves as in package executor, for on that depends every overlap:
//
//   - A rank is one processor. It takes what has arrived, then executes up to 32 steps
//     that are ready, the latest first, and looks again.
//   - Small messages and leads go at once, charged to the pair's budget; others wait for
//     the credit of their recv. Package flow does the arithmetic here too. Credits and
//     refunds are messages that cost and travel like any other.
//   - A send ends when its bytes have left, except for what the kernel queues.
//   - All ranks of a domain share its wire in each direction. Bulk takes turns: a message
//     that has had its part on the wire waits behind the others, as TCP connections share a
//     network. Parts have 128 KiB, or more where a lot waits. Shorter messages are served
//     first come, first served. Those of at most EagerMax bytes and control messages pass bulk that
//     waits, except for what the kernel has queued already.
//   - Messages that leave together, or are found together, cost less than each by itself, if
//     the machine says so. A wire that was idle may let a burst pass.
//   - Copies and reductions share the memory of their node. What lies in the memory of
//     another rank may take longer.
//   - Ranks share processors if the
//     machine says so: a rank keeps one until it has nothing to do, or gives way to a
//     waiting rank after a burst.
//   - A receiver that waits takes a long message's bytes while they come in. One that is
//     busy does so afterwards.
//
// # What is not
//
// Slow start, losses and retransmissions of TCP; the topology of switches; caches; the way of small
// calls straight through shared memory; sleeping and waking of processes, except for their part in
// the machine's numbers.
//
// testdata/accuracy records how well it predicts the times of real ranks. On flat trees and rings
// it agrees with SimGrid to a few tenths of a percent. A test of the laboratory checks this if
// SimGrid is installed.
//
// # Folding
//
// Ranks of equal role have equal programs, except for the names of their peers: the
// members of two nodes, say. [Compile] compiles one rank of each role and stores one
// program for all. Every rank still has its own state, clock and messages. So nothing
// is lost: the times are those of a simulation without folding. Requests with blocks or
// prefixes are compiled rank by rank; equal programs are stored once then, too.
//
// # Speed
//
// BenchmarkRun, 2026-11-22, one core of a virtual server: 6 to 11 million steps a second.
// An allreduce of 4 MiB in 64 segments on 128 nodes of 32 ranks has 2.9 million steps. It
// takes half a second after as long of compiling, and 0.4 GiB with its critical path.
package sim
