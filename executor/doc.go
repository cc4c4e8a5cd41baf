// Package executor runs programs: one progress engine per rank walks the step
// graphs of all that the rank has started, and moves messages over links to the
// engines of the other ranks.
//
// It chooses nothing: plans come from above, programs from submodules.Compile.
// Users call package planner; this package is for those who build on programs.
//
// A world is made of ports, one for each rank of this process: what carries its messages,
// how it sleeps and what the ranks of its node may read. Packages local and proc make
// worlds; a transport of another kind calls [New].
//
//	world := local.New(2, executor.Config{})
//	defer world.Close()
//	run, err := world.Endpoint(rank).Comm(0).Bind(executor.Binding{Compiled: compiled, Recv: buf})
//	err = run.Do(ctx)
//
// # How a run goes
//
// Whoever waits drives: one goroutine at a time polls the rank's links and
// executes ready steps for all its runs; others wait for their own run to end. A
// background goroutine drives only while started runs have no waiter. A driver
// with nothing to do spins briefly, yielding sooner where processors are shared,
// and then sleeps until a message, a cancelled context or the 100 ms tick that
// looks for stalls.
//
// A run of small messages between processes of one node, or between goroutine ranks
// that are not many more than the processors, goes straight through its steps, as a
// list, if it starts while nothing else is on its way; the engine takes over where it
// is when a message is late or is not the one that is due.
//
// # Flow control
//
// Both ends know the schedule, and package flow does the arithmetic.
//
//   - Eager: at most EagerMax bytes, or among the first 64 KiB of a pass to another node,
//     where a credit takes a round trip. Where all ranks may send to one at the same time,
//     as in an alltoall, these share 1 MiB. It is sent at once if the pair's budget allows.
//     Else it waits until budget comes back, or the recv grants credit.
//   - Large: sent only against the credit that its recv gives when it is ready, straight to
//     its destination.
//
// So nothing waits for memory, and what arrives early is bounded by the budget.
//
// # A walk: running an Allreduce
//
// How a run that package planner has made goes to another node and comes back, each stay once. What is
// sent is a small message here: a large one goes by Endpoint.transmitFrom, process.Put and Link.Put.
//
//	planner/collective.go              Collective.Run           asks for a run to its end
//	executor/start.go                  Run.Do                   starts it and waits
//	executor/start.go                  Run.beginCall            takes a number, and slots
//	executor/step.go                   Run.beginPass            makes the first steps ready
//	executor/step.go                   Run.executeStep          does a step that is ready
//	executor/send.go                   Run.sendStep             asks the flow control whether it may go
//	executor/endpoint.go               Endpoint.transmit        adds what is owed to the peer
//	executor/proc/transport_linux.go   process.Post             finds the link
//	executor/tcp/link_linux.go         Link.Post                queues a frame
//	executor/unlock.go                 Endpoint.dispatch        has the link write
//	executor/tcp/send_linux.go         Link.Flush               writes what is queued
//	executor/wait.go                   Endpoint.drive           polls until the run has ended
//	executor/deliver.go                Endpoint.makeProgress    asks the link, and lets runs go on
//	executor/tcp/link_linux.go         Link.Poll                reads frames, bulk to its place
//	executor/deliver.go                Endpoint.findPlace       says where bulk goes
//	executor/deliver.go                Endpoint.deliverMessage  finds the communicator
//	executor/deliver.go                Comm.deliverToRun        finds the run
//	executor/send.go                   Run.deliverToStep        gives the recv its bytes
//	executor/stepend.go                Run.endStep              makes the next steps ready
//	executor/broken.go                 Run.finishCall           ends the run after its last pass
//	executor/unlock.go                 Endpoint.unlock          lets go of the lock
//
// # Files
//
// What an engine keeps is in world.go, endpoint.go, comm.go, run.go, ending.go, mail.go,
// straight.go and control.go, whose types name each other. All else is ordered: a file uses
// those before it, never one behind.
//
//	guard                               what an operation of the caller's may not do
//	calls slotring                      counters of calls, and where their slots are
//	waiters stepend                     how a call ends, and a step
//	departure broken failing            who has left, what breaks, who is told
//	unlock                              what the engine does as it lets go of its lock
//	hand read operation send step       the steps of a pass
//	transfer anysource deliver          what arrives
//	waiting stall                       who is waited for
//	seal ballots settle shrink          how calls end after a death, and who goes on
//	wait bind start                     a call
//	comm_life hear recording close open communicators and worlds begin and end
package executor
