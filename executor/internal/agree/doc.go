// Package agree lets the ranks of a broken communicator decide who of them goes on. It is
// pure: a [Machine] is one rank's part in one decision. It is told the news of the rank, and
// returns the messages to send. The caller carries them.
//
// # The decision
//
// A [Decision] names the members of the next communicator. Whoever decides, decides the same.
// It is one ballot of single-decree Paxos (Lamport, "Paxos Made Simple", 2001) with these
// differences:
//
//   - The proposer is the lowest rank not counted as lost. Ranks that count
//     others as lost vote for another proposer, with a higher ballot.
//   - A vote is given once for each proposer, and holds for all its ballots: only the proposer
//     itself decides them, so it knows the undecided ones among its own.
//   - A proposer waits for the votes of all ranks but the lost ones, then for all of them to
//     accept. Another loss meanwhile costs another ballot, and so does a vote that names another lost rank.
//   - It decides only with a quorum, see [Quorum]. A partition goes on on one side at most.
//
// # Proof and suspicion
//
// A rank counts as lost when it is suspected or when its end is proven. Both only grow.
// Nothing but a proof helps a minority: a suspected rank may go on elsewhere. A suspicion is
// mutual: if one rank counts another one as lost, the other one does the same when it hears
// of it. By the quorum one side goes on. The other ranks are told the decision, and are no members.
//
// A rank may also be left out on purpose, see [Machine.LeaveOut]. That is no suspicion, and not
// mutual: it abstains when it hears of it, and tells the others. Else it would draw some of them
// to its side. Who leaves ranks out makes sure of a quorum without them first.
//
// The decision outlives the call: a rank answers later questions with it.
//
// # Assumptions
//
// Messages between two living ranks without suspicion arrive, in any order,
// perhaps twice. Messages of a dead rank arrive or don't. A proven end is the end:
// the rank has died or has left for good.
package agree
