package join

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
)

// busyPair is a job of two ranks of which rank 0 is kept busy: its handler waits for
// release, its inbox is full, and its reader waits for room. Rank 1 has sent that many
// messages; got counts those that reached the handler, lost the ranks it is told lost.
type busyPair struct {
	jobs      []*Job
	sent      int64
	got, lost atomic.Int64
	release   chan struct{}
}

func newBusyPair(t *testing.T, nodes ...string) *busyPair {
	cs := configs(t, 2)
	for r := range nodes {
		cs[r].Node = nodes[r]
	}
	jobs := enterAll(t, cs)
	b := &busyPair{jobs: jobs, release: make(chan struct{})}
	jobs[0].OnControl(func(levels.Rank, uint8, []byte) {
		<-b.release
		b.got.Add(1)
	})
	jobs[0].OnLost(func(r levels.Rank, err error) {
		t.Logf("rank 0 was told that rank %d %v", r, err)
		b.lost.Add(1)
	})
	b.send(inboxSize+100, nil)
	clocktest.Until(t, "the inbox is full", jobs[0].inbox.full)
	return b
}

// send sends messages from rank 1 to rank 0.
func (b *busyPair) send(n int, payload []byte) {
	for range n {
		_ = clocktest.Await(context.Background(), func() bool { return !errors.Is(b.jobs[1].Broadcast(1, payload), ErrBusy) })
		b.sent++
	}
}

// free frees rank 0, and waits for the ends of both.
func (b *busyPair) free(t *testing.T, busy, other <-chan error) {
	t.Helper()
	close(b.release)
	if err := <-busy; err != nil {
		t.Errorf("rank 0: %v", err)
	}
	if err := <-other; err != nil {
		t.Errorf("rank 1: %v", err)
	}
}

// closeIn closes a job within d, in the background.
func closeIn(j *Job, d time.Duration) <-chan error {
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), d)
		defer cancel()
		done <- j.Close(ctx)
	}()
	return done
}

// TestCloseHearsWhatIsHere: a goodbye that came before the deadline counts, though the
// reader was too busy to take it.
func TestCloseHearsWhatIsHere(t *testing.T) {
	t.Parallel()
	b := newBusyPair(t)
	other := closeIn(b.jobs[1], 20*time.Second)
	left := b.jobs[1].edges[0].out
	clocktest.Until(t, "rank 1's goodbye is out", func() bool { return b.jobs[1].isClosing() && left.done() })
	busy := closeIn(b.jobs[0], 50*time.Millisecond)
	clocktest.Pause(t.Context(), 300*time.Millisecond) // beyond its deadline
	b.free(t, busy, other)
}

func (j *Job) isClosing() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.closing
}

// TestGoodbyeOfOneThatIsGone: writing to a rank that has left fails. Its last words
// are heard to the end, however long it takes.
func TestGoodbyeOfOneThatIsGone(t *testing.T) {
	t.Parallel()
	for name, nodes := range map[string][]string{"unix": nil, "tcp": {"a", "b"}} {
		t.Run(name, func(t *testing.T) {
			b := newBusyPair(t, nodes...)
			if err := <-closeIn(b.jobs[1], time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("rank 1: %v", err)
			}
			e := b.jobs[0].edges[0]
			clocktest.Until(t, "writing to rank 1 has failed", func() bool {
				b.jobs[0].Broadcast(1, nil)
				e.mu.Lock()
				defer e.mu.Unlock()
				return e.cause != nil
			})
			clocktest.Pause(t.Context(), drainTime+100*time.Millisecond)
			close(b.release)
			clocktest.Until(t, "rank 0 knows that rank 1 has left", func() bool { return b.jobs[0].goneError(1) != nil })
			if err := b.jobs[0].goneError(1); !errors.Is(err, ErrLeft) {
				t.Error(err)
			}
			clocktest.Until(t, "all messages have come", func() bool { return b.got.Load()+b.lost.Load() >= b.sent })
			if err := <-closeIn(b.jobs[0], 20*time.Second); err != nil {
				t.Errorf("rank 0: %v", err)
			}
			if b.lost.Load() > 0 || b.got.Load() != b.sent {
				t.Errorf("%d ranks lost, %d of %d messages", b.lost.Load(), b.got.Load(), b.sent)
			}
		})
	}
}

// TestCloseLetsAllOut: a neighbour that is slower than Close lingers still gets
// everything, the goodbye behind it too.
func TestCloseLetsAllOut(t *testing.T) {
	t.Parallel()
	b := newBusyPair(t)
	b.send(100, make([]byte, MaxPayload)) // more than a socket holds
	other := closeIn(b.jobs[1], 20*time.Second)
	busy := closeIn(b.jobs[0], 20*time.Second)
	clocktest.Until(t, "rank 1 knows that rank 0 has left", func() bool { return b.jobs[1].goneError(0) != nil })
	clocktest.Pause(t.Context(), lingerTime+300*time.Millisecond)
	b.free(t, busy, other)
	if err := b.jobs[0].goneError(1); !errors.Is(err, ErrLeft) || b.lost.Load() > 0 {
		t.Errorf("rank 1 at rank 0: %v", err)
	}
}

// mute is a connection that takes nothing.
type mute struct{ net.Conn }

func (mute) Write([]byte) (int, error) { return 0, net.ErrClosed }

// TestLastWordsOnTheirWay: what a neighbour says soon after writing to it has failed is heard.
func TestLastWordsOnTheirWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		e, f := newEdge(1, mute{near}), frame{kind: frameGoodbye, to: everyone}
		e.out.force(f.encode())
		var both sync.WaitGroup
		both.Go(e.write)
		heard := 0
		both.Go(func() { e.read(2, func(*edge, *frame) error { heard++; return nil }) })
		clocktest.Pass(drainTime / 2)
		far.SetDeadline(time.Now().Add(time.Minute))
		if _, err := far.Write(f.encode()); err != nil {
			t.Error(err)
		}
		far.Close()
		e.end()
		if both.Wait(); heard != 1 {
			t.Errorf("%d goodbyes heard", heard)
		}
	})
}

// TestWriterThatComesLate: a frame goes out though the deadline had passed before the
// writer had its turn.
func TestWriterThatComesLate(t *testing.T) {
	ours, theirs := socketPair(t)
	e := newEdge(1, ours)
	f := frame{kind: frameGoodbye, to: everyone}
	e.out.force(f.encode())
	e.out.close()
	ours.SetDeadline(time.Unix(1, 0))
	e.write()
	ours.Close()
	if got, err := io.ReadAll(theirs); err != nil || !bytes.Equal(got, f.encode()) {
		t.Errorf("%x, %v; want %x", got, err, f.encode())
	}
}

// socketPair is two ends of a TCP connection, closed at the test's end.
func socketPair(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial("tcp", l.Addr().String()); err == nil {
		b, err = l.Accept()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		a.Close()
		b.Close()
	})
	return a, b
}

// TestCloseWaitsForNoLostRank: news of a loss ends the wait for the rank's goodbye, though its
// connection stays open.
func TestCloseWaitsForNoLostRank(t *testing.T) {
	cs := configs(t, 2)
	cs[1].Node = "elsewhere"
	jobs := enterAll(t, cs)
	t.Cleanup(func() { closeSoon(jobs[1:]) })
	jobs[0].lose(nil, 1, ErrLost)
	if err := jobs[0].Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestCloseNamesTheMissing: of drawn ranks that close while the others don't, each names exactly its neighbours that have
// not closed. Ranks that wait for those themselves are no error, nor are the others' ends in vain afterwards.
func TestCloseNamesTheMissing(t *testing.T) {
	const size = 9
	rng := rand.New(rand.NewPCG(3, 3))
	for range 4 {
		cs := configs(t, size)
		for r := range cs {
			cs[r].Node = []string{"a", "b", "c"}[r%3]
		}
		jobs := enterAll(t, cs)
		closing := rng.Perm(size)[:1+rng.IntN(size-1)]
		ctx, cancel := context.WithCancel(t.Context())
		errs := make([]error, size)
		var all sync.WaitGroup
		for _, r := range closing {
			all.Go(func() { errs[r] = jobs[r].Close(ctx) })
		}
		want := map[int][]levels.Rank{}
		for _, r := range closing {
			for _, e := range jobs[r].edges {
				if slices.Contains(closing, int(e.peer)) {
					<-e.departed // its goodbye is here
				} else {
					want[r] = append(want[r], e.peer)
				}
			}
		}
		cancel()
		all.Wait()
		for _, r := range closing {
			var named []levels.Rank
			for _, word := range regexp.MustCompile(`rank (\d+)`).FindAllStringSubmatch(fmt.Sprint(errs[r]), -1) {
				n, _ := strconv.Atoi(word[1])
				named = append(named, levels.Rank(n))
			}
			slices.Sort(named)
			slices.Sort(want[r])
			if !slices.Equal(named, want[r]) || errs[r] != nil && !errors.Is(errs[r], context.Canceled) {
				t.Errorf("of %v rank %d: %v, want it to name %v", closing, r, errs[r], want[r])
			}
		}
		var others []*Job
		for r, j := range jobs {
			if !slices.Contains(closing, r) {
				others = append(others, j)
			}
		}
		closeAll(t, others)
	}
}
