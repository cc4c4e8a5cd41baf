package planner_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
)

// A rank whose memory can't be read, as it is when it has just died, is named by the
// ranks that wanted to.
func TestProcessesUnreadable(t *testing.T) {
	const root, n = 1, 1 << 20
	comms := joinProcesses(t, 3, 3, &planner.Options{Plan: "s=solo/linear,fs=all"})
	if !readable(comms) {
		closeAll(t, comms)
		t.Skip("this system keeps processes from reading each other's memory")
	}
	nothing, err := syscall.Mmap(-1, 0, n, syscall.PROT_NONE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(nothing)
	allSucceed(t, comms, func(ctx context.Context, c *planner.Comm) error {
		buf := nothing
		if c.Rank() != root {
			buf = make([]byte, n)
		}
		err := planner.Bcast(ctx, c, buf, root)
		if c.Rank() != root {
			return blames(err, root)
		}
		if err == nil {
			return fmt.Errorf("the call went well")
		}
		return nil
	})
}

// readable tells whether ranks copy from memory that isn't shared: then nothing is
// copied for them.
func readable(comms []*planner.Comm) bool {
	var copied [3]int64
	for i, err := range each(comms, func(ctx context.Context, c *planner.Comm) error {
		err := planner.Bcast(ctx, c, make([]byte, 1<<20), 1)
		copied[c.Rank()] = raw.Counters(c).Copied
		return err
	}) {
		if err != nil {
			panic(fmt.Sprint(i, err))
		}
	}
	return copied[1] == 0
}
