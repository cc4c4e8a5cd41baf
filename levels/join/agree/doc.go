// Package agree lets the ranks of a broken communicator decide who of them goes on. It is
// pure: a [Machine] is one rank's part in one decision. It is told what the rank learns, and
// returns what the rank must send. Who carries the messages is the caller's business.
//
// # What is decided
//
// A [Decision] names the members of the next communicator. Whoever decides, decides the same.
// It is one ballot of single-decree Paxos (Lamport, "Paxos Made Simple", 2001) with these
// differences:
//
//   - The proposer is the lowest rank that a rank doesn't count as lost. Ranks that count
//     others as lost vote for another proposer, which has a higher ballot.
//   - A vote is given once for each proposer, and holds for all its ballots: only the proposer
//     itself decides them, so it knows which of its own were not.
//   - A proposer waits for all ranks that it doesn't count as lost, then for all of them to
//     accept. A rank that is lost meanwhile costs another ballot, a vote that names it as lost too.
//   - It decides only with a quorum, see [Quorum]. A partition goes on on one side at most.
//
// # Proof and suspicion
//
// A rank counts as lost when it is suspected or when its end is proven. Both only grow.
// Nothing but a proof helps a minority: a suspected rank may go on elsewhere. A suspicion is
// mutual: if one rank counts another one as lost, the other one does the same when it hears
// of it. The quorum says who goes on. Whoever doesn't is told the decision, and is no member.
//
// The decision outlives the call: a rank that has decided answers whoever still asks.
//
// # What is assumed
//
// Messages between two ranks that live and don't suspect each other arrive, in any order,
// perhaps twice. Messages of a rank that has died arrive or don't. A proven end is the end:
// the rank has died or has left for good.
package agree
