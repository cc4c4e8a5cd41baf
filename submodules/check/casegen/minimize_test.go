package casegen_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/submodules/check/casegen"
	"github.com/tierflow/tierflow/tasks"
)

func makeCase(t *testing.T, r tasks.Request, topo, plan string) casegen.Case {
	t.Helper()
	c := casegen.Case{Request: r}
	var err error
	if c.Topology, err = levels.Parse(topo); err != nil {
		t.Fatal(err)
	}
	if c.Plan, err = tasks.ParsePlan(plan); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSmaller(t *testing.T) {
	c := makeCase(t, tasks.Request{Coll: tasks.Bcast, Count: 9, Type: tasks.Uint8, Root: 3}, "2x2/rr", "shape=han,fs=4,w=2,i=adapt/chain/2,s=sm")
	var got []string
	for _, s := range casegen.Smaller(c) {
		got = append(got, s.String())
	}
	const plan = " with plan shape=han,fs=4B,w=2,i=adapt/chain/2B,s=sm"
	const rest = "bcast 9 u8 root 3 on 2x2/rr with plan "
	want := []string{
		"bcast 9 u8 root 0 on 2x1" + plan, // ranks 0 and 1
		"bcast 9 u8 root 1 on 2x1" + plan, // ranks 2 and 3
		"bcast 9 u8 root 0 on node0:2,node1:1/rr" + plan,
		"bcast 9 u8 root 2 on node0:1,node1:2" + plan,
		"bcast 9 u8 root 2 on node0:2,node1:1" + plan,
		"bcast 9 u8 root 2 on node0:2,node1:1/rr" + plan,
		"bcast 9 u8 root 3 on 2x2" + plan,
		"bcast 0 u8 root 3 on 2x2/rr" + plan,
		"bcast 1 u8 root 3 on 2x2/rr" + plan,
		"bcast 4 u8 root 3 on 2x2/rr" + plan,
		"bcast 8 u8 root 3 on 2x2/rr" + plan,
		"bcast 9 u8 root 0 on 2x2/rr" + plan,
		rest + "shape=han,fs=all,w=2,i=adapt/chain/2B,s=sm",
		rest + "shape=han,fs=4B,w=1,i=adapt/chain/2B,s=sm",
		rest + "shape=flat,fs=4B,w=2,i=adapt/chain/2B,s=sm",
		rest + "shape=han,fs=4B,w=2,i=adapt/chain,s=sm",
		rest + "shape=han,fs=4B,w=2,i=adapt//2B,s=sm",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("smaller cases (-want +got):\n%s", diff)
	}
}

func TestMinimize(t *testing.T) {
	r := tasks.Request{Coll: tasks.Allreduce, Count: 1000, Type: tasks.Float64, Op: tasks.Sum, InPlace: true}
	c := makeCase(t, r, "3x2x4/rr", "shape=han,fs=64,w=4,i=adapt/chain/16,m=sm,s=sm//8")
	for _, tc := range []struct {
		name  string
		fails func(casegen.Case) bool
		want  string
	}{
		{
			"everything", func(casegen.Case) bool { return true },
			"allreduce 0 f64 sum on 1x1x1 with plan shape=flat,fs=all,w=1,i=adapt,m=sm,s=sm",
		},
		{
			"nothing smaller", func(o casegen.Case) bool { return o.String() == c.String() },
			c.String(),
		},
		{
			"three ranks and a window", func(o casegen.Case) bool {
				return o.Topology.Size() >= 3 && o.Plan.Window > 1 && o.Plan.Shape == tasks.Han
			},
			"allreduce 0 f64 sum on 3x1x1 with plan shape=han,fs=all,w=4,i=adapt,m=sm,s=sm",
		},
		{
			"17 elements in chains", func(o casegen.Case) bool {
				i, _ := o.Plan.Choice("i")
				return o.Request.Count >= 17 && i.Algorithm == "chain" && o.Request.InPlace
			},
			"allreduce 17 f64 sum in place on 1x1x1 with plan shape=flat,fs=all,w=1,i=adapt/chain,m=sm,s=sm",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := casegen.Minimize(c, tc.fails).String(); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// Of shapes with levels the plainest is left, if any fails.
func TestMinimizeShape(t *testing.T) {
	c := makeCase(t, tasks.Request{Coll: tasks.Allreduce, Count: 10, Type: tasks.Int32, Op: tasks.Sum}, "2x2", "shape=rsag,fs=all,w=1,i=adapt,s=sm")
	for _, tc := range []struct {
		fails func(tasks.Shape) bool
		want  tasks.Shape
	}{
		{func(s tasks.Shape) bool { return s != tasks.Flat }, tasks.Han},
		{func(s tasks.Shape) bool { return s == tasks.RSAG }, tasks.RSAG},
		{func(tasks.Shape) bool { return true }, tasks.Flat},
	} {
		if got := casegen.Minimize(c, func(o casegen.Case) bool { return tc.fails(o.Plan.Shape) }).Plan.Shape; got != tc.want {
			t.Errorf("shape %v is left, want %v", got, tc.want)
		}
	}
}

// TestSmallerEnds: whatever is drawn, every chain of smaller cases comes to an
// end, where nothing is left to simplify, and all cases on the way are valid.
func TestSmallerEnds(t *testing.T) {
	for seed := range uint64(100) {
		c := draw(casegen.Options{Registry: all.Submodules(), MaxRanks: 12}, seed)
		last := casegen.Minimize(c, func(o casegen.Case) bool {
			if err := o.Request.Validate(o.Topology.Size()); err != nil {
				t.Fatalf("seed %d: %v: %v", seed, o, err)
			}
			return true
		})
		if last.Topology.Size() != 1 || last.Request.Count != 0 || last.Request.Root != 0 || last.Request.InPlace {
			t.Errorf("seed %d: %v ends as %v", seed, c, last)
		}
	}
}
