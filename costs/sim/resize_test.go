package sim_test

import (
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/tasks"
)

// A resized job takes exactly as long as one compiled for its size.
func TestResized(t *testing.T) {
	for _, tc := range []struct {
		coll        tasks.Collective
		topo        string
		from, to    int64
		plan, other string // for from and to bytes
	}{
		{tasks.Bcast, "5x3", 128 << 10, 2 << 20, "shape=han,fs=8KiB,w=4,i=adapt/chain,s=sm", "shape=han,fs=128KiB,w=4,i=adapt/chain,s=sm"},
		{tasks.Bcast, "6x1", 1 << 20, 64 << 10, "shape=han,fs=all,w=4,i=circulant/blocks/64KiB", "shape=han,fs=all,w=4,i=circulant/blocks/4KiB"},
		{tasks.Reduce, "4x4", 96 << 10, 3 << 20, "shape=han,fs=32KiB,w=2,ir=adapt/binary/8KiB,sr=sm/rings", "shape=han,fs=1MiB,w=2,ir=adapt/binary/256KiB,sr=sm/rings"},
		{tasks.Allreduce, "4x2", 64 << 10, 1 << 20, "shape=rsag,fs=16KiB,w=3,i=adapt/ring,s=solo", "shape=rsag,fs=256KiB,w=3,i=adapt/ring,s=solo"},
		{tasks.Allreduce, "5x2", 40 << 10, 4 << 10, "shape=flat-ar,fs=all,w=1,i=nbc/rabenseifner", "shape=flat-ar,fs=all,w=1,i=nbc/rabenseifner"},
		{tasks.Alltoall, "3x2", 64 << 10, 96 << 10, "shape=lanes,fs=all,w=1,i=nbc/pairwise,s=sm", "shape=lanes,fs=all,w=1,i=nbc/pairwise,s=sm"},
	} {
		times := func(j *sim.Job) sim.Time {
			r, err := j.Run(machine.Assumed(), sim.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return r.Time
		}
		small, large := job(t, tc.coll, tc.topo, tc.from, tc.plan), job(t, tc.coll, tc.topo, tc.to, tc.other)
		before := times(small)
		if got, want := times(small.Resized(tc.to, tc.from)), times(large); got != want || got == before {
			t.Errorf("%v on %s %s of %d bytes: %v, want %v; %v of %d", tc.coll, tc.topo, tc.plan, tc.to, got, want, before, tc.from)
		}
		if times(small) != before {
			t.Errorf("%v on %s: resizing changed the job", tc.coll, tc.topo)
		}
	}
}
