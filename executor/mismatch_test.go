package executor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/submodules/check/casegen"
	"github.com/tierflow/tierflow/tasks"
)

// guarded is a buffer between bytes that must stay as they are.
type guarded struct{ whole, buf []byte }

const guard = 4096

func newGuarded(n int64) guarded {
	whole := bytes.Repeat([]byte{0xcc}, int(n)+2*guard)
	return guarded{whole, whole[guard : guard+n : guard+n]}
}

func (g guarded) check(t failer) {
	t.Helper()
	mark := bytes.Repeat([]byte{0xcc}, guard)
	if !bytes.Equal(g.whole[:guard], mark) || !bytes.Equal(g.whole[guard+len(g.buf):], mark) {
		t.Fatal("bytes around a buffer were written")
	}
}

// disagree lets each rank run the job that pick says, and then barriers. Each rank
// must hear of the mismatch in one of these calls: barriers may still end well that end
// together with the message that shows the mismatch, or go straight past it.
func disagree(t failer, jobs []job, pick func(rank int) int) []error {
	t.Helper()
	w := jobs[0].world
	bars := job{w, jobs[0].topology, tasks.Request{Coll: tasks.Barrier}, barrierPlan(t)}.bind(t, nil, make([][]byte, w.Size()))
	runs := make([]*executor.Run, w.Size())
	var guards []guarded
	for r := range runs {
		j := jobs[pick(r)]
		needSend, needRecv := j.request.Buffers(levels.Rank(r), w.Size())
		send, recv := newGuarded(needSend), newGuarded(needRecv)
		guards = append(guards, send, recv)
		runs[r] = j.bindOne(t, w.Endpoint(levels.Rank(r)).Comm(0), send.buf, recv.buf)
	}
	errs := ranks(t, w, func(ctx context.Context, r int) error {
		err := runs[r].Do(ctx)
		for i := 0; i < 2*executor.StrayCalls && err == nil; i++ {
			err = bars[r].Do(ctx)
		}
		return err
	})
	for r, err := range errs {
		if !errors.Is(err, executor.ErrMismatch) || strings.Contains(err.Error(), "on communicator") { // it is this one
			t.Fatalf("rank %d, %v %v or %v %v on %v: %v, want %v", r, jobs[0].request, jobs[0].plan,
				jobs[1].request, jobs[1].plan, jobs[0].topology, err, executor.ErrMismatch)
		}
	}
	for _, g := range guards {
		g.check(t)
	}
	return errs
}

func barrierPlan(t failer) tasks.Plan {
	t.Helper()
	_, p := parse(t, "1", "shape=han,fs=all,w=1,m=sm,s=sm,i=adapt/chain,w=adapt")
	return p
}

// Every way to disagree ends on all ranks with an error that prints both requests.
func TestMismatch(t *testing.T) {
	t.Parallel() // it mostly waits
	sum := func(n int64) tasks.Request {
		return tasks.Request{Coll: tasks.Allreduce, Count: n, Type: tasks.Int32, Op: tasks.Sum}
	}
	bcast := func(root levels.Rank) tasks.Request {
		return tasks.Request{Coll: tasks.Bcast, Count: 3, Type: tasks.Int32, Root: root}
	}
	prod, floats := sum(3), sum(3)
	prod.Op, floats.Type = tasks.Prod, tasks.Float32
	const sm, chain = "shape=han,fs=8B,w=2,s=sm,i=adapt/chain", "shape=han,fs=8B,w=2,s=adapt/chain,i=adapt/chain"
	for _, test := range []struct {
		what         string
		a, b         tasks.Request
		planA, planB string
	}{
		{"count", sum(3), sum(4), sm, sm},
		{"count in more segments", sum(3), sum(3000), sm, sm},
		{"count in passes", sum(3), sum(5000), chain, chain},
		{"operation", sum(3), prod, sm, sm},
		{"type", sum(3), floats, sm, sm},
		{"collective", sum(3), bcast(0), sm, sm},
		{"collective", bcast(0), tasks.Request{Coll: tasks.Barrier}, chain, chain},
		{"plan", sum(3000), sum(3000), sm, chain},
		{"shape", sum(3), sum(3), sm, "shape=flat,fs=8B,w=1,i=adapt/binomial"},
		{"root, each waits for the other", bcast(1), bcast(0), chain, chain},
		{"root, each waits for the other", bcast(1), bcast(0), sm, sm},
	} {
		for _, topo := range []string{"1x2", "2x1", "2x2"} {
			t.Run(test.what+"/"+topo, func(t *testing.T) {
				h, planA := parse(t, topo, test.planA)
				_, planB := parse(t, topo, test.planB)
				if planA.Shape == tasks.Han && planB.Shape == tasks.Flat && topo == "1x2" {
					planB = planB.Set("s", tasks.Choice{Submodule: "adapt"})
				}
				w := newWorld(t, h.Size(), executor.Config{})
				errs := disagree(t, []job{{w, h, test.a, planA}, {w, h, test.b, planB}}, func(r int) int { return r % 2 })
				for r, err := range errs {
					if !strings.Contains(err.Error(), test.a.String()) || !strings.Contains(err.Error(), test.b.String()) {
						t.Errorf("rank %d: %q should print %q and %q", r, err, test.a, test.b)
					}
				}
			})
		}
	}
}

// A rank without steps in a call goes straight through the calls that follow, and needs
// no message of the one that disagrees with it.
func TestMismatchBesideStraightCalls(t *testing.T) {
	h, p := parse(t, "a:2,b:1", "shape=flat,fs=all,w=1,i=adapt/linear") // barriers go by ranks 0 and 2
	bcast := tasks.Request{Coll: tasks.Bcast, Count: 3, Type: tasks.Int32, Root: 1}
	none := tasks.Request{Coll: tasks.Bcast, Count: 0, Type: tasks.Int32, Root: 1}
	for range 20 {
		w := newWorld(t, 3, executor.Config{})
		disagree(t, []job{{w, h, bcast, p}, {w, h, none, p}}, func(r int) int { return r / 2 })
	}
}

// A message for a call without steps is there before the call.
func TestMismatchComesEarly(t *testing.T) {
	h, p := parse(t, "2", "shape=flat,fs=all,w=1,s=adapt/linear")
	gather := tasks.Request{Coll: tasks.Gather, Type: tasks.Int32, Root: 0}
	reduce := tasks.Request{Coll: tasks.Reduce, Count: 1, Type: tasks.Uint8, Op: tasks.Sum, Root: 0}
	for range 200 {
		w := newWorld(t, 2, executor.Config{})
		disagree(t, []job{{w, h, gather, p}, {w, h, reduce, p}}, func(r int) int { return r })
	}
}

// Whatever two ranks' programs are, their meeting is an error, and nothing but
// the buffers is written.
func TestRandomMismatch(t *testing.T) {
	t.Parallel() // it mostly waits
	rapid.Check(t, func(t *rapid.T) {
		a := draw(t, casegen.Options{})
		b := draw(t, casegen.Options{Topology: a.Topology})
		size := a.Topology.Size()
		if size == 1 || a.Request.String() == b.Request.String() && a.Plan.Equal(b.Plan) {
			t.Skip("nothing to disagree on")
		}
		steps(t, a) // skips what can't be
		steps(t, b)
		odd := rapid.IntRange(0, size-1).Draw(t, "odd")
		meet := len(peersOf(t, b, odd)) > 0
		for r := range size {
			meet = meet || r != odd && slices.Contains(peersOf(t, a, r), levels.Rank(odd))
		}
		if !meet {
			t.Skip("the odd rank tells nobody anything, and nobody it: the calls are over before ranks could disagree")
		}
		w := drawWorld(t, size)
		defer w.Close()
		disagree(t, []job{{w, a.Topology, a.Request, a.Plan}, {w, b.Topology, b.Request, b.Plan}}, func(r int) int {
			if r == odd {
				return 1
			}
			return 0
		})
	})
}

// peersOf returns the ranks that one exchanges anything with in a case.
func peersOf(t *rapid.T, c casegen.Case, rank int) (ranks []levels.Rank) {
	b, err := job{nil, c.Topology, c.Request, c.Plan}.compile(levels.Rank(rank))
	if err != nil {
		t.Fatalf("%v: %v", c, err)
	}
	peers := b.Rest.Peers
	if b.Whole != nil {
		peers = slices.Concat(peers, b.Whole.Peers)
	}
	for _, p := range peers {
		ranks = append(ranks, p.Rank)
	}
	return ranks
}

// A call without elements has no step in which a rank could hear that the others
// call something else: they find out when it is long through with it and in no
// call, or when it comes last.
func TestMismatchWithoutSteps(t *testing.T) {
	h, p := parse(t, "3x1", "shape=flat,fs=all,w=1,i=adapt/chain")
	sum := func(n int64) tasks.Request {
		return tasks.Request{Coll: tasks.Allreduce, Count: n, Type: tasks.Int32, Op: tasks.Sum, InPlace: true}
	}
	for _, comesLast := range []bool{false, true} {
		for odd := range 3 {
			t.Run(fmt.Sprintf("rank=%d/last=%v", odd, comesLast), func(t *testing.T) {
				inBubble(t, 3, executor.Config{}, func(t *testing.T, w *executor.World) {
					none := job{w, h, sum(0), p}.bind(t, nil, make([][]byte, 3))
					ten := job{w, h, sum(10), p}.bind(t, nil, raws(numbers(3, 10)))
					errs := ranks(t, w, func(ctx context.Context, r int) error {
						if r != odd {
							return ten[r].Do(ctx)
						}
						if comesLast {
							clocktest.Pass(2 * time.Second)
							return none[r].Do(ctx)
						}
						if err := none[r].Do(ctx); err != nil {
							return err // a message of the others was there already
						}
						clocktest.Pass(2 * time.Second)
						return none[r].Do(ctx)
					})
					for r, err := range errs {
						if !errors.Is(err, executor.ErrMismatch) || !strings.Contains(err.Error(), " 0 i32") || !strings.Contains(err.Error(), " 10 i32") {
							t.Errorf("rank %d: %v, want a mismatch with both requests", r, err)
						}
						if n := w.Endpoint(levels.Rank(r)).Kept(); n > 0 {
							t.Errorf("rank %d keeps %d payloads that nobody will take", r, n)
						}
					}
				})
			})
		}
	}
}

// The same calls in another order are a mismatch too.
func TestOrderOfCalls(t *testing.T) {
	h, p := parse(t, "2x1", "shape=han,fs=all,w=1,i=adapt/chain")
	w := newWorld(t, 2, executor.Config{})
	bar := barriers(t, w, "2x1")
	bc := job{w, h, tasks.Request{Coll: tasks.Bcast, Count: 3, Type: tasks.Int32}, p}.bind(t, nil, raws(numbers(2, 3)))
	errs := ranks(t, w, func(ctx context.Context, r int) error {
		calls := []*executor.Run{bar[r], bc[r]}
		if r == 1 {
			calls = []*executor.Run{bc[r], bar[r]}
		}
		for _, run := range calls {
			if err := run.Do(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	for r, err := range errs {
		var m *executor.MismatchError
		if !errors.As(err, &m) || m.Seq != 0 || m.Request == m.PeerWants {
			t.Errorf("rank %d: %v, want a MismatchError of call 0 with both requests", r, err)
		}
	}
}

// A rank may be hundreds of calls behind one that doesn't wait for it.
func TestFarAhead(t *testing.T) {
	h, p := parse(t, "2x1", "shape=han,fs=all,w=1,i=adapt/chain")
	w := newWorld(t, 2, executor.Config{})
	const calls = 500
	one := job{w, h, tasks.Request{Coll: tasks.Bcast, Count: 3, Type: tasks.Int32}, p}.bind(t, nil, raws(numbers(2, 3)))
	two := job{w, h, tasks.Request{Coll: tasks.Bcast, Count: 2, Type: tasks.Int32}, p}.bind(t, nil, raws(numbers(2, 3)))
	ahead := make(chan bool)
	succeed(t, w, func(ctx context.Context, r int) error {
		if r == 1 {
			<-ahead
		}
		for i := range calls {
			run := one[r]
			if i%3 == 0 {
				run = two[r]
			}
			if err := run.Do(ctx); err != nil {
				return err
			}
		}
		if r == 0 {
			close(ahead)
		}
		return nil
	})
}

// The odd one out is blamed, whoever notices the mismatch. Where as many ranks run the one call as the other,
// nobody is.
func TestOddOneIsBlamed(t *testing.T) {
	t.Parallel() // it mostly waits
	h, plan := parse(t, "1x5", "shape=han,fs=8B,w=2,s=sm,i=adapt/chain")
	four, _ := parse(t, "2x2", "shape=han,fs=8B,w=2,s=sm,i=adapt/chain")
	sum := tasks.Request{Coll: tasks.Allreduce, Count: 3, Type: tasks.Int32, Op: tasks.Sum}
	highest := sum
	highest.Op = tasks.Max
	for odd := range levels.Rank(6) {
		on, want, is := h, odd, func(r int) bool { return r == int(odd) }
		if odd == 5 {
			on, want, is = four, -1, func(r int) bool { return r < 2 }
		}
		var blamed levels.Rank
		w := newWorld(t, on.Size(), executor.Config{Blame: func(r levels.Rank, _ error) { blamed = r }})
		errs := disagree(t, []job{{w, on, sum, plan}, {w, on, highest, plan}}, func(r int) int {
			if is(r) {
				return 1
			}
			return 0
		})
		m, _ := errors.AsType[*executor.MismatchError](errs[0])
		if blamed != want || (want >= 0) != slices.Equal(m.Odd, []levels.Rank{want}) {
			t.Errorf("rank %d is odd: %d is blamed, odd are %v", odd, blamed, m.Odd)
		}
	}
}
