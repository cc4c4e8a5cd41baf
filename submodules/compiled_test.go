package submodules_test

import (
	"errors"
	"testing"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// A message too long for one graph runs in passes; one that fits runs once.
func TestCompileRequest(t *testing.T) {
	topo := tasktest.Topology(t, "2x2")
	p := tasktest.Plan(t, "shape=han,fs=4,w=2,i=nbc,s=nbc")
	for _, tc := range []struct{ segments, passes, whole, rest int64 }{
		{3, 0, 0, 3},
		{tasks.MaxSegments, 0, 0, tasks.MaxSegments},
		{2*tasks.MaxSegments + 5, 2, tasks.MaxSegments, 5},
	} {
		r := tasks.Request{Coll: tasks.Bcast, Count: tc.segments, Type: tasks.Int32}
		c, err := submodules.CompileRequest(r, topo, p, 1, all.Submodules())
		if err != nil {
			t.Fatal(err)
		}
		whole := int64(0)
		if c.Whole != nil {
			whole = c.Whole.Request.Count
		}
		if c.Passes != tc.passes || whole != tc.whole || c.Stride != 4*tc.whole || c.Rest.Request.Count != tc.rest {
			t.Errorf("%v: %d passes of %d elements, %d bytes apart, and %d; want %+v", r, c.Passes, whole, c.Stride, c.Rest.Request.Count, tc)
		}
	}
	if _, err := submodules.CompileRequest(tasks.Request{Coll: tasks.Bcast, Count: 1, Type: tasks.Int32}, topo, tasks.Plan{Shape: tasks.Han}, 0, all.Submodules()); !errors.Is(err, tasks.ErrPlan) {
		t.Errorf("a plan without a segment size: %v", err)
	}
}

// The digest is the same for all ranks of a call, and another for each other call.
func TestDigest(t *testing.T) {
	seen := map[uint32]string{}
	for _, spec := range []string{"2x2", "1x4"} {
		topo := tasktest.Topology(t, spec)
		for _, text := range []string{"shape=flat,fs=4,w=2,i=nbc,s=nbc", "shape=flat,fs=8,w=2,i=nbc,s=nbc"} {
			p := tasktest.Plan(t, text)
			for _, op := range []tasks.Op{tasks.Sum, tasks.UserOp("a", true, func(a, _ int32) int32 { return a }), tasks.UserOp("b", true, func(a, _ int32) int32 { return a })} {
				r := tasks.Request{Coll: tasks.Allreduce, Count: 5, Type: tasks.Int32, Op: op}
				what := spec + " " + text + " " + op.Signature()
				first, err := submodules.CompileRequest(r, topo, p, 0, all.Submodules())
				if err != nil {
					t.Fatal(err)
				}
				last, err := submodules.CompileRequest(r, topo, p, 3, all.Submodules())
				if err != nil || first.Digest != last.Digest {
					t.Errorf("%s: digests %x and %x, %v", what, first.Digest, last.Digest, err)
				}
				for purpose, d := range map[string]uint32{"": first.Digest, "other": submodules.Digest("other", r, topo, p)} {
					if before, ok := seen[d]; ok {
						t.Errorf("%s %q has the digest of %s", what, purpose, before)
					}
					seen[d] = what
				}
			}
		}
	}
}
