package submodules_test

import (
	"strings"
	"testing"

	"github.com/tierflow/tierflow/dag/dagtest"
	"github.com/tierflow/tierflow/submodules/check"
	"github.com/tierflow/tierflow/tasks"
)

// TestGolden holds whole programs to be read by eye: ranks in order, each step a
// line. Every one of them is proved, too.
func TestGolden(t *testing.T) {
	for _, tc := range []struct {
		name string
		r    tasks.Request
		topo string
		plan string
	}{
		{"bcast_4_chain", bcast(96, 0), "4", "shape=flat,fs=48,w=1,s=adapt/chain/32"},
		{"bcast_5_binomial", bcast(64, 2), "5", "shape=flat,fs=all,w=1,s=adapt/binomial"},
		{"bcast_5_circulant", bcast(96, 1), "5", "shape=flat,fs=all,w=1,s=circulant/blocks/32"},
		{"reduce_5_circulant", tasks.Request{Coll: tasks.Reduce, Count: 24, Type: tasks.Float32, Op: tasks.Sum, Root: 1}, "5", "shape=flat,fs=all,w=1,s=circulant/blocks/32"},
		{"allreduce_5_circulant", allreduce(80), "5", "shape=ar,fs=all,w=1,s=circulant/blocks"},
		{"bcast_2x3_binomial_slots", bcast(200, 4), "2x3", "shape=han,fs=128,w=2,i=adapt/binomial,s=sm"},
		{"bcast_3_slots", bcast(160, 0), "3", "shape=han,fs=64,w=2,s=sm//32"},
		{"allreduce_4_binomial", allreduce(64), "4", "shape=flat,fs=all,w=1,s=adapt/binomial"},
		{"allreduce_2x2_chain_slots", allreduce(160), "2x2", "shape=han,fs=64,w=1,i=adapt/chain,s=sm"},
		{"allreduce_4x2_binomial_slots", allreduce(128), "4x2", "shape=han,fs=64,w=2,i=adapt/binomial,s=sm"},
		{"allreduce_a3b1c2_binomial_slots", allreduce(64), "a:3,b:1,c:2", "shape=han,fs=64,w=1,i=adapt/binomial,s=sm"},
		{"allreduce_2x2x2_binomial_slots", allreduce(64), "2x2x2", "shape=han,fs=64,w=1,i=adapt,s=adapt,m=sm"},
		{"reduce_2x2_root3_binomial_slots", tasks.Request{Coll: tasks.Reduce, Count: 40, Type: tasks.Float32, Op: tasks.Sum, Root: 3}, "2x2", "shape=han,fs=64,w=1,i=adapt,s=sm"},
		{"allgather_2x2_segments", tasks.Request{Coll: tasks.Allgather, Count: 4, Type: tasks.Float32}, "2x2", "shape=han,fs=8,w=2,iag=nbc/ring,s=sm"},
		{"gather_2x2rr_root1", tasks.Request{Coll: tasks.Gather, Count: 16, Type: tasks.Float32, Root: 1}, "2x2/rr", "shape=han,fs=32,w=1,i=adapt/linear,s=sm"},
		{"allreduce_1", allreduce(64), "1", "shape=han,fs=all,w=1,s=sm"},
		{"scan_a2b1c2_chain_slots", tasks.Request{Coll: tasks.Scan, Count: 16, Type: tasks.Float32, Op: tasks.Sum}, "a:2,b:1,c:2", "shape=han,fs=all,w=1,i=adapt/chain,s=sm"},
		{"exscan_2x2_recdoubling_solo", tasks.Request{Coll: tasks.Exscan, Count: 16, Type: tasks.Float32, Op: tasks.Sum}, "2x2", "shape=han,fs=all,w=1,i=nbc/recdoubling,s=solo"},
		{"exscan_5_recdoubling", tasks.Request{Coll: tasks.Exscan, Count: 16, Type: tasks.Float32, Op: tasks.Sum}, "5", "shape=flat,fs=all,w=1,s=nbc/recdoubling"},
		{"alltoall_3_linear", tasks.Request{Coll: tasks.Alltoall, Count: 4, Type: tasks.Float32}, "3", "shape=flat,fs=all,w=1,s=adapt/linear"},
		{"alltoall_2x2_han", tasks.Request{Coll: tasks.Alltoall, Count: 2, Type: tasks.Float32}, "2x2", "shape=han,fs=all,w=1,i=nbc/pairwise,s=sm/rings,sg=adapt/linear"},
		{"barrier_2x3_binomial_slots", tasks.Request{Coll: tasks.Barrier}, "2x3", "shape=han,fs=all,w=1,i=adapt,s=sm"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			progs := compile(t, tc.r, tc.topo, tc.plan)
			text := tc.r.String() + " on " + tc.topo + " with " + tc.plan + "\n"
			for _, p := range progs {
				text += "\n" + p.String()
			}
			if _, err := check.Programs(progs); err != nil {
				t.Error(err)
			}
			if strings.Count(text, "\n") > 200 {
				t.Errorf("%d lines are too many to read", strings.Count(text, "\n"))
			}
			dagtest.Golden(t, "../testdata/steps/"+tc.name+".txt", text)
		})
	}
}
