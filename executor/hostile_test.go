package executor

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/kernel"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

const hostileDigest = 77

// mute is the link of a rank whose peers hear nothing; what they say, the test says.
type mute struct {
	wire.Bell
	posted []wire.Message
}

func (m *mute) Post(_ levels.Rank, said *wire.Message, _ []byte) { m.posted = append(m.posted, *said) }
func (*mute) Put(levels.Rank, *wire.Message, []byte, int32) bool { return true }
func (*mute) Poll(wire.Sink) bool                                { return false }
func (*mute) Flush(wire.Sink) bool                               { return false }
func (*mute) Forget(wire.Scope, wire.Sink)                       {}

// newMute makes a world of two such ranks.
func newMute(t *testing.T) *World {
	t.Helper()
	s := Setup{Size: 2, Spin: 1}
	for r := range levels.Rank(2) {
		m := &mute{}
		m.Listen(func() bool { return false })
		s.Ports = append(s.Ports, Port{Rank: r, Link: m, Sleeper: m, Memory: wire.OneProcess{}})
	}
	w, err := New(Config{}, s)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// startAlone starts an allreduce on rank 0 of a world of two.
func startAlone(t *testing.T, w *World, plan string) *Run {
	t.Helper()
	r := tasks.Request{Coll: tasks.Allreduce, Count: 30_000, Type: tasks.Int32, Op: tasks.Sum, InPlace: true}
	b := Binding{Recv: make([]byte, r.Bytes()), Request: r.String()}
	var err error
	if b.Compiled, err = submodules.CompileRequest(r, tasktest.Topology(t, "2x1"), tasktest.Plan(t, plan), 0, all.Submodules()); err != nil {
		t.Fatal(err)
	}
	b.Digest = hostileDigest
	if b.Kernel, err = kernel.For(r.Op, r.Type); err != nil {
		t.Fatal(err)
	}
	run, err := w.Endpoint(0).Comm(0).Bind(b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.startCall(context.Background(), false); err != nil {
		t.Fatal(err)
	}
	run.comm.e.release()
	return run
}

// hostileMessage draws a message that a link lets pass. Mostly the run expects it at
// some time: then it comes twice, or too early.
func hostileMessage(r *rand.Rand, size int64) (m wire.Message, payload []byte) {
	pick := func(some ...int64) int64 { return some[r.IntN(len(some))] }
	if r.IntN(25) > 0 {
		m = wire.Message{
			Kind: wire.Kind(pick(int64(wire.Credit), int64(wire.Data), int64(wire.Eager), int64(wire.Want))),
			Edge: int32(r.IntN(1 + r.IntN(3))), Digest: hostileDigest, Size: size,
		}
		if m.Kind == wire.Eager && size <= 4096 || m.Kind == wire.Data {
			payload = make([]byte, size)
		}
		if m.Check(int64(len(payload)), 4096) == nil {
			return m, payload
		}
	}
	for {
		m = wire.Message{
			Kind: wire.Kind(1 + r.IntN(int(wire.MaxKind)-1)), Comm: wire.CommID(pick(0, 0, 0, 0, 1, 9)),
			Digest: uint32(pick(hostileDigest, hostileDigest, hostileDigest, 1)),
			Refund: int32(pick(0, 1, 1<<30)), Size: pick(0, 4, 4000, 4096, 8192, 65536, 120_000, 1<<40), Offset: pick(0, 0, 4, 65536),
		}
		m.SetNumbers(uint32(pick(0, 0, 0, 1, 2, 1<<31)), uint32(pick(0, 0, 0, 1, 2)), int32(pick(0, 0, 1, 2, 3, 7, -1, 1<<30)))
		if m.Kind == wire.Bye {
			m.SetExtent(pick(0, 0, 1))
		}
		n := pick(0, m.Size, m.Size-m.Offset, 4096)
		if n >= 0 && n <= wire.MaxFrame && m.Check(n, 4096) == nil {
			return m, make([]byte, n)
		}
	}
}

// A peer that says anything at any time makes a run fail, at worst: nothing
// panics, and nothing is written outside what it was given.
func TestHostilePeer(t *testing.T) {
	failed := 0
	for round := range 400 {
		seed := rand.Uint64()
		draw := rand.New(rand.NewPCG(seed, 0))
		w := newMute(t)
		e := w.Endpoint(0)
		size := []int64{4096, 65536}[round%2]
		plan := []string{"shape=flat,fs=4KiB,w=4,i=adapt/chain,s=adapt/chain", "shape=flat,fs=64KiB,w=2,i=adapt/binomial,s=adapt/binomial"}[round%2]
		run := startAlone(t, w, plan)
		buf := make([]byte, 65536)
		if _, err := e.Comm(0).Recv(t.Context(), 1, 1, 0, buf); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Comm(0).Send(t.Context(), 1, 2, 0, buf); err != nil {
			t.Fatal(err)
		}
		for range 60 {
			m, payload := hostileMessage(draw, size)
			e.mu.Lock()
			if m.Kind.IsLarge() {
				if dst := e.findPlace(1, &m); len(dst) >= len(payload) {
					copy(dst, payload)
				}
				if m.Offset+int64(len(payload)) == m.Size {
					m.Offset = 0
					e.deliverMessage(1, &m, nil)
				}
			} else {
				if m.Kind == wire.Credit || m.Kind == wire.Accept { // of goroutine ranks, which give an address
					m.Addr = unsafe.Pointer(&make([]byte, max(1, min(m.Size, 1<<17)))[0])
				}
				if m.Size <= 1<<17 {
					e.deliverMessage(1, &m, payload)
				}
			}
			if !run.finished && draw.IntN(3) == 0 {
				run.advanceSteps()
			}
			left := 0
			for i := range run.steps {
				if run.flags[i]&ended == 0 {
					left++
				}
			}
			if left != run.stepsLeft {
				t.Fatalf("seed %d: %d steps have not ended, the run counts %d", seed, left, run.stepsLeft)
			}
			e.unlock()
		}
		e.mu.Lock()
		if run.finished && run.err != nil {
			failed++
			var peer *PeerError
			if !errors.As(run.err, &peer) && !errors.Is(run.err, ErrMismatch) && !errors.Is(run.err, ErrClosed) {
				t.Errorf("seed %d: the run ended with %v", seed, run.err)
			}
		}
		e.mu.Unlock()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if failed == 0 {
		t.Error("no run has failed: the messages are too harmless")
	}
}

// What a step was told already, or can't be told yet, is a broken peer's.
func TestHostilePeerRepeats(t *testing.T) {
	const small, large = "shape=flat,fs=4KiB,w=4,i=adapt/chain,s=adapt/chain", "shape=flat,fs=64KiB,w=2,i=adapt/binomial,s=adapt/binomial"
	for name, test := range map[string]struct {
		plan string
		size int64
		edge int32
		says []wire.Kind
		text string
	}{
		"data twice":          {large, 65536, 0, []wire.Kind{wire.Data, wire.Data}, ""},
		"credit twice":        {large, 65536, 0, []wire.Kind{wire.Data, wire.Credit, wire.Credit}, ""},
		"eager twice":         {small, 4096, 20, []wire.Kind{wire.Eager, wire.Eager}, "eager message for edge 20 of call 0 fits"},
		"data without credit": {small, 4096, 20, []wire.Kind{wire.Data}, "data message for edge 20 of call 0 fits"},
		"want twice":          {small, 4096, 20, []wire.Kind{wire.Want, wire.Want}, "want message for edge 20 of call 0 fits"},
		"budget not sent":     {small, 4096, 0, []wire.Kind{wire.Return}, ""},
		"message twice":       {small, 4096, 0, []wire.Kind{wire.Tagged, wire.Tagged}, ""},
		"an earlier pass":     {small, 4096, 20, []wire.Kind{wire.Want}, "want message for pass 0 of call 0"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newMute(t)
			defer w.Close()
			e, run := w.Endpoint(0), startAlone(t, w, test.plan)
			e.mu.Lock()
			for i, k := range test.says {
				if len(e.failing) > 0 {
					t.Fatalf("failed before message %d", i)
				}
				m := wire.Message{Kind: k, Edge: test.edge, Digest: hostileDigest, Size: test.size}
				if k == wire.Credit {
					m.Addr = wire.Start(make([]byte, test.size))
				}
				switch k {
				case wire.Return:
					m.Refund = 1
				case wire.Tagged:
					m.SendTicket = 1
				}
				if name == "an earlier pass" {
					run.pass = 1
				}
				var payload []byte
				if k == wire.Eager || k == wire.Tagged {
					payload = make([]byte, test.size)
				}
				e.deliverMessage(1, &m, payload)
				if i == 0 {
					run.advanceSteps()
				}
			}
			e.unlock()
			if !errors.Is(run.err, ErrProtocol) || !strings.Contains(run.err.Error(), test.text) {
				t.Errorf("the run's error is %v", run.err)
			}
		})
	}
}

// A large message without credit may leave at once, and its step ends.
func TestLargeWithoutCredit(t *testing.T) {
	w := newMute(t)
	defer w.Close()
	w.Endpoint(0).peers.at(1).far = true
	run := startAlone(t, w, "shape=ar,fs=16KiB,w=8,i=nbc/recdoubling")
	sent := 0
	for id, f := range run.flags {
		if f&leaving != 0 {
			if sent++; f&ended == 0 {
				t.Errorf("step %v has left, and goes on", run.steps[id])
			}
		}
	}
	if sent == 0 || run.comm.Counters().Eager != int64(sent) {
		t.Errorf("%d messages have left, %d of them counted", sent, run.comm.Counters().Eager)
	}
}

// A rank in an operation of its program is named by a deadline though it has come; afterwards it is not.
func TestLateWhileComputing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMute(t)
		defer w.Close()
		run := startAlone(t, w, "shape=flat,fs=all,w=1,i=adapt/chain")
		run.present.set(1)
		other := w.Endpoint(1)
		other.comms[0].seq = 1 // it has come
		for _, computes := range []bool{true, false} {
			other.runs = nil
			if computes {
				other.runs = runQueue{{ending: newEnding(other.comms[0]), operation: operation{called: time.Now().Add(-wire.Tick)}}}
			}
			by, err := run.explainLate(context.DeadlineExceeded, run.comm.statesOfAll, func() bool { return false })
			if late, ok := errors.AsType[*LateError](err); !ok || len(late.Late) == 1 != computes || by == 1 != computes {
				t.Errorf("computes %v: rank %d is to blame, %v", computes, by, err)
			}
		}
	})
}

// A rank that is stopped, or doesn't answer, is named by a deadline though it has come: the others wait for it. One that has
// left after its part is not.
func TestLateThoughCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMute(t)
		defer w.Close()
		run := startAlone(t, w, "shape=flat,fs=all,w=1,i=adapt/chain")
		run.present.set(1)
		in := []flight.Open{{What: "barrier", Seq: 7}}
		for _, c := range []struct {
			s    flight.State
			want string
		}{
			{flight.State{Rank: 1, Doing: flight.Stopped, Open: in, Last: "barrier #6"}, "rank 1 is stopped "},
			{flight.State{Rank: 1, Doing: flight.Stopped, Last: "barrier #6"}, "rank 1 has not come, it is stopped in no call after barrier #6"},
			{flight.State{Rank: 1, Doing: flight.Silent}, "rank 1 does not answer"},
			{flight.State{Rank: 1, Doing: flight.Left}, "all ranks have come"},
		} {
			by, err := run.explainLate(context.DeadlineExceeded, func(flight.Open, func() bool) []flight.State { return []flight.State{c.s} }, nil)
			if named := by == 1; !strings.Contains(err.Error(), c.want) || named != (c.s.Doing != flight.Left) {
				t.Errorf("%v: rank %d is to blame, %v", &c.s, by, err)
			}
		}
	})
}

// A waiter whose deadline has had its effect waits on for the end.
func TestOverdueWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMute(t)
		defer w.Close()
		run := startAlone(t, w, "shape=flat,fs=all,w=1,i=adapt/chain")
		e, n := run.comm.e, &run.ending
		over, cancel := context.WithCancel(t.Context())
		cancel()
		e.mu.Lock()
		e.beginDriving(t.Context(), nil) // somebody else
		n.overdue = true
		returned := false
		var waiting sync.WaitGroup
		waiting.Go(func() {
			e.awaitDriver(over, n)
			returned = true
			e.mu.Unlock()
		})
		synctest.Wait()
		if returned {
			t.Error("it has returned before the end")
		}
		n.wake()
		waiting.Wait()
		e.mu.Lock()
		e.endDriving()
		e.mu.Unlock()
	})
}

// A large send whose bytes are on their way is waited for, and ends when its communicator breaks.
func TestBreakDuringLargeSend(t *testing.T) {
	w := newMute(t)
	defer w.Close()
	e := w.Endpoint(0)
	c := e.Comm(0)
	sent, err := c.Send(t.Context(), 1, 0, 0, make([]byte, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	e.mu.Lock()
	e.puts.add(putOwner{transfer: takeTransfer(c.sends, 1, sent.ticket)}) // as when it was accepted
	e.mu.Unlock()
	if got := e.Waiting(); !slices.Equal(got, []string{"rank 0, send 1048576 bytes to rank 1, tag 0"}) {
		t.Errorf("waits for %q", got)
	}
	w.Fail(1, ErrProtocol)
	e.mu.Lock()
	defer e.mu.Unlock()
	if !sent.finished || !errors.Is(sent.err, ErrProtocol) || e.transfers != 0 {
		t.Errorf("finished: %v, error %v, %d transfers left", sent.finished, sent.err, e.transfers)
	}
}
