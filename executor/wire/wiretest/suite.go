package wiretest

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// Port is the link of one of two ranks: rank 0 or rank 1.
type Port struct {
	Link wire.Link
	// Sleeper, if not nil, is how the rank waits for the link.
	Sleeper wire.Sleeper
}

// Run checks that links between two ranks do what package wire says. open makes new ones,
// with nothing on its way, and is called for each test.
func Run(t *testing.T, open func(t *testing.T) (a, b Port)) {
	t.Run("letters", func(t *testing.T) { testLetters(t, open) })
	t.Run("forget", func(t *testing.T) { testForget(t, open) })
	t.Run("sleep", func(t *testing.T) { testSleep(t, open) })
}

// RunLines is Run for a line between two ranks, without the ranks around it.
func RunLines(t *testing.T, open func(t *testing.T) (a, b Line)) {
	Run(t, func(t *testing.T) (Port, Port) {
		a, b := open(t)
		return Port{Link: lineLink{a, 1}}, Port{Link: lineLink{b, 0}}
	})
}

// lineLink is a line to one rank as a link.
type lineLink struct {
	line Line
	to   levels.Rank
}

// Post sends to the other rank.
func (l lineLink) Post(_ levels.Rank, m *wire.Message, payload []byte) { l.line.Post(m, payload) }

// Put sends to the other rank.
func (l lineLink) Put(_ levels.Rank, m *wire.Message, src []byte, token int32) bool {
	return l.line.Put(m, src, token)
}

// Poll polls the line.
func (l lineLink) Poll(s wire.Sink) bool { return l.line.Poll(s) }

// Flush flushes the line and reports whether something is left.
func (l lineLink) Flush(s wire.Sink) bool {
	l.line.Flush(s)
	return l.line.IsBusy()
}

// Forget lets go of what has failed.
func (l lineLink) Forget(what wire.Scope, s wire.Sink) { l.line.Forget(what, s) }

// portLine is a port as one of the lines that Exchange takes.
type portLine struct {
	link wire.Link
	to   levels.Rank
	left bool // at the last Flush something was left
}

// Post sends to the other rank.
func (p *portLine) Post(m *wire.Message, payload []byte) { p.link.Post(p.to, m, payload) }

// Put sends to the other rank.
func (p *portLine) Put(m *wire.Message, src []byte, token int32) bool {
	return p.link.Put(p.to, m, src, token)
}

// Poll polls the link.
func (p *portLine) Poll(s wire.Sink) bool { return p.link.Poll(s) }

// Flush flushes the link, and remembers whether something was left.
func (p *portLine) Flush(s wire.Sink) bool {
	p.left = p.link.Flush(s)
	return false
}

// Forget lets go of what has failed.
func (p *portLine) Forget(what wire.Scope, s wire.Sink) { p.link.Forget(what, s) }

// IsBusy reports whether something was left at the last Flush.
func (p *portLine) IsBusy() bool { return p.left }

// testLetters: the messages of one rank come to the other, once, whole and in order; large payloads
// come to their places and so does the budget in messages; each Put ends.
func testLetters(t *testing.T, open func(t *testing.T) (a, b Port)) {
	const largest = 3 * wire.MaxFrame
	for _, parallel := range []bool{false, true} {
		for range 3 {
			seed := rand.Uint64()
			draw := rand.New(rand.NewPCG(seed, 0))
			a, b := open(t)
			Exchange(t,
				&Side{Link: &portLine{link: a.Link, to: 1}, Sends: DrawLetters(draw, 60, largest)},
				&Side{Link: &portLine{link: b.Link, to: 0}, Sends: DrawLetters(draw, 60, largest)}, seed, parallel)
		}
	}
}

// testForget fails a communicator. Nothing of it is read any more. The budget in its
// messages still arrives, and so do puts on other communicators.
func testForget(t *testing.T, open func(t *testing.T) (a, b Port)) {
	a, b := open(t)
	const large = 20 * wire.MaxFrame
	sender, places := &Reader{}, [][]byte{make([]byte, large), make([]byte, 3), make([]byte, 3)}
	hears := &Reader{Want: make([]Letter, 3), Places: map[int32][]byte{}}
	srcs := [][]byte{make([]byte, large), []byte("abc"), []byte("def")}
	for i, m := range []wire.Message{
		{Kind: wire.Data, Comm: 1, Size: large},
		{Kind: wire.Data, Comm: 2, Size: 3},
		{Kind: wire.Data, Comm: 1, Size: 3, Refund: 9},
	} {
		m.Edge, m.Addr = int32(i), wire.Start(places[i])
		hears.Want[i], hears.Places[m.Edge] = Letter{Message: m, Payload: srcs[i]}, places[i]
		if !a.Link.Put(1, &m, srcs[i], int32(i)) {
			sender.Left++
		}
	}
	a.Link.Flush(sender)
	a.Link.Forget(wire.Scope{Comm: 1}, sender)
	if sender.Left > 1 {
		t.Errorf("%d puts are left, want the other communicator's at most", sender.Left)
	}
	for end := time.Now().Add(patience); time.Now().Before(end) && (sender.Left > 0 || !bytes.Equal(places[1], srcs[1]) || hears.Refunds != 9); {
		a.Link.Flush(sender)
		b.Link.Poll(hears)
		a.Link.Poll(sender)
	}
	if sender.Left > 0 || !bytes.Equal(places[1], srcs[1]) || hears.Refunds != 9 {
		t.Errorf("%d puts are left; the other communicator's brought %q; %d bytes were given back, want 9", sender.Left, places[1], hears.Refunds)
	}
}

// patience is after how long a test that waits has failed.
const patience = 10 * time.Second

// testSleep: a rank doesn't sleep on a message, and is woken by one, by Wake, by the end of
// what it waits for and by the tick.
func testSleep(t *testing.T, open func(t *testing.T) (a, b Port)) {
	a, b := open(t)
	if b.Sleeper == nil {
		t.Skip("how ranks wait is not the link's")
	}
	hears := &Reader{Want: make([]Letter, 4), Places: map[int32][]byte{}}
	for n := range hears.Want {
		hears.Want[n].Message = wire.Message{Kind: wire.Credit, Edge: int32(n)}
	}
	a.Link.Post(1, &hears.Want[0].Message, nil) // the first may open a connection
	for end := time.Now().Add(patience); hears.Small == 0 && time.Now().Before(end); {
		a.Link.Poll(&Reader{})
		a.Link.Flush(&Reader{})
		b.Link.Poll(hears)
	}
	for n := 1; n < len(hears.Want); n++ {
		if !b.Sleeper.Arm() {
			t.Fatal("with nothing on its way a rank can't sleep")
		}
		a.Link.Post(1, &hears.Want[n].Message, nil)
		a.Link.Flush(&Reader{})
		began := time.Now()
		if b.Sleeper.Park(nil); time.Since(began) > wire.Tick/2 {
			t.Errorf("message %d has not woken the rank that sleeps, for %v", n, time.Since(began))
		}
		if began = time.Now(); b.Sleeper.Arm() {
			if b.Sleeper.Park(nil); time.Since(began) > wire.Tick/2 {
				t.Errorf("a rank has slept on message %d, for %v", n, time.Since(began))
			}
		}
		if b.Link.Poll(hears); hears.Err != nil || hears.Small != n+1 {
			t.Fatalf("%d messages came, want %d; %v", hears.Small, n+1, hears.Err)
		}
	}
	b.Sleeper.Arm()
	go b.Sleeper.Wake() // Park waits for it
	b.Sleeper.Park(nil)
	done := make(chan struct{})
	close(done)
	b.Sleeper.Arm()
	b.Sleeper.Park(done)
	ticked := false
	for began := time.Now(); !ticked && time.Since(began) < patience; {
		b.Sleeper.Arm()
		ticked = b.Sleeper.Park(nil)
	}
	if !ticked {
		t.Error("a rank that sleeps is not woken by the tick")
	}
}
