// Package verdict says from the states of a job's ranks why it stands still or is slow: a rank
// died, is stopped, has not come, runs something else. It is pure: states in, findings out.
//
//	for _, f := range verdict.Diagnose(states, verdict.Options{}) {
//		fmt.Println(f) // late: rank 2 has not come to barrier #7 for 12 s; it is in main.loadBatch main.go:15
//	}
//
// Both sides of a message know the schedule, so a wait names its peers. Diagnose follows the
// waits from rank to rank, to ranks without a wait: the others stand because of them. Who has come to
// a call and is waited for there is followed through that call, others through what their programs are
// in. A link is blamed only if nothing else explains the waits.
//
//	class         is found if
//	died          a process has ended, or its connections have
//	unreachable   a rank doesn't answer and nothing else is known, or none of its node does
//	stopped       a process is stopped, by SIGSTOP or a debugger
//	mismatch      ranks run different collectives under one number
//	resources     a limit of the system ended a call
//	computing     others wait for a rank, and it is inside an operation of its program
//	deadlock      ranks wait for each other in a circle, each in a call of its own
//	late          others wait for a rank, and it is in no call
//	slow link     all have come, and bytes between two ranks don't, or too slowly
//	slow rank     all move, and one waits for nobody while the others wait for it
//
// For moving jobs [Straggler] and [Bottleneck] find the last two, from counts of the ranks.
//
// They are in this order: a mismatch, say, mostly makes others late. The first finding is the
// verdict.
package verdict
