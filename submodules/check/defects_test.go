package check_test

import (
	"strings"
	"testing"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/check"
	"github.com/tierflow/tierflow/tasks"
)

// script is a submodule that lowers as a test says.
type script struct {
	bcast, reduce, scan func(e *submodules.Emitter, c *submodules.Call)
}

func (script) Name() string            { return "script" }
func (script) Doc() string             { return "what a test says" }
func (script) Reach() submodules.Reach { return submodules.Anywhere }

func (script) Algorithms() []submodules.Algorithm {
	return []submodules.Algorithm{{Name: "only", Ops: []tasks.Collective{tasks.Bcast, tasks.Reduce, tasks.Scan, tasks.Exscan}}}
}

func (s script) Lower(e *submodules.Emitter, c *submodules.Call) error {
	lower := s.bcast
	switch {
	case c.Kind.Op == tasks.Reduce:
		lower = s.reduce
	case c.Kind.Op.Scans():
		lower = s.scan
	}
	lower(e, c)
	return nil
}

// The right ways, over links and through slots. The cases below differ from
// them in one thing each.

func sendAll(e *submodules.Emitter, c *submodules.Call) {
	if c.Me != c.Group.Leader {
		e.Recv(c.Group.Lead(), c.Dst)
		return
	}
	for _, r := range c.Others() {
		e.Send(r, c.Dst)
	}
}

func gatherAll(e *submodules.Emitter, c *submodules.Call) {
	if c.Me != c.Group.Leader {
		e.Send(c.Group.Lead(), c.Src)
		return
	}
	sum, last := c.Src, submodules.None
	for _, r := range c.Others() {
		in := e.Scratch(c.Src.Len)
		last = e.Reduce(c.Dst, sum, in, last, e.Recv(r, in))
		sum = c.Dst
	}
}

func slots(e *submodules.Emitter, c *submodules.Call) {
	if c.Me != c.Group.Leader {
		told := e.Await(c.Group.Lead())
		e.Notify(c.Group.Lead(), tasks.Span{}, e.Copy(c.Dst, submodules.Exposed(told, 0, c.Dst.Len), told))
		return
	}
	through(e, c, e.Slot(c.Dst.Len))
}

// through is a bcast's leader, with a slot.
func through(e *submodules.Emitter, c *submodules.Call, slot tasks.Span) {
	in := e.Copy(slot, c.Dst)
	for _, r := range c.Others() {
		e.Notify(r, slot, in)
		e.Await(r)
	}
}

// on lowers differently on the leader and on the others.
func on(leader, member func(e *submodules.Emitter, c *submodules.Call)) func(e *submodules.Emitter, c *submodules.Call) {
	return func(e *submodules.Emitter, c *submodules.Call) {
		if c.Me == c.Group.Leader {
			leader(e, c)
		} else {
			member(e, c)
		}
	}
}

func nothing(*submodules.Emitter, *submodules.Call) {}

// run checks a request of four bytes per segment on n ranks of one node.
func run(s script, r tasks.Request, n string, window int) (check.Report, error) {
	return runLimited(s, r, n, window, 0)
}

func runLimited(s script, r tasks.Request, n string, window, limit int) (check.Report, error) {
	topo, err := levels.Parse(n)
	if err != nil {
		return check.Report{}, err
	}
	p := tasks.Plan{Shape: tasks.Flat, Segment: 4, Window: window}.Set("s", tasks.Choice{Submodule: "script"})
	return check.Request(r, topo, p, submodules.Registry{s}, limit)
}

var (
	bcast     = tasks.Request{Coll: tasks.Bcast, Count: 4, Type: tasks.Uint8}
	allreduce = tasks.Request{Coll: tasks.Allreduce, Count: 4, Type: tasks.Uint8, Op: tasks.Sum}
	barrier   = tasks.Request{Coll: tasks.Barrier}
)

func longer(r tasks.Request, segments int64) tasks.Request {
	r.Count *= segments
	return r
}

// TestRightWays: without a defect there is nothing to report, and the report
// counts what would be done, joins included.
func TestRightWays(t *testing.T) {
	for _, tc := range []struct {
		name string
		s    script
		r    tasks.Request
		want check.Report
	}{
		{"links", script{bcast: sendAll, reduce: gatherAll}, longer(allreduce, 2), check.Report{Steps: 21, Messages: 8, Sent: 32, Reduced: 16}},
		{"slots", script{bcast: slots}, longer(bcast, 2), check.Report{Steps: 23, Copied: 24}},
		{"nothing to say", script{bcast: sendAll, reduce: gatherAll}, barrier, check.Report{Steps: 10, Messages: 4}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := run(tc.s, tc.r, "3", 1)
			if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// TestDefects breaks the right ways in one place each. The report names request,
// plan and the steps at fault.
func TestDefects(t *testing.T) {
	first := allreduce
	first.Op = tasks.UserOp("first", false, func(a, _ uint8) uint8 { return a })
	inPlace := allreduce
	inPlace.InPlace = true

	for _, tc := range []struct {
		name   string
		s      script
		r      tasks.Request
		n      string // ranks
		window int
		want   string
	}{
		// Messages.
		{
			"a recv without a send",
			script{bcast: on(nothing, sendAll)},
			bcast, "2", 1,
			"sb#0 recv r0>r1 4B: rank 0 never says it",
		},
		{
			"a send without a recv",
			script{bcast: on(sendAll, nothing)},
			bcast, "2", 1,
			"sb#0 send r0>r1 4B: rank 1 never hears it",
		},
		{
			"a dropped notify",
			script{bcast: on(slots, func(e *submodules.Emitter, c *submodules.Call) {
				told := e.Await(c.Group.Lead())
				e.Copy(c.Dst, submodules.Exposed(told, 0, 4), told)
			})},
			bcast, "2", 1,
			"sb#0 await r1>r0: rank 1 never says it",
		},
		{
			"a recv too many",
			script{bcast: on(sendAll, func(e *submodules.Emitter, c *submodules.Call) {
				sendAll(e, c)
				sendAll(e, c)
			})},
			bcast, "2", 1,
			"sb#0 recv r0>r1 4B: rank 0 never says it",
		},
		{
			"a shortened recv",
			script{bcast: on(sendAll, func(e *submodules.Emitter, c *submodules.Call) {
				e.Recv(0, c.Dst.Cut(0, 3))
			})},
			bcast, "2", 1,
			"sb#0 send r0>r1 4B meets sb#0 recv r0>r1 3B",
		},
		{
			"a send that meets an await",
			script{bcast: on(sendAll, func(e *submodules.Emitter, c *submodules.Call) {
				e.Await(0)
			})},
			bcast, "2", 1,
			"sb#0 send r0>r1 4B meets sb#0 await r0>r1",
		},
		{
			"a step that meets another task's",
			script{
				reduce: func(e *submodules.Emitter, c *submodules.Call) {
					gatherAll(e, c)
					if c.Me == 0 {
						e.Send(1, c.Dst)
					}
				},
				bcast: on(nothing, sendAll),
			},
			allreduce, "2", 1,
			"sr#0 send r0>r1 4B meets sb#0 recv r0>r1 4B",
		},
		{
			"a send to oneself",
			script{bcast: on(func(e *submodules.Emitter, c *submodules.Call) {
				e.Send(0, c.Dst)
			}, nothing)},
			bcast, "2", 1,
			"rank 0 talks to rank 0",
		},
		{
			"exchanged edge ordinals",
			script{bcast: on(func(e *submodules.Emitter, c *submodules.Call) {
				e.Send(1, c.Dst.Cut(0, 2))
				e.Send(1, c.Dst.Cut(2, 2))
			}, func(e *submodules.Emitter, c *submodules.Call) {
				e.Recv(0, c.Dst.Cut(2, 2))
				e.Recv(0, c.Dst.Cut(0, 2))
			})},
			bcast, "2", 1,
			"rank 1's receive buffer: bytes 0 to 2 hold [0] from offset 2 by sb#0 recv r0>r1 2B, want [0]",
		},

		// Order.
		{
			"sends before recvs on both sides",
			script{bcast: nothing, reduce: func(e *submodules.Emitter, c *submodules.Call) {
				for _, r := range c.Others() {
					e.Recv(r, e.Scratch(4), e.Send(r, c.Src))
				}
			}},
			allreduce, "2", 1,
			"deadlock: these wait for each other; sr#0 send r0>r1 4B; sr#0 recv r1>r0 4B; sr#0 send r1>r0 4B; sr#0 recv r0>r1 4B",
		},
		{
			"awaits before notifies on both sides",
			script{bcast: nothing, reduce: func(e *submodules.Emitter, c *submodules.Call) {
				for _, r := range c.Others() {
					e.Notify(r, tasks.Span{}, e.Await(r))
				}
			}},
			allreduce, "2", 1,
			"deadlock: these wait for each other; sr#0 ",
		},
		{
			"a dropped dependency between copy and notify",
			script{bcast: on(func(e *submodules.Emitter, c *submodules.Call) {
				slot := e.Slot(4)
				e.Copy(slot, c.Dst)
				e.Notify(1, slot)
				e.Await(1)
			}, slots)},
			bcast, "2", 1,
			"sb#0 copy r0 4B and sb#0 copy r1 4B touch the same bytes in no order",
		},
		{
			"a dropped dependency between await and copy",
			script{bcast: on(slots, func(e *submodules.Emitter, c *submodules.Call) {
				told := e.Await(0)
				e.Notify(0, tasks.Span{}, e.Copy(c.Dst, submodules.Exposed(told, 0, 4)))
			})},
			bcast, "2", 1,
			"sb#0 copy r1 4B",
		},
		{
			// Nobody ever writes what is exposed, but before the await has ended
			// nobody knows where it is either.
			"exposed memory touched before the await",
			script{bcast: on(func(e *submodules.Emitter, c *submodules.Call) {
				e.Notify(1, c.Dst)
				e.Await(1)
			}, func(e *submodules.Emitter, c *submodules.Call) {
				told := e.Await(0)
				e.Notify(0, tasks.Span{}, e.Copy(c.Dst, submodules.Exposed(told, 0, 4)))
			})},
			bcast, "2", 1,
			"sb#0 copy r1 4B may touch peer(0)[0:4] before sb#0 await r0>r1",
		},
		{
			"a dropped dependency between recv and reduce",
			script{bcast: sendAll, reduce: on(func(e *submodules.Emitter, c *submodules.Call) {
				in := e.Scratch(4)
				e.Recv(1, in)
				e.Reduce(c.Dst, c.Src, in)
			}, gatherAll)},
			allreduce, "2", 1,
			"sr#0 reduce r0 4B: reads bytes 0 to 4, of which byte 0 holds nothing of scratch[0:4]",
		},
		{
			"two writes in no order",
			script{bcast: on(func(e *submodules.Emitter, c *submodules.Call) {
				e.Send(1, c.Dst)
				e.Send(1, c.Dst)
			}, func(e *submodules.Emitter, c *submodules.Call) {
				e.Recv(0, c.Dst)
				e.Recv(0, c.Dst)
			})},
			bcast, "2", 1,
			"sb#0 recv r0>r1 4B and sb#0 recv r0>r1 4B touch the same bytes in no order",
		},
		{
			"a slot used again by a task that doesn't wait",
			script{bcast: func(e *submodules.Emitter, c *submodules.Call) {
				if c.Me == c.Group.Leader && c.Segment == 1 {
					slot := e.Slot(c.Dst.Len)
					slot.Off += 64 // past its own piece of the window, into segment 2's
					through(e, c, slot)
					return
				}
				slots(e, c)
			}},
			longer(bcast, 4), "2", 3,
			"touch the same bytes in no order",
		},
		{
			"a run that ends while a peer reads its slot",
			script{bcast: on(func(e *submodules.Emitter, c *submodules.Call) {
				slot := e.Slot(4)
				e.Notify(1, slot, e.Copy(slot, c.Dst))
			}, func(e *submodules.Emitter, c *submodules.Call) {
				told := e.Await(0)
				e.Copy(c.Dst, submodules.Exposed(told, 0, 4), told)
			})},
			bcast, "2", 1,
			"sb#0 copy r1 4B touches memory of rank 0, whose run may have ended",
		},
		{
			"a barrier that waits for nobody",
			script{bcast: nothing, reduce: nothing},
			barrier, "2", 1,
			"rank 1 may leave the barrier before rank 0 has come",
		},
		{
			"half a barrier",
			script{bcast: nothing, reduce: gatherAll},
			barrier, "2", 1,
			"rank 1 may leave the barrier before rank 0 has come",
		},

		// Data.
		{
			"a swapped span",
			script{bcast: sendAll, reduce: on(func(e *submodules.Emitter, c *submodules.Call) {
				in := e.Scratch(4)
				e.Reduce(c.Dst, c.Src.Cut(0, 2), in.Cut(2, 2), e.Recv(1, in))
			}, gatherAll)},
			allreduce, "2", 1,
			"sr#0 reduce r0 2B: operands recv[0:4], send[0:2], scratch[2:4] differ in length",
		},
		{
			"bytes of different offsets",
			script{bcast: sendAll, reduce: on(func(e *submodules.Emitter, c *submodules.Call) {
				in := e.Scratch(4)
				e.Reduce(c.Dst.Cut(0, 2), c.Src.Cut(0, 2), in.Cut(2, 2), e.Recv(1, in))
			}, gatherAll)},
			allreduce, "2", 1,
			"sr#0 reduce r0 2B: combines bytes from offset 0 with bytes from offset 2",
		},
		{
			"reduced twice",
			script{bcast: sendAll, reduce: on(func(e *submodules.Emitter, c *submodules.Call) {
				in := e.Scratch(4)
				once := e.Reduce(c.Dst, c.Src, in, e.Recv(1, in))
				e.Reduce(c.Dst, c.Dst, in, once)
			}, gatherAll)},
			allreduce, "2", 1,
			"sr#0 reduce r0 4B: combines the data of rank 1 twice",
		},
		{
			"the wrong order for a non-commutative operation",
			script{bcast: sendAll, reduce: on(func(e *submodules.Emitter, c *submodules.Call) {
				in := e.Scratch(4)
				e.Reduce(c.Dst, in, c.Src, e.Recv(1, in))
			}, gatherAll)},
			first, "2", 1,
			"bytes 0 to 4 hold [1 0] from offset 0 by sr#0 reduce r0 4B, want [0 1]",
		},
		{
			"one rank's data left out",
			script{bcast: sendAll, reduce: func(e *submodules.Emitter, c *submodules.Call) {
				if c.Me == 2 {
					return
				}
				c.Group = &levels.Group{Ranks: []levels.Rank{0, 1}}
				gatherAll(e, c)
			}},
			allreduce, "3", 1,
			"bytes 0 to 4 hold [0 1] from offset 0 by sr#0 reduce r0 4B, want [0 1 2]",
		},
		{
			"an uninitialised read",
			script{bcast: on(func(e *submodules.Emitter, c *submodules.Call) {
				e.Send(1, e.Scratch(4))
			}, sendAll)},
			bcast, "2", 1,
			"sb#0 send r0>r1 4B: reads bytes 0 to 4, of which byte 0 holds nothing of scratch[0:4]",
		},
		{
			"a read of the output in place of the input",
			script{bcast: sendAll, reduce: on(gatherAll, func(e *submodules.Emitter, c *submodules.Call) {
				e.Send(0, c.Dst)
			})},
			allreduce, "2", 1,
			"sr#0 send r1>r0 4B: reads bytes 0 to 4, of which byte 0 holds nothing of recv[0:4]",
		},
		{
			"a read of the send buffer in place",
			script{bcast: sendAll, reduce: on(gatherAll, func(e *submodules.Emitter, c *submodules.Call) {
				e.Send(0, tasks.Span{Region: tasks.Send, Len: 4})
			})},
			inPlace, "2", 1,
			"sr#0 send r1>r0 4B: touches bytes 0 to 4 of rank 1's send, which has 0",
		},
		{
			"a write into the send buffer",
			script{bcast: sendAll, reduce: on(func(e *submodules.Emitter, c *submodules.Call) {
				in := e.Scratch(4)
				e.Copy(c.Dst, c.Src, e.Reduce(c.Src, c.Src, in, e.Recv(1, in)))
			}, gatherAll)},
			allreduce, "2", 1,
			"sr#0 reduce r0 4B: writes send[0:4]",
		},
		{
			"a write into a peer's memory",
			script{bcast: on(func(e *submodules.Emitter, c *submodules.Call) {
				told := e.Await(1)
				e.Notify(1, tasks.Span{}, e.Copy(submodules.Exposed(told, 0, 4), c.Dst, told))
			}, func(e *submodules.Emitter, c *submodules.Call) {
				e.Notify(0, c.Dst)
				e.Await(0)
			})},
			bcast, "2", 1,
			"sb#0 copy r0 4B: writes peer(0)[0:4]",
		},
		{
			"a result that isn't there",
			script{bcast: nothing},
			bcast, "2", 1,
			"in the end rank 1's receive buffer: reads bytes 0 to 4, of which byte 0 holds nothing",
		},
		{
			"a result that is half there",
			script{bcast: on(func(e *submodules.Emitter, c *submodules.Call) {
				e.Send(1, c.Dst.Cut(0, 3))
			}, func(e *submodules.Emitter, c *submodules.Call) {
				e.Recv(0, c.Dst.Cut(0, 3))
			})},
			bcast, "2", 1,
			"in the end rank 1's receive buffer: reads bytes 0 to 4, of which byte 3 holds nothing",
		},
		{
			"the input given back",
			script{bcast: nothing, reduce: func(e *submodules.Emitter, c *submodules.Call) {
				e.Copy(c.Dst, c.Src)
			}},
			allreduce, "2", 1,
			"in the end rank 0's receive buffer: bytes 0 to 4 hold [0] from offset 0 by sr#0 copy r0 4B, want [0 1]",
		},

		// Spans.
		{
			"beyond a buffer",
			script{bcast: on(func(e *submodules.Emitter, c *submodules.Call) {
				e.Send(1, c.Dst.Cut(1, 4))
			}, sendAll)},
			bcast, "2", 1,
			"sb#0 send r0>r1 4B: touches bytes 1 to 5 of rank 0's recv, which has 4",
		},
		{
			"before a buffer",
			script{bcast: on(func(e *submodules.Emitter, c *submodules.Call) {
				e.Send(1, c.Dst.Cut(-1, 4))
			}, sendAll)},
			bcast, "2", 1,
			"sb#0 send r0>r1 4B: touches bytes -1 to 3 of rank 0's recv, which has 4",
		},
		{
			"memory that is none",
			script{bcast: on(func(e *submodules.Emitter, c *submodules.Call) {
				e.Send(1, tasks.Span{Len: 4})
			}, sendAll)},
			bcast, "2", 1,
			"sb#0 send r0>r1 4B: touches bytes 0 to 4 of rank 0's Region(0), which has 0",
		},
		{
			"beyond what a peer exposes",
			script{bcast: on(slots, func(e *submodules.Emitter, c *submodules.Call) {
				told := e.Await(0)
				e.Notify(0, tasks.Span{}, e.Copy(c.Dst, submodules.Exposed(told, 1, 4), told))
			})},
			bcast, "2", 1,
			"sb#0 copy r1 4B: touches peer(0)[1:5], but sb#0 notify r0>r1 exposes slot[0:4]",
		},
		{
			"before what a peer exposes",
			script{bcast: on(func(e *submodules.Emitter, c *submodules.Call) {
				slot := e.Slot(8)
				e.Notify(1, slot.Cut(4, 4), e.Copy(slot.Cut(0, 4), c.Dst))
				e.Await(1)
			}, func(e *submodules.Emitter, c *submodules.Call) {
				told := e.Await(0)
				e.Notify(0, tasks.Span{}, e.Copy(c.Dst, submodules.Exposed(told, -4, 4), told))
			})},
			bcast, "2", 1,
			"sb#0 copy r1 4B: touches peer(0)[-4:0], but sb#0 notify r0>r1 exposes slot[4:8]",
		},
		{
			"what a peer doesn't expose",
			script{bcast: on(func(e *submodules.Emitter, c *submodules.Call) {
				e.Notify(1, tasks.Span{})
				e.Await(1)
			}, slots)},
			bcast, "2", 1,
			"sb#0 copy r1 4B: touches peer(0)[0:4], but sb#0 notify r0>r1 exposes Region(0)[0:0]",
		},
		{
			"a peer's memory behind a recv",
			script{bcast: on(func(e *submodules.Emitter, c *submodules.Call) {
				e.Send(1, c.Dst)
			}, func(e *submodules.Emitter, c *submodules.Call) {
				got := e.Recv(0, e.Scratch(4))
				e.Copy(c.Dst, submodules.Exposed(got, 0, 4), got)
			})},
			bcast, "2", 1,
			"sb#0 copy r1 4B: peer(0)[0:4] is not behind an await",
		},
		{
			"a peer's memory behind a step that isn't there",
			script{bcast: on(nothing, func(e *submodules.Emitter, c *submodules.Call) {
				e.Copy(c.Dst, submodules.Exposed(dag.ID(99), 0, 4))
			})},
			bcast, "2", 1,
			"sb#0 copy r1 4B: peer(99)[0:4] is not behind an await",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := run(tc.s, tc.r, tc.n, tc.window)
			if err == nil {
				t.Fatal("not detected")
			}
			if !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), tc.r.Coll.String()) {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}
