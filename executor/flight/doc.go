// Package flight is the flight recorder: it keeps the last events of a rank in a ring
// of fixed size. An event costs a few nanoseconds. In a mapped file the ring survives
// the death of its process.
//
// It never waits, allocates or writes to disk while it records, and it decides
// nothing: the executor calls it, a human reads it.
//
//	ring, err := flight.Create("rank3.rec", 3, 8, 0) // or New, without a file
//	ring.Begin(0, 17, "allreduce 1024 f32 sum", 4096)
//	ring.Add(flight.Event{Kind: flight.Sent, Message: 1, Seq: 17, Peer: 4, Bytes: 4096})
//	…                                                // kill -9
//	rec, err := flight.ReadRecording("rank3.rec", data)
//	err = flight.Print(os.Stdout, []*flight.Recording{rec}, 20)
//
// # Reading what happened
//
// A process keeps its last 1024 events, a goroutine rank 256: calls, messages,
// waits, failures. TIERFLOW_RECORDER=/tmp/job.%r, or planner's Options.Recorder, keeps
// them in a mapped file, %r being the rank. A second job of a process, entered while
// the first is open, has .w2 at the end of its files, and so on.
//
//	$ tierflow trace --last 3 --recorder /tmp/job.*
//	-2.010000s  rank 3  begin                                          allreduce 1024 f32 sum #17
//	-2.009000s  rank 3  sent   to rank 4   credit edge 1, 65536 bytes  allreduce 1024 f32 sum #17
//	-1.909000s  rank 3  wait   for rank 4  edge 1, 65536 bytes         allreduce 1024 f32 sum #17
//	rank 3: allreduce 1024 f32 sum #17: waits since -2.009000s: ib#3 recv r4>r3 64KiB
//	rank 3: last seen at +0.000000s (process 4711)
//
// Reading the clock would be most of the cost of an event, so an event has the time
// of the last reading. The executor reads the clock at the begin of every 16th call in
// a row, after each sleep, and now and then while a rank spins. A waiting call and
// its events get the time of the first reading in it.
//
// # The file
//
// Little endian. A header of 512 bytes: magic, version, rank, ranks, process,
// start, how many events there were, the last failure. Then 64 calls of 256 bytes,
// the one with number n in place n%64: its begin and end, its request and
// its open steps. Then eight more, for waiting sends and receives. Then the ring of
// events, 48 bytes each.
package flight
