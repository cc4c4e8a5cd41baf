package executor

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Only on the communicator of all ranks a departed rank's calls have numbers; elsewhere the digest finds them.
func TestCallsOfDeparted(t *testing.T) {
	sum, bcast := &description{Request: "sum"}, &description{Request: "bcast"}
	p := &pastCalls{Calls: []pastCall{{Seq: 3, Digest: 7, Call: sum}, {Seq: 4, Digest: 7}}, Known: []pastCall{{Digest: 9, Call: bcast}}}
	for _, test := range []struct {
		comm, seq, digest uint32
		want              *description
	}{{0, 3, 0, sum}, {0, 4, 0, sum}, {0, 5, 0, nil}, {1, 3, 0, nil}, {1, 3, 9, bcast}, {0, 3, 9, bcast}, {0, 3, 8, nil}} {
		got := p.find(CommID(test.comm), test.seq, test.digest)
		if got.call != test.want || (got.state == callPresent) != (test.want != nil) {
			t.Errorf("call %d on %d, digest %d: %+v, want %v", test.seq, test.comm, test.digest, got, test.want)
		}
	}
}

// A transfer moves once its bytes are on their way.
func TestTransfersThatMove(t *testing.T) {
	c, p := &Comm{}, &puts{}
	send, posted, fromAny, moving, put := &Transfer{n: 1}, &Transfer{n: 2}, &Transfer{n: 3}, &Transfer{n: 4}, &Transfer{n: 5}
	addTransfer(&c.sends, send)
	c.recvs.push(address{1, 7}, posted)
	c.anyRecvs.push(7, fromAny)
	addTransfer(&c.movingRecvs, moving)
	p.add(putOwner{transfer: put})
	type told struct {
		way   string
		moves bool
	}
	got := map[*Transfer]told{}
	commTable{0: c}.eachTransfer(p, func(t *Transfer, way string, moves bool) { got[t] = told{way, moves} })
	want := map[*Transfer]told{send: {sendWay, false}, posted: {recvWay, false}, fromAny: {recvWay, false}, moving: {recvWay, true}, put: {sendWay, true}}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", slices.Collect(maps.Values(got)), slices.Collect(maps.Values(want)))
	}
}

// Each rank may send to one in an exchange, and to the root of a gather.
func TestCountSenders(t *testing.T) {
	for coll, want := range map[tasks.Collective]int{tasks.Bcast: 1, tasks.Allreduce: 1, tasks.Scatter: 1, tasks.Gather: 4, tasks.Alltoall: 4} {
		if got := countSenders(&submodules.Program{Size: 5, Request: tasks.Request{Coll: coll, Count: 1, Type: tasks.Int8}}); got != want {
			t.Errorf("%v: %d, want %d", coll, got, want)
		}
	}
}

// Nodes with different clocks go on comparing them; with the same one they need not.
func TestCompareClocks(t *testing.T) {
	for _, name := range []string{"mine", "another"} {
		j := &lineJob{made: make(chan net.Conn, 1)}
		tr := &tracing{clock: "mine"}
		for range 2 {
			var answering sync.WaitGroup
			answering.Go(func() { _ = clock.Answer(<-j.made, monotonic, clockNumber(name)) }) // ends with the connection
			same, err := tr.compareOnce(newControl(nil, j, 1), 3)
			if answering.Wait(); err != nil || same != (name == "mine") || len(tr.ahead.Fixes) > 0 == same {
				t.Errorf("clock %s: same %v, %v, %d fixes", name, same, err, len(tr.ahead.Fixes))
			}
			if !tr.mu.TryLock() {
				t.Fatal("nobody can compare again")
			}
			tr.mu.Unlock()
		}
	}
}

// askedJob tells of what is sent.
type askedJob struct {
	*lineJob
	sent func(to levels.Rank, n note)
}

func (askedJob) CutOff() []levels.Rank { return nil }

func (j askedJob) Send(to levels.Rank, _ uint8, b []byte) error {
	var n note
	err := json.Unmarshal(b, &n)
	j.sent(to, n)
	return err
}

// Questions to several ranks have their own answers, in whatever order these come.
func TestAskCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := map[levels.Rank]note{}
		var c *control
		c = newControl(nil, askedJob{nil, func(to levels.Rank, n note) {
			if asked[to] = n; len(asked) < 3 {
				return
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			for r, n := range asked {
				c.answer(n.Question, foundCall{state: callPresent, digest: uint32(10 * r)})
			}
		}}, 0)
		found := map[levels.Rank]foundCall{}
		c.askCalls([]levels.Rank{1, 2, 3}, callQuery{seq: 5}, found)
		for r := range levels.Rank(4) {
			if got := found[r]; got.digest != uint32(10*r) {
				t.Errorf("rank %d: %+v", r, got)
			}
		}
	})
}

// A rank needs no buffer that it has no part of, in however many passes.
func TestMeasureBuffers(t *testing.T) {
	for coll, want := range map[tasks.Collective][2]int64{tasks.Bcast: {0, 340}, tasks.Reduce: {340, 0}, tasks.Allreduce: {340, 340}} {
		program := func(count int64) *submodules.Program {
			return &submodules.Program{Rank: 1, Size: 2, Request: tasks.Request{Coll: coll, Count: count, Type: tasks.Int8}}
		}
		var d bound
		d.b.Whole, d.b.Rest, d.b.Passes, d.b.Stride = program(100), program(40), 3, 100
		if send, recv := d.measureBuffers(); send != want[0] || recv != want[1] {
			t.Errorf("%v: %d bytes to send from, %d to receive to; want %v", coll, send, recv, want)
		}
	}
}

// A goodbye has the text of few calls, of fewer among many ranks.
func TestPastCallsAreShort(t *testing.T) {
	var known knownCalls
	for digest := range uint32(mostKnown) {
		known.add(digest+1, &description{Request: strings.Repeat("x", 1000)})
	}
	for size, most := range map[int]int{mostAsked: mostPastText / 1000, mostAsked + 1: mostPastText / 8 / 1000} {
		if got := len((&callOrder{}).pastCalls(&known, size).Known); got != most {
			t.Errorf("%d ranks: %d calls of 1000 bytes are told, want %d", size, got, most)
		}
	}
}

// An error that others tell a rank of, and that it met itself in the call before, is its own again.
func TestOwnError(t *testing.T) {
	mine, told := errors.New("mine"), &toldError{text: "mine"}
	for _, test := range []struct {
		cause, pending failure
		err, want      error
	}{
		{failure{peer: 1, err: mine}, failure{}, told, mine},
		{failure{}, failure{peer: 1, err: mine}, told, mine},
		{failure{peer: 2, err: mine}, failure{}, told, told},
		{failure{}, failure{peer: 2, err: mine}, told, told},
		{failure{}, failure{}, told, told},
		{failure{peer: 1, err: mine}, failure{}, ErrClosed, ErrClosed},
	} {
		e := &Endpoint{rank: 1}
		e.comms = commTable{0: &Comm{e: e}, 5: &Comm{e: e}}
		e.comms[0].cause, e.comms[0].pendingCause = test.cause, test.pending
		e.comms[5].parent.known = true
		if got := e.comms[5].ownError(test.err); got != test.want {
			t.Errorf("%+v: %v, want %v", test, got, test.want)
		}
	}
}

// A question put off is asked when the lock is let go.
func TestUnlockAsks(t *testing.T) {
	other := &Endpoint{comms: commTable{}}
	e := &Endpoint{rank: 1, world: &World{endpoints: []*Endpoint{other}}}
	e.mu.Lock()
	e.asking = make([]inquiry, 1) // of rank 0, about what it doesn't know
	if e.unlock(); len(e.asking) > 0 {
		t.Error("it waits on")
	}
}

func TestParseState(t *testing.T) {
	for text, want := range map[string]string{"[IO wait, 2 minutes]:": "IO wait", "[running]:": "computing", "[runnable, locked to thread]:": "computing", "[select]:": "select"} {
		if got := parseState(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// A note's length is checked before there is room for it.
func TestNoteLength(t *testing.T) {
	for _, n := range []uint32{0, maxDirect + 1} {
		near, far := net.Pipe()
		var writing sync.WaitGroup
		writing.Go(func() {
			far.Write(append(binary.BigEndian.AppendUint32(nil, n), stateQuestionControl))
			far.Close()
		})
		if err := newControl(nil, nil, 0).takeNote(1, near); !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), fmt.Sprintf("a note of %d bytes from rank 1; allowed", n)) {
			t.Errorf("%d bytes: %v", n, err)
		}
		writing.Wait()
	}
}
