package check_test

import (
	"strings"
	"testing"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// scanOf lowers a scan rank by rank. The operands of a sum are put in their order by
// arrange; after says what else a rank does.
func scanOf(arrange func(before, own tasks.Span) (a, b tasks.Span), after func(e *submodules.Emitter, c *submodules.Call)) func(e *submodules.Emitter, c *submodules.Call) {
	return func(e *submodules.Emitter, c *submodules.Call) {
		sum, last := c.Src, submodules.None
		if c.Me > 0 {
			in := e.Scratch(c.Src.Len)
			got := e.Recv(c.Group.Ranks[c.Me-1], in)
			if c.Scan.Below.Region != 0 {
				e.Copy(c.Scan.Below, in, got)
			}
			if sum = c.Scan.Through; sum.Region == 0 {
				sum = e.Scratch(c.Src.Len)
			}
			a, b := arrange(in, c.Src)
			last = e.Reduce(sum, a, b, got)
		} else if c.Scan.Through.Region != 0 {
			e.Copy(c.Scan.Through, c.Src)
		}
		if !c.IsLast() {
			e.Send(c.Group.Ranks[c.Me+1], sum, last)
		}
		after(e, c)
	}
}

// A scan is right only if each rank has the data of those through it, in their order, and
// rank 0's buffer of an exscan is left alone.
func TestScans(t *testing.T) {
	inOrder := func(before, own tasks.Span) (a, b tasks.Span) { return before, own }
	turned := func(before, own tasks.Span) (a, b tasks.Span) { return own, before }
	first := tasks.UserOp("first", false, func(a, _ uint8) uint8 { return a })
	for _, tc := range []struct {
		coll tasks.Collective
		op   tasks.Op
		scan func(e *submodules.Emitter, c *submodules.Call)
		want string
	}{
		{tasks.Scan, first, scanOf(inOrder, nothing), ""},
		{tasks.Exscan, first, scanOf(inOrder, nothing), ""},
		{tasks.Scan, tasks.Sum, scanOf(turned, nothing), ""},
		{tasks.Scan, first, scanOf(turned, nothing), "hold [1 0] from offset 0 by sx#0 reduce r1 4B, want [0 1]"},
		{tasks.Exscan, first, scanOf(turned, nothing), "hold [1 0] from offset 0 by sex#0 copy r2 4B, want [0 1]"},
		{tasks.Scan, tasks.Sum, scanOf(inOrder, func(e *submodules.Emitter, c *submodules.Call) {
			if c.Me == 2 {
				e.Copy(c.Scan.Through, c.Src, 1)
			}
		}), "want [0 1 2]"},
		{tasks.Exscan, tasks.Sum, scanOf(inOrder, func(e *submodules.Emitter, c *submodules.Call) {
			if c.Me == 0 {
				e.Copy(c.Scan.Below, c.Src)
			}
		}), "writes bytes 0 to 4 of the receive buffer of rank 0, which is the caller's"},
	} {
		r := tasks.Request{Coll: tc.coll, Count: 4, Type: tasks.Uint8, Op: tc.op}
		_, err := run(script{scan: tc.scan}, r, "3", 1)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: error %v, want %q", r, err, tc.want)
		}
	}
}
