// Package flight is the flight recorder: what a rank did last, kept in a ring of
// fixed size that costs a few nanoseconds an event and survives, in a mapped file,
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
// # The file
//
// Little endian. A header of 512 bytes: magic, version, rank, ranks, process,
// start, how many events there were, the last failure. Then 64 calls of 256 bytes,
// the one with number n in place n%64: when it began and ended, what it is and
// what it waits for. Then the ring of events, 48 bytes each.
package flight
