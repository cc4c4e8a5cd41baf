package planner_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tierflow/tierflow/executor/local"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
)

// In a bubble goroutine ranks compute in no time, and emulated links take exactly what they are to take: the receiver's word
// that it is there, then 125 kB at 125 MB/s, each with the 66 bytes of a frame's headers and 20 µs on the way.
func TestLinksInABubbleAreExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on, err := levels.Parse("2x1")
		if err != nil {
			t.Fatal(err)
		}
		comms, err := planner.Local("2x1", &planner.Options{
			Plan: "bcast:shape=flat,fs=all,i=nbc/linear",
			Link: local.NewNetwork(on, 125e6, 20*time.Microsecond),
		})
		if err != nil {
			t.Fatal(err)
		}
		var ranks sync.WaitGroup
		for _, c := range comms {
			ranks.Go(func() {
				x := make([]byte, 125_000)
				if c.Rank() == 0 {
					x[7] = 1
				}
				began := time.Now()
				if err := planner.Bcast(t.Context(), c, x, 0); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); c.Rank() == 1 && took != time.Millisecond+2*(528*time.Nanosecond+20*time.Microsecond) {
					t.Errorf("took %v", took)
				}
				if x[7] != 1 {
					t.Error("wrong data")
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		ranks.Wait()
	})
}
