package check_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/submodules/check"
	"github.com/tierflow/tierflow/submodules/check/casegen"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// hugeCount is elements of at least a byte: a rank's buffer, or its block, has more
// bytes than 32 bits count.
const hugeCount = 1<<32 + 1000

// huge makes a drawn case one of more than 4 GiB, in segments of the given size; by
// then inner segments of some bytes would be billions.
func huge(t *testing.T, c casegen.Case, segment int64) casegen.Case {
	t.Helper()
	r := &c.Request
	r.Count = hugeCount
	if n := r.Counts.Len(); n > 0 {
		counts := make([]int, n)
		for i := range counts {
			counts[i] = i % 3 * hugeCount
		}
		var err error
		if r.Counts, err = tasks.NewCounts(counts); err != nil {
			t.Fatal(err)
		}
		r.Count = r.Counts.Max()
	}
	if n := r.Matrix.Len(); n > 0 {
		rows := make([][]int, n)
		for from := range rows {
			for to := range n {
				rows[from] = append(rows[from], (from+to)%3*hugeCount)
			}
		}
		var err error
		if r.Matrix, err = tasks.NewMatrix(rows); err != nil {
			t.Fatal(err)
		}
		r.Count = r.Matrix.Max()
	}
	c.Plan.Segment = segment
	for _, key := range c.Plan.Keys() {
		if choice, _ := c.Plan.Choice(key); choice.Inner > 0 {
			choice.Inner = segment / 2
			c.Plan = c.Plan.Set(key, choice)
		}
	}
	return c
}

// Offsets of more than 32 bits are right in every collective, in few segments and in
// passes.
func TestHugeMessages(t *testing.T) {
	for _, kind := range []struct {
		topo    string
		segment int64
		draws   int
		passes  bool
	}{
		{"a:3,b:1,c:2", 1<<30 + 24, 30, false},
		{"4x2/rr", tasks.Whole, 10, false},
		{"2x1", 2<<20 + 16, 3, true},
	} {
		topology := tasktest.Topology(t, kind.topo)
		for _, coll := range tasks.Requestable() {
			if coll == tasks.Barrier {
				continue
			}
			o := casegen.Options{Coll: coll, Topology: topology, Registry: all.Submodules()}
			draw, checked := rand.New(rand.NewPCG(1, uint64(coll))), 0
			for range kind.draws {
				c := huge(t, o.Draw(draw), kind.segment)
				_, passes, _, err := tasks.Passes(c.Request, c.Plan)
				if err == nil {
					_, err = check.Request(c.Request, c.Topology, c.Plan, all.Submodules(), 10*maxSteps)
				}
				switch {
				case errors.Is(err, check.ErrTooLarge), errors.Is(err, submodules.ErrUnsupported), errors.Is(err, tasks.ErrPlan):
					continue
				case err != nil:
					t.Errorf("%v\n%v", c, err)
				case (passes > 0) == (kind.passes && !c.Request.Differ()): // of blocks that differ there are none
					checked++
				}
			}
			if checked == 0 {
				t.Errorf("no %v was checked on %s with fs=%s", coll, kind.topo, tasks.FormatBytes(kind.segment))
			}
		}
	}
}
