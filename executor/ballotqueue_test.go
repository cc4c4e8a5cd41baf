package executor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/flight/verdict"
	"github.com/tierflow/tierflow/executor/internal/ballot"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// A message that waits, or has come a moment ago, is not taken again; others are, and the same one later.
func TestPostbag(t *testing.T) {
	now := time.Now()
	p := &ballotQueue{
		waiting: [][]byte{[]byte("propose")},
		sent:    []sentBallot{{[]byte("start"), now}, {[]byte("vote"), now.Add(-2 * resendRest)}},
	}
	for message, want := range map[string]bool{"propose": true, "start": true, "vote": false, "decide": false} {
		if got := p.has([]byte(message)); got != want {
			t.Errorf("%s: %v, want %v", message, got, want)
		}
	}
}

// lineJob connects to a reader.
type lineJob struct {
	ControlPlane
	made chan net.Conn // the readers' ends
	// silent reports whether Dial to a rank gets no answer. nil: all answer.
	silent func(to levels.Rank) bool
	refuse int // so many calls of Recall fail
}

func (j *lineJob) Dial(ctx context.Context, to levels.Rank, _ uint8) (net.Conn, error) {
	if j.silent != nil && j.silent(to) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return j.Recall(ctx, to, 0)
}

func (j *lineJob) Recall(context.Context, levels.Rank, uint8) (net.Conn, error) {
	if j.refuse > 0 {
		j.refuse--
		return nil, net.ErrClosed
	}
	near, far := net.Pipe()
	j.made <- far
	return near, nil
}

// Letters that follow each other come over one connection, which is closed soon after the last one.
func TestLettersShareALine(t *testing.T) {
	j := &lineJob{made: make(chan net.Conn, 3)}
	c := newControl(nil, j, 0)
	c.sendDirect(1, []byte("vote"))
	line := <-j.made
	for _, next := range []string{"accepted", "decide", ""} {
		note := make([]byte, 5)
		if _, err := io.ReadFull(line, note); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, line, int64(note[3]-1)); err != nil {
			t.Fatal(err)
		}
		if next != "" {
			c.sendDirect(1, []byte(next))
		}
	}
	if rest, err := io.ReadAll(line); err != nil || !bytes.Equal(rest, nil) {
		t.Errorf("%q, %v behind the last message", rest, err)
	}
	c.background.Wait()
	if len(j.made) > 0 {
		t.Error("another connection was made")
	}
}

// cutJob is a lineJob whose control plane has cut off rank 1, and can't send to rank 2.
type cutJob struct{ *lineJob }

func (cutJob) CutOff() []levels.Rank { return []levels.Rank{1} }

func (cutJob) LetOut() {}

func (cutJob) Broadcast(uint8, []byte) error { return nil }

func (cutJob) Send(to levels.Rank, _ uint8, _ []byte) error {
	if to == 2 {
		return net.ErrClosed
	}
	return nil
}

// goneJob is a job that rank 3 has left.
type goneJob struct{ ControlPlane }

func (goneJob) Gone(_ context.Context, r levels.Rank) bool { return r == 3 }

// Who has left the job closes, though its goodbye to the communicator was not read.
func TestLeftRanksClose(t *testing.T) {
	states := []flight.State{{Rank: 1, Doing: flight.Silent}, {Rank: 2, Doing: flight.Outside}, {Rank: 3, Doing: flight.Silent}}
	newControl(nil, goneJob{}, 0).noteGone(t.Context(), states)
	for i, want := range []flight.Doing{flight.Silent, flight.Outside, flight.Left} {
		if got := states[i].Doing; got != want {
			t.Errorf("rank %d: %v, want %v", states[i].Rank, got, want)
		}
	}
}

// A message of an agreement goes straight to a rank that the control plane doesn't reach.
func TestBallotsGoStraight(t *testing.T) {
	for to, want := range map[levels.Rank]int{1: 1, 2: 1, 3: 0} {
		j := &lineJob{made: make(chan net.Conn, 1)}
		c := newControl(nil, cutJob{j}, 0)
		c.sendBallot(to, note{Text: "vote"})
		var reading sync.WaitGroup
		reading.Go(func() {
			for line := range j.made {
				if got, err := io.ReadAll(line); err != nil || !bytes.Contains(got, []byte("vote")) {
					t.Errorf("%q, %v", got, err)
				}
				want--
			}
		})
		c.background.Wait()
		close(j.made)
		if reading.Wait(); want != 0 {
			t.Errorf("to rank %d %d connections are missing", to, want)
		}
	}
}

// A letter that could not be sent may be sent again at once; one that was sent may not.
func TestLettersAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &lineJob{made: make(chan net.Conn, 2), refuse: 1}
		c := newControl(nil, j, 0)
		c.sendDirect(1, []byte("vote"))
		c.background.Wait()
		for range 2 {
			c.sendDirect(1, []byte("vote"))
			synctest.Wait()
		}
		if len(j.made) != 1 {
			t.Fatalf("%d connections, want one", len(j.made))
		}
		if got, err := io.ReadAll(<-j.made); err != nil || bytes.Count(got, []byte("vote")) != 1 {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// A rank that has gone on says no to later questions, and not to one that its program is about to answer.
func TestRefuseWords(t *testing.T) {
	w := newMute(t)
	defer w.Close()
	c, other := w.Endpoint(0).Comm(0), w.Endpoint(1).Comm(0)
	c.agreements = 1
	answering := c.e.voter.Open(ballot.Topic{Round: 1}, c.ranks)
	c.e.voter.Open(ballot.Topic{Round: 2}, c.ranks)
	c.refuseWords()
	answering.Begin(0, true)
	for round, want := range []bool{true, false} {
		if all, err := other.Agree(t.Context(), true); err != nil || all != want {
			t.Errorf("round %d: %v, %v; want %v", round+1, all, err, want)
		}
	}
}

// A rank that counts too many others as lost, without a proof, gives up after half a minute.
func TestMinorityGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMute(t)
		defer w.Close()
		w.Endpoint(0).voter.Quit()
		e := w.Endpoint(1)
		e.mu.Lock()
		e.noteLost(0, net.ErrClosed)
		e.mu.Unlock()
		began := time.Now()
		_, err := e.Comm(0).Shrink(t.Context())
		if took := time.Since(began); !errors.Is(err, ErrMinority) || took < minorityTime || took > minorityTime+time.Second {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

// A rank that leaves before its program knows of the next communicator leaves that too, though it is broken already.
func TestLeavesTheNext(t *testing.T) {
	w := newMute(t)
	defer w.Close()
	var ends [2]*Comm
	for r := range ends {
		var err error
		if ends[r], err = w.Endpoint(levels.Rank(r)).Make(1, []levels.Rank{0, 1}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := ends[1].Shrink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.Comm.Revoke(net.ErrClosed)
	<-ends[0].e.voter.Find(ballot.Topic{Comm: 1}).Known()
	_ = ends[0].Close()
	said := w.Endpoint(0).link.(*mute).posted
	if !slices.ContainsFunc(said, func(m wire.Message) bool { return m.Kind == wire.Bye && m.Comm == s.Comm.id }) {
		t.Errorf("said %+v, and no goodbye on communicator %v", said, s.Comm.id)
	}
}

// A goodbye says whether its communicator is broken, and comes when the others know the reason.
func TestGoodbyeAfterTheReason(t *testing.T) {
	for _, breaks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newMute(t)
			defer w.Close()
			c := w.Endpoint(0).Comm(0)
			posted := func() []wire.Message {
				c.e.mu.Lock()
				defer c.e.mu.Unlock()
				return c.e.link.(*mute).posted
			}
			if breaks {
				c.pendingCause, c.announcement = failure{peer: 1, err: net.ErrClosed}, newAnnouncement()
			}
			var closing sync.WaitGroup
			closing.Go(func() { _ = c.Close() })
			synctest.Wait()
			if breaks {
				if said := posted(); len(said) > 0 {
					t.Errorf("said before the reason: %+v", said)
				}
				close(c.announcement.told)
			}
			closing.Wait()
			if said := posted(); len(said) != 1 || said[0].Kind != wire.Bye || said[0].Broken != breaks {
				t.Errorf("breaks %v: said %+v", breaks, said)
			}
		})
	}
}

// Ranks that don't answer are waited for for two seconds, for five if the answers decide who is late.
func TestSilentRanks(t *testing.T) {
	for about, want := range map[askReason]time.Duration{{}: 2 * time.Second, {forLate: true}: 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			c := newControl(nil, cutJob{&lineJob{silent: func(levels.Rank) bool { return true }}}, 0)
			began := time.Now()
			c.askStates(nil, map[levels.Rank]bool{1: true}, about, func() bool { return false }, nil)
			if took := time.Since(began); took < want || took > want+10*time.Millisecond {
				t.Errorf("%+v: after %v, want %v", about, took, want)
			}
			c.background.Wait()
		})
	}
}

// Each rank hears which number a link gets.
func TestTellRenewal(t *testing.T) {
	j := &lineJob{made: make(chan net.Conn, 1)}
	c := newControl(nil, cutJob{j}, 0)
	c.tellRenewal(1, 3, net.ErrClosed)
	if got, err := io.ReadAll(<-j.made); err != nil || !bytes.Contains(got, []byte(`"Seq":3`)) {
		t.Errorf("%q, %v", got, err)
	}
	c.background.Wait()
}

// Ranks ask in turn, and after those that have asked already; not if it is over meanwhile.
func TestAwaitTurn(t *testing.T) {
	const now, soon = time.Duration(0), nextTurn
	breaks := func(c *Comm) { c.breakUp(1, net.ErrClosed) }
	asks := func(c *Comm) { c.e.noteAsked(note{}) }
	stops := func(c *Comm) {
		c.e.mu.Unlock()
		c.e.stopDriving()
		c.e.mu.Lock()
	}
	for _, test := range []struct {
		me, size int
		heard    []time.Duration // questions of others, after how long
		over     time.Duration
		how      func(c *Comm) // nil: it isn't over
		want     time.Duration
	}{
		{0, 10, nil, now, nil, 0},
		{3, 10, nil, now, nil, 3 * nextTurn},
		{199, 200, nil, now, nil, 199 * lastTurn / 200},
		{0, 10, []time.Duration{now}, now, nil, lateTime},
		{3, 10, []time.Duration{soon}, now, nil, soon + lateTime},
		{3, 10, []time.Duration{soon, time.Second}, now, nil, lastTurn + lateTime},
		{3, 10, []time.Duration{soon}, time.Second, breaks, time.Second},
		{3, 10, []time.Duration{soon}, time.Second, stops, time.Second},
		{3, 10, nil, soon, asks, soon},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newMute(t)
			c := w.Endpoint(0).Comm(0)
			c.me, c.ranks, w.control = levels.Rank(test.me), make([]levels.Rank, test.size), &control{}
			locked := func(f func()) {
				c.e.mu.Lock()
				defer c.e.mu.Unlock()
				f()
			}
			for _, d := range test.heard {
				if hear := func() { locked(func() { c.askedLate = time.Now() }) }; d == now {
					hear()
				} else {
					time.AfterFunc(d, hear)
				}
			}
			if test.how != nil {
				time.AfterFunc(test.over, func() { locked(func() { test.how(c) }) })
			}
			began := time.Now()
			c.awaitTurn(&c.askedLate, func() (over bool) {
				locked(func() { over = c.broken != nil || c.e.stopped || !c.askedStall.IsZero() })
				return over
			})()
			if took := time.Since(began); took != test.want {
				t.Errorf("rank %d of %d, heard %v: after %v, want %v", test.me, test.size, test.heard, took, test.want)
			}
			w.control = nil
			w.Close()
		})
	}
}

// Errands to one rank come in order, and wait for no other rank that is silent.
func TestErrandsPassASilentRank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &lineJob{made: make(chan net.Conn), silent: func(to levels.Rank) bool { return to == 1 }}
		c := newControl(nil, j, 0)
		began := time.Now()
		for i := range byte(3) {
			c.queueDirect(directNote{1, i, nil})
			c.queueDirect(directNote{2, i, nil})
		}
		for want := range byte(3) {
			got := make([]byte, 5)
			if _, err := io.ReadFull(<-j.made, got); err != nil || got[4] != want {
				t.Errorf("note %d, %v; want %d", got[4], err, want)
			}
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("the last one came after %v; the silent rank took %v", took, directTime)
		}
		c.awaitDirect(t.Context())
		if took := time.Since(began); took != 3*directTime || len(c.direct) > 0 {
			t.Errorf("the silent rank was given up after %v, with %d left", took, len(c.direct))
		}
	})
}

// However many ranks are silent, leaving the job takes no more than the direct notes on their way.
func TestErrandsEndWithTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &lineJob{silent: func(levels.Rank) bool { return true }}
		c := newControl(nil, j, 0)
		for to := range levels.Rank(10 * mostCarriers) {
			c.queueDirect(directNote{to, 0, nil})
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), directTime/2)
		defer cancel()
		c.awaitDirect(ctx)
		if took := time.Since(began); took != directTime {
			t.Errorf("it took %v, want %v", took, directTime)
		}
	})
}

// A verdict goes to rank 0 if that hears it. Otherwise, and on rank 0, the rank that found it says it.
func TestVerdictsGoToRank0(t *testing.T) {
	for _, test := range []struct {
		me    levels.Rank
		first flight.Doing // what rank 0 does
		goes  bool
	}{{1, flight.Inside, true}, {1, flight.Outside, true}, {1, flight.Stopped, false}, {0, flight.Inside, false}} {
		var log bytes.Buffer
		j := &lineJob{made: make(chan net.Conn, 1)}
		w := &World{}
		w.config.Stalls = slog.New(slog.NewTextHandler(&log, nil))
		w.control = newControl(w, j, test.me)
		var hearing sync.WaitGroup
		heard := int64(0)
		hearing.Go(func() {
			for line := range j.made {
				n, _ := io.Copy(io.Discard, line)
				heard += n
			}
		})
		w.tellVerdict(test.me, &verdict.Finding{Class: verdict.Late, Text: "rank 2"}, []flight.State{{Rank: 1, Doing: flight.Inside}, {Rank: 0, Doing: test.first}})
		close(j.made)
		if hearing.Wait(); heard > 0 != test.goes || bytes.Contains(log.Bytes(), []byte("late: rank 2")) == test.goes {
			t.Errorf("rank %d, rank 0 is %v: it hears %d bytes, logged %q", test.me, test.first, heard, &log)
		}
	}
}
