package flight_test

import (
	"testing"

	"github.com/tierflow/tierflow/executor/flight"
)

// BenchmarkAdd is one event, and one call with its two events and a reading of the
// clock.
func BenchmarkAdd(b *testing.B) {
	r := flight.New(0, 2, 0)
	b.Run("what=event", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Add(flight.Event{Kind: flight.Sent, Message: 1, Peer: 1, Edge: 3, Bytes: 64})
		}
	})
	b.Run("what=call", func(b *testing.B) {
		b.ReportAllocs()
		for seq := uint32(0); b.Loop(); seq++ {
			r.Begin(0, seq, "allreduce 1024 f32 sum", 4096)
			r.End(0, seq, 1, false)
		}
	})
}
