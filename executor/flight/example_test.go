package flight_test

import (
	"fmt"
	"os"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
)

func ExamplePrint() {
	const ms = int64(time.Millisecond)
	rec := &flight.Recording{
		Rank: 3, Ranks: 8, PID: 4711, Seen: 2100 * time.Millisecond, Total: 3,
		Events: []flight.Event{
			{Time: 90 * ms, Kind: flight.RunBegin, Seq: 17, Peer: -1, Edge: -1, Bytes: 4096},
			{Time: 91 * ms, Kind: flight.Sent, Message: 3, Seq: 17, Peer: 4, Edge: 1, Bytes: 65536},
			{Time: 191 * ms, Kind: flight.Waiting, Seq: 17, Peer: 4, Edge: 1, Bytes: 65536},
		},
		Calls: []flight.Call{{
			Seq: 17, Request: "allreduce 1024 f32 sum", Begun: 90 * time.Millisecond,
			Waits: "r4: ib#3 recv r4>r3 64KiB", Since: 91 * time.Millisecond,
		}},
	}
	if err := flight.Print(os.Stdout, []*flight.Recording{rec}, 0); err != nil {
		fmt.Println(err)
	}
	// Output:
	// -2.010000s  rank 3  begin                                          allreduce 1024 f32 sum #17
	// -2.009000s  rank 3  sent   to rank 4   credit edge 1, 65536 bytes  allreduce 1024 f32 sum #17
	// -1.909000s  rank 3  wait   for rank 4  edge 1, 65536 bytes         allreduce 1024 f32 sum #17
	// rank 3: allreduce 1024 f32 sum #17: waits since -2.009000s: r4: ib#3 recv r4>r3 64KiB
	// rank 3: last seen at +0.000000s (process 4711)
}
