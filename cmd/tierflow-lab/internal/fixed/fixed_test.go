package fixed_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/fixed"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// Every decision of every library is a plan that compiles, on whatever topology.
func TestPlansCompile(t *testing.T) {
	for _, spec := range []string{"1", "5", "1x4", "2x1", "3x1", "7x1", "16x1", "4x2", "8x2", "5x3", "4x2/rr", "a:3,b:1", "2x2x3", "33x1"} {
		on := tasktest.Topology(t, spec)
		for _, coll := range fixed.Covered() {
			for _, bytes := range []int64{0, 4, 64, 600, 5000, 20_000, 100_000, 600_000, 3 << 20} {
				r := tasktest.Request(coll, bytes)
				for _, lib := range fixed.Libraries() {
					d, err := lib.Decide(r, on)
					if err != nil {
						t.Fatal(err)
					}
					g, err := tasks.Expand(r, on, d.Plan, 0)
					if err == nil {
						err = all.Submodules().Supports(g)
					}
					if err != nil {
						t.Errorf("%v on %s by %s, %s: %v", r, spec, lib.Name, d.Theirs, err)
					}
				}
			}
		}
	}
}

// Decisions at and beside thresholds, read off the libraries' files by hand.
func TestDecisions(t *testing.T) {
	for _, test := range []struct {
		lib, on string
		coll    tasks.Collective
		bytes   int64
		want    string // theirs, then the plan's choices
	}{
		{"openmpi", "16x1", tasks.Bcast, 4092, "tuned knomial: shape=flat,"},
		{"openmpi", "16x1", tasks.Bcast, 4096, "tuned binomial: "},
		{"openmpi", "16x1", tasks.Bcast, 1 << 20, "tuned scatter_allgather: shape=flat-sag,fs=all,w=4,iag=nbc/recdoubling,is=nbc/binomial"},
		{"openmpi", "4x4", tasks.Bcast, 4096, "tuned binomial: shape=flat,"},
		{"openmpi", "16x1", tasks.Allreduce, 60, "tuned recursive_doubling: "}, // a ring of 15 elements on 16 ranks
		{"openmpi", "16x1", tasks.Allreduce, 4096, "tuned rabenseifner: shape=flat-ar,"},
		{"openmpi", "3x1", tasks.Allreduce, 4096, "tuned ring: shape=flat-ar,fs=all,w=4,iar=nbc/ring"},
		{"openmpi", "40x1", tasks.Allreduce, 124, "tuned recursive_doubling: "},
		{"openmpi", "128x1", tasks.Allreduce, 64 << 10, "tuned nonoverlapping: shape=flat,fs=all,w=4,ib=nbc/knomial,ir=adapt/binomial"},
		{"openmpi", "6x1", tasks.Allgather, 1 << 10, "tuned bruck: "},
		{"openmpi", "33x1", tasks.Allgather, 2 << 10, "tuned ring: "},
		{"openmpi", "7x1", tasks.Reduce, 1 << 10, "tuned binary: "},
		{"openmpi", "7x1", tasks.Reduce, 8 << 10, "tuned chain: shape=flat,fs=all,w=4,ir=adapt/chain"},
		{"openmpi", "16x1", tasks.Alltoall, 64, "tuned modified_bruck: "},
		{"han", "16x1", tasks.Bcast, 4096, "HAN leaves it to tuned binomial: "},
		{"han", "a:2,b:1", tasks.Bcast, 4096, "HAN leaves it to tuned linear: "},
		{"han", "8x4", tasks.Bcast, 1 << 20, "HAN's pipeline of 64 KiB, libnbc between nodes, tuned in them: shape=han-lockstep,fs=64KiB,w=4,ib=nbc/binomial,sb=nbc/linear"},
		{"han", "4x4", tasks.Allreduce, 1 << 20, "HAN's pipeline of 64 KiB, libnbc between nodes, tuned in them: shape=han-lockstep,fs=64KiB,w=4,ib=nbc/linear,ir=nbc/rabenseifner,sb=nbc/linear,sr=adapt/binomial"},
		{"han", "2x4", tasks.Reduce, 1 << 20, "HAN's pipeline of 64 KiB, libnbc between nodes, tuned in them: shape=han-lockstep,fs=64KiB,w=4,ir=nbc/chain/8KiB,sr=adapt/binomial"},
		{"mpich", "16x1", tasks.Bcast, 12 << 10, "binomial: "},
		{"mpich", "16x1", tasks.Bcast, 12<<10 + 4, "scatter_recursive_doubling_allgather: shape=flat-sag,"},
		{"mpich", "12x1", tasks.Bcast, 12<<10 + 4, "scatter_ring_allgather: shape=flat-sag,fs=all,w=4,iag=nbc/ring,is=nbc/binomial"},
		{"mpich", "2x2", tasks.Bcast, 4 << 20, "composition alpha: binomial between leaders: shape=han,fs=all,w=4,ib=adapt/binomial,s=sm/slots/8KiB"},
		{"mpich", "16x2", tasks.Bcast, 64 << 10, "composition beta: between leaders scatter and allgather: shape=sag,"},
		{"mpich", "16x2", tasks.Bcast, 512 << 10, "scatter_recursive_doubling_allgather: shape=flat-sag,"},
		{"mpich", "4x2", tasks.Allreduce, 8, "composition alpha: between leaders recursive_doubling: shape=ar,"},
		{"mpich", "4x2", tasks.Allreduce, 64, "composition alpha: between leaders reduce_scatter_allgather: shape=ar,fs=all,w=4,iar=nbc/rabenseifner,s=sm/slots/8KiB"},
		{"mpich", "4x2", tasks.Reduce, 2048, "leaders: binomial: "},
		{"mpich", "4x2", tasks.Reduce, 2052, "leaders: reduce_scatter_gather: "},
		{"mpich", "8x1", tasks.Allgather, 64 << 10, "ring: "},
		{"mpich", "8x1", tasks.Allgather, 64<<10 - 4, "recursive_doubling: "},
		{"mpich", "8x1", tasks.Alltoall, 256, "brucks: "},
		{"mpich", "8x1", tasks.Alltoall, 260, "scattered: "},
	} {
		on := tasktest.Topology(t, test.on)
		lib := fixed.Libraries()[slices.Index(fixed.Names(), test.lib)]
		d, err := lib.Decide(tasktest.Request(test.coll, test.bytes), on)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Theirs + ": " + d.Plan.String(); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %v on %s: got %s, want %s", test.lib, tasktest.Request(test.coll, test.bytes), test.on, got, test.want)
		}
	}
}

// What no table covers is an error that says so.
func TestUndecided(t *testing.T) {
	on := tasktest.Topology(t, "4x2")
	for _, r := range []tasks.Request{{Coll: tasks.Barrier}, tasktest.Request(tasks.Scan, 64)} {
		for _, lib := range fixed.Libraries() {
			if _, err := lib.Decide(r, on); err == nil || !strings.Contains(err.Error(), "no decision is written down") {
				t.Errorf("%s: %v: got error %v", lib.Name, r, err)
			}
		}
	}
}
