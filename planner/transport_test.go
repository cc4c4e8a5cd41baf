package planner_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/kernel"
	"github.com/tierflow/tierflow/executor/local"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/executor/wire/wiretest"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// parcel is a frame on its way through a channel.
type parcel struct {
	from  levels.Rank
	frame []byte
}

// channelLink is a transport that nothing in the executor knows: frames through one Go
// channel for each receiver. It carries bytes only, no addresses, as one between machines
// would.
type channelLink struct {
	wire.Bell
	rank  levels.Rank
	peers []*channelLink // by rank
	in    chan parcel
	out   []outbox
	cuts  []wire.Parts // by sender
}

// outbox is what waits for room in a receiver's channel.
type outbox struct {
	frames wire.Fifo[[]byte]
	bulk   wire.Fifo[wire.Outgoing]
}

const (
	channelRoom  = 8        // frames
	channelSmall = 64 << 10 // bytes of a payload without credit
)

func newChannelLinks(size int) []*channelLink {
	peers := make([]*channelLink, size)
	for r := range peers {
		l := &channelLink{
			rank: levels.Rank(r), peers: peers, in: make(chan parcel, channelRoom),
			out: make([]outbox, size), cuts: make([]wire.Parts, size),
		}
		l.Listen(func() bool { return len(l.in) > 0 || l.hasRoom() })
		peers[r] = l
	}
	return peers
}

func (l *channelLink) isWaiting(to int) bool {
	return l.out[to].frames.Len()+l.out[to].bulk.Len() > 0
}

// hasRoom reports whether something that waits could leave.
func (l *channelLink) hasRoom() bool {
	for to := range l.out {
		if l.isWaiting(to) && len(l.peers[to].in) < channelRoom {
			return true
		}
	}
	return false
}

func (l *channelLink) Post(to levels.Rank, m *wire.Message, payload []byte) {
	l.out[to].frames.Push(append(wire.AppendFrame(nil, m, len(payload)), payload...))
}

func (l *channelLink) Put(to levels.Rank, m *wire.Message, src []byte, token int32) bool {
	l.out[to].bulk.Push(wire.Outgoing{Message: *m, Src: src, Token: token})
	return false
}

func (l *channelLink) Flush(s wire.Sink) (left bool) {
	for to := range l.out {
		for l.isWaiting(to) && l.send(to, s) {
		}
		left = left || l.isWaiting(to)
	}
	return left
}

// send moves one frame to a rank, unless its channel is full.
func (l *channelLink) send(to int, s wire.Sink) bool {
	box := &l.out[to]
	whole := box.frames.Len() > 0
	var frame []byte
	n := 0
	if whole {
		frame = *box.frames.First()
	} else {
		b := box.bulk.First()
		m := b.Message
		m.Offset = int64(b.Gone)
		if b.Gone > 0 {
			m.Refund = 0
		}
		n = min(len(b.Src)-b.Gone, wire.MaxFrame)
		frame = append(wire.AppendFrame(nil, &m, n), b.Src[b.Gone:][:n]...)
	}
	select {
	case l.peers[to].in <- parcel{l.rank, frame}:
	default:
		return false
	}
	l.peers[to].Ring()
	if whole {
		box.frames.Pop()
	} else if b := box.bulk.First(); b.Gone+n == len(b.Src) {
		token := b.Token
		box.bulk.Pop()
		s.Sent(token)
	} else {
		b.Gone += n
	}
	return true
}

func (l *channelLink) Poll(s wire.Sink) (did bool) {
	for range channelRoom {
		select {
		case p := <-l.in:
			did = true
			l.take(s, p)
		default:
			l.Flush(s)
			return did
		}
	}
	l.Flush(s)
	return did
}

// take hands over a frame, and wakes those who may wait for its room.
func (l *channelLink) take(s wire.Sink, p parcel) {
	for _, other := range l.peers {
		other.Ring()
	}
	m, n, err := wire.ParseFrame(p.frame, channelSmall)
	payload := p.frame[wire.FrameHeader:]
	if err == nil && m.Kind.IsLarge() {
		err = l.cuts[p.from].Follow(&m, int64(n), wire.MaxFrame)
	}
	switch {
	case err != nil:
		s.Fail(p.from, err)
	case !m.Kind.IsLarge():
		s.Deliver(p.from, &m, payload)
	default:
		copy(s.Place(p.from, &m), payload)
		wire.GiveBack(s, p.from, &m)
		if m.Offset+int64(n) == m.Size {
			m.Offset = 0
			s.Deliver(p.from, &m, nil)
		}
	}
}

func (l *channelLink) Forget(what wire.Scope, s wire.Sink) {
	for to := range l.out {
		wire.DropBulk(&l.out[to].bulk, what, s, func(m *wire.Message, payload []byte) { l.Post(levels.Rank(to), m, payload) })
	}
}

// A transport from outside passes what every link must.
func TestTransportFromOutside(t *testing.T) {
	wiretest.Run(t, func(*testing.T) (a, b wiretest.Port) {
		links := newChannelLinks(2)
		return wiretest.Port{Link: links[0], Sleeper: links[0]}, wiretest.Port{Link: links[1], Sleeper: links[1]}
	})
}

// newChannelWorld makes a world over channels. All ranks are far: nobody reads another's
// memory.
func newChannelWorld(t *testing.T, size int) *executor.World {
	t.Helper()
	s := executor.Setup{Size: size, Spin: 1}
	for r, l := range newChannelLinks(size) {
		reach := make([]wire.Reach, size)
		for other := range reach {
			if other != r {
				reach[other] = wire.Far
			}
		}
		s.Ports = append(s.Ports, executor.Port{Rank: levels.Rank(r), Link: l, Sleeper: l, Memory: wire.OneProcess{}, Reach: reach})
	}
	w, err := executor.New(executor.Config{}, s)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// A transport from outside runs every collective, with the same result as goroutine ranks.
func TestCollectivesOverTransportFromOutside(t *testing.T) {
	const size = 4
	topology := tasktest.Topology(t, fmt.Sprintf("%dx1", size))
	counts := []int64{0, 3, 5000, 300_000}
	if testing.Short() {
		counts = counts[:3]
	}
	for _, coll := range tasks.Requestable() {
		for _, count := range counts {
			r := tasks.Request{Coll: coll, Count: count, Type: tasks.Int32, Op: tasks.Sum}
			if !r.Reduces() {
				r.Op = tasks.Op{}
			}
			if r.Rooted() {
				r.Root = 1
			}
			if r.Validate(size) != nil { // a Barrier has no elements
				r = tasks.Request{Coll: coll}
			}
			t.Run(r.String(), func(t *testing.T) {
				outside, inside := newChannelWorld(t, size), local.New(size, executor.Config{})
				got, want := runOn(t, outside, topology, r), runOn(t, inside, topology, r)
				for rank := range got {
					if !bytes.Equal(got[rank], want[rank]) {
						t.Errorf("rank %d has another result than over goroutine ranks", rank)
					}
				}
			})
		}
	}
}

// runOn runs a request twice on a world, which it closes, and returns what is in the
// receive buffers, by rank.
func runOn(t *testing.T, w *executor.World, topology *levels.Topology, r tasks.Request) [][]byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	plan, _ := builtin.Choose(r, topology, tasks.Plan{})
	recv := make([][]byte, w.Size())
	var g errgroup.Group
	for rank := range levels.Rank(w.Size()) {
		compiled, err := submodules.CompileRequest(r, topology, plan, rank, all.Submodules())
		if err != nil {
			t.Fatal(err)
		}
		sends, receives := r.Buffers(rank, w.Size())
		b := executor.Binding{Compiled: compiled, Request: r.String(), Send: make([]byte, sends), Recv: make([]byte, receives)}
		draw := rand.New(rand.NewPCG(uint64(rank), 1))
		for _, buf := range [][]byte{b.Send, b.Recv} {
			for i := range buf {
				buf[i] = byte(draw.Uint32())
			}
		}
		recv[rank] = b.Recv
		if r.Reduces() {
			if b.Kernel, err = kernel.For(r.Op, r.Type); err != nil {
				t.Fatal(err)
			}
		}
		run, err := w.Endpoint(rank).Comm(0).Bind(b)
		if err != nil {
			t.Fatal(err)
		}
		g.Go(func() error {
			if err := run.Do(ctx); err != nil {
				return err
			}
			return run.Do(ctx)
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	return recv
}
