// Package verdict says from the states of a job's ranks why it stands still or is slow: who
// died, is stopped, has not come, runs something else. It is pure: states in, findings out.
//
//	for _, f := range verdict.Diagnose(states, verdict.Options{}) {
//		fmt.Println(f) // late: rank 2 has not come to barrier #7 for 12 s; it is in main.loadBatch main.go:15
//	}
//
// Both sides of a message know the schedule, so a wait names its peers. Diagnose follows the
// waits from rank to rank to those who wait for nobody: the others stand because of them.
//
//	class         is found where
//	died          a process has ended, or its connections have
//	unreachable   a rank doesn't answer and nothing else is known, or none of its node does
//	stopped       a process is stopped, by SIGSTOP or a debugger
//	mismatch      ranks run different collectives under one number
//	resources     a limit of the system ended a call
//	computing     a rank that others wait for is inside an operation of its program
//	deadlock      ranks wait for each other in a circle, each in a call of its own
//	late          a rank that others wait for is in no call
//	slow link     all have come, and bytes between two ranks don't, or too slowly
//	slow rank     all move, and one waits for nobody while the others wait for it
//
// Of jobs that move, [Straggler] and [Bottleneck] tell the last two, from what ranks counted.
//
// They are in this order: a mismatch, say, mostly makes others late. The first finding is the
// verdict.
package verdict
