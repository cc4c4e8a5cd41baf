package check_test

import (
	"cmp"
	"testing"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/submodules/check"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// TestCopiesPerByte counts, for a message of n bytes on the p ranks of one node,
// how many times n bytes are copied, sent and combined.
func TestCopiesPerByte(t *testing.T) {
	const p = 4
	type times struct{ copied, sent, reduced, shared int64 }
	for _, tc := range []struct {
		name    string
		coll    tasks.Collective
		inPlace bool
		plan    string
		want    times
		count   int64 // 0: 65536
	}{
		{"bcast by single copies: one for each receiver", tasks.Bcast, false, "s=solo", times{copied: p - 1, shared: 1}, 0},
		{"bcast through slots: one in, one out for each receiver", tasks.Bcast, false, "s=sm", times{copied: 1 + p - 1}, 0},
		{"bcast of what fits in a message's line", tasks.Bcast, false, "s=sm", times{sent: p - 1}, submodules.InlineMax / 4},
		{"bcast of one element more", tasks.Bcast, false, "s=sm", times{copied: 1 + p - 1}, submodules.InlineMax/4 + 1},
		{"bcast through rings", tasks.Bcast, false, "s=sm/rings/4KiB", times{sent: p - 1}, 0},
		{"allreduce through rings", tasks.Allreduce, false, "s=sm/rings/4KiB", times{sent: p - 1 + p - 1, reduced: p - 1}, 0},
		{"bcast over links", tasks.Bcast, false, "s=adapt/binomial", times{sent: p - 1}, 0},
		{"allreduce, reduced on read: no copy before the bcast's", tasks.Allreduce, false, "s=solo", times{copied: p - 1, reduced: p - 1, shared: p - 1 + 1}, 0},
		{"the same in place", tasks.Allreduce, true, "s=solo", times{copied: p - 1, reduced: p - 1, shared: p - 1 + 1}, 0},
		// Each rank combines a p-th of the message p−1 times; the leader copies what
		// the p−1 others combined.
		{"allreduce, slices reduced on read", tasks.Allreduce, false, "sb=solo,sr=solo/slices", times{copied: p, reduced: p - 1, shared: p + 2}, 0},
		{"allreduce through slots: into them for both tasks, out for the bcast", tasks.Allreduce, false, "s=sm", times{copied: p - 1 + 1 + p - 1, reduced: p - 1}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			topo := tasktest.Topology(t, "1x4")
			r := tasks.Request{Coll: tc.coll, Count: cmp.Or(tc.count, 1<<16), Type: tasks.Float32, InPlace: tc.inPlace}
			if r.Reduces() {
				r.Op = tasks.Sum
			}
			plan := tasktest.Plan(t, "shape=han,fs=64KiB,w=2,"+tc.plan)
			got, err := check.Request(r, topo, plan, all.Submodules(), 0)
			if err != nil {
				t.Fatal(err)
			}
			n := r.Bytes()
			// What slices collect are fractions of the message: rounded up here.
			up := func(b int64) int64 { return (b + n - 1) / n }
			if have := (times{up(got.Copied), up(got.Sent), up(got.Reduced), up(got.Shared)}); have != tc.want {
				t.Errorf("got %+v times the message, want %+v", have, tc.want)
			}
		})
	}
}
