// Package executor runs programs: one progress engine per rank walks the step
// graphs of the rank's open calls, and moves messages over links to the engines
// of the other ranks.
//
// It chooses nothing: plans come from above, programs from submodules.Compile.
// Users call package planner; this package is for builders on programs.
//
// A world is made of ports, one for each rank of this process: a link for its messages,
// a way to sleep, and memory for the ranks of its node to read. Packages local and proc
// make worlds; a transport of another kind calls [New].
//
//	world := local.New(2, executor.Config{})
//	defer world.Close()
//	run, err := world.Endpoint(rank).Comm(0).Bind(executor.Binding{Compiled: compiled, Recv: buf})
//	err = run.Do(ctx)
//
// # How a run goes
//
// The waiting goroutines drive: one at a time polls the rank's links and executes
// ready steps for all its runs; the others wait for their own run to end. A
// background goroutine drives only while started runs have no waiter. A driver
// with nothing to do spins briefly, yielding sooner on shared processors, and then
// sleeps until a message, a cancelled context or the next look for stalls, every
// 100 ms.
//
// A caller's operation runs on a goroutine of its call, without the engine's lock: it may block, panic or
// use communicators, and only its own call waits for it.
//
// A run of small messages between processes of one node, or between goroutine ranks
// not much more numerous than the processors, goes straight through its steps, as a
// list, if it starts while nothing else is on its way. When a message is late or not
// the expected one, the engine takes over from there.
//
// # Flow control
//
// Both ends know the schedule, and package flow does the arithmetic.
//
//   - Eager: at most EagerMax bytes, or among the first 64 KiB of a pass to another node,
//     because a credit from there takes a round trip. If all ranks may send to one at the
//     same time, as in an alltoall, these share 1 MiB. It is sent at once if the pair's
//     budget allows. Else it waits until budget comes back, or the recv grants credit.
//   - Large: sent only against the credit of its ready recv, straight to its destination.
//
// So nothing waits for memory, and the budget bounds early messages.
//
// # A walk: running an Allreduce
//
// The way of a run from package planner to another node and back, each stay once. The message is small
// here: a large one goes by traffic.transmitFrom, process.Put and Link.Put, and comes by
// Endpoint.findPlace. A short run between ranks of one node may go by Run.runStraight instead.
//
//	planner/collective.go              Collective.Run           asks for a run to its end
//	executor/start.go                  Run.Do                   starts it and waits
//	executor/start.go                  Run.beginCall            takes a number, and slots
//	executor/step.go                   Run.beginPass            makes the first steps ready
//	executor/step.go                   Run.executeStep          does a ready step
//	executor/send.go                   Run.sendStep             asks the flow control whether it may go
//	executor/traffic.go                traffic.transmit         hands it over, with the refund owed to the peer
//	executor/proc/transport_linux.go   process.Post             finds the link
//	executor/internal/tcp/link_linux.go         Link.Post                queues a frame
//	executor/unlock.go                 Endpoint.dispatch        has the link write
//	executor/internal/tcp/send_linux.go         Link.Flush               writes the queued frames
//	executor/wait.go                   Endpoint.drive           polls until the run has ended
//	executor/deliver.go                Endpoint.makeProgress    asks the link, and lets runs go on
//	executor/internal/tcp/link_linux.go         Link.Poll                reads frames
//	executor/deliver.go                Endpoint.deliverMessage  finds the communicator
//	executor/deliver.go                Comm.deliverToRun        finds the run
//	executor/send.go                   Run.deliverToStep        gives the recv its bytes
//	executor/stepend.go                Run.endStep              makes the next steps ready
//	executor/finish.go                 Run.finishCall           ends the run after its last pass
//	executor/unlock.go                 Endpoint.unlock          lets go of the lock
//
// # Files
//
// An engine's state is in world.go, endpoint.go, traffic.go, comm.go, run.go, ending.go, mail.go,
// straight.go and control.go; their types name each other. The rest is mostly ordered: a file
// uses those before it.
//
//	errors lateerror rankset recorderpath     errors, sets of ranks, and names of recordings
//	port blocks                               the ground of a world, and payloads kept
//	guard hand                                panics of drivers, and copies between ranks
//	calls count tracing sample activity       counters and traces
//	monotonic_linux monotonic_other           the clock of traces
//	slotring loans waiters stepend            slots of calls, and the ends of calls and steps
//	finish departure broken failing news      ends of calls, departures, breaks, and the news of them
//	found mismatch                            calls that differ between ranks
//	unlock                                    work deferred until the lock is free
//	read operation send step                  the steps of a pass, those of a caller's operation among them
//	transfer anysource deliver                arriving messages
//	waiting stall late                        awaited ranks, stalls and deadlines
//	dying suspects renew                      last words, suspicions, and links made anew
//	state stacks elsewhere asking verdict dump  the states of ranks, and reports of them
//	quit_unix quit_other                      the signal for a report
//	ballots lost ballotqueue directballots    agreements after a death
//	seal settle shrink                        the end of calls after a death, and successors
//	wait progress bind start                  a call
//	comm_life hear                            communicators begin and end
//	recording close open                      worlds begin and end
package executor
