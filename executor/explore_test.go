package executor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing/synctest"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules/check/casegen"
	"github.com/tierflow/tierflow/tasks"
)

// This file is an adversary of the engine: stateless model checking of the real one. All ranks are driven by one goroutine, and
// nothing moves but what the adversary picks: a rank starts its next call, takes one message, executes steps, lets a payload
// leave; it cancels, leaves or dies. Nothing sleeps, and no clock is looked at.

// move is what an adversary lets happen next.
type move struct {
	kind moveKind
	rank levels.Rank
	peer levels.Rank // from or to whom; 0 if there is none
}

type moveKind uint8

const (
	startMove  moveKind = iota // the rank starts its next call
	hearMove                   // it takes the next message from peer
	stepMove                   // it executes a burst of steps
	sendMove                   // a payload for peer leaves, or half of it
	failMove                   // it carries out what it has deferred
	noteMove                   // it hears the next note of peer, by the control plane
	directMove                 // the same, over a connection of its own
	lossMove                   // it hears that peer has died
	breakMove                  // its link to peer, which has died, breaks
	cancelMove                 // it cancels a call
	dieMove                    // it dies
	leaveMove                  // it closes the communicator before its next call, perhaps in one
	shrinkMove                 // its calls have ended, and it asks who goes on
	goOnMove                   // it calls something on the new communicator
	sleepMove                  // time passes
	moveKinds
)

var moveNames = [moveKinds]string{"starts", "hears", "steps", "sends to", "tells of a failure", "hears a note of", "hears a direct note of", "hears of the death of", "has no link any more to", "cancels", "dies", "leaves", "asks who goes on", "goes on", "sleeps"}

func (m move) String() string {
	s := fmt.Sprintf("%d %s", m.rank, moveNames[m.kind])
	switch m.kind {
	case hearMove, sendMove, noteMove, directMove, lossMove, breakMove:
		s += fmt.Sprintf(" %d", m.peer)
	}
	return s
}

// number is the move in some bits.
func (m move) number() uint64 { return uint64(m.kind)<<32 | uint64(m.rank)<<16 | uint64(m.peer) }

// played is a collective, or with bytes a message from a rank to another one.
type played struct {
	casegen.Case
	bytes    int // of the message, and one more
	from, to levels.Rank
	tag      int32
	way      int  // of its receive, see act.start
	beside   bool // on the second communicator, which nobody cancels or leaves
}

func (c played) String() string {
	where := ""
	if c.beside {
		where = "beside: "
	}
	if c.bytes == 0 {
		return where + c.Case.String()
	}
	return where + fmt.Sprintf("%d bytes from rank %d to rank %d, tag %d, received by way %d", c.bytes-1, c.from, c.to, c.tag, c.way)
}

// stage is what is explored: calls, in the same order on all ranks, and what may go wrong.
type stage struct {
	topology *levels.Topology
	calls    []played
	config   executor.Config
	direct   bool // see network
	whole    bool
	isolated bool // ranks read only what was shared, as processes do
	far      bool // nodes are as far from each other as processes on two
	ahead    int  // calls that a rank may have under way
	passes   bool // calls that are cut by elements run in three passes
	separate bool // each rank is a process
	deaths   int  // ranks that may die; only with separate
	recovers bool // the others go on without it; only in a bubble
	cancels  bool // one rank may cancel
	leaves   bool // one rank may leave early
	odd      *odd // what one rank calls in place of what the others do; nil: nothing. Only in a bubble
}

// odd is what one rank calls in place of a call of the first communicator.
type odd struct {
	rank levels.Rank
	call int
	casegen.Case
}

// isInBubble reports whether it needs one: for agreements, and for questions about calls.
func (s *stage) isInBubble() bool { return s.recovers || s.odd != nil }

func (s *stage) String() string {
	text := fmt.Sprintf("EagerMax %d, EagerBudget %d, direct %t, whole %t, isolated %t, far %t, %d ahead, passes %t, separate %t, %d deaths, recovers %t, cancels %t, leaves %t",
		s.config.EagerMax, s.config.EagerBudget, s.direct, s.whole, s.isolated, s.far, s.ahead, s.passes, s.separate, s.deaths, s.recovers, s.cancels, s.leaves)
	text += fmt.Sprintf("\n  %v", s.topology)
	for _, c := range s.calls {
		text += "\n  " + c.String()
	}
	if s.odd != nil {
		text += fmt.Sprintf("\n  rank %d in place of call %d: %v", s.odd.rank, s.odd.call, s.odd.Case)
	}
	return text
}

// play is a stage with its ranks, at some point of a script.
type play struct {
	stage    *stage
	world    *executor.World
	net      *network
	links    []*slowLink
	planes   []*plane           // of separate ranks
	ids      [2]executor.CommID // of the communicator that may be cancelled or left, and of the one beside it
	rounds   []round
	odd      round         // of stage.odd
	promised [][][]promise // by call and rank
	acts     [][]*act      // by call and rank
	next     []int         // by rank: the call that it starts next
	open     []int         // by rank: calls under way on the first communicator
	besides  []int         // by rank: on the second
	gone     levels.Rank   // has left; nobody: none has
	torn     bool          // in calls
	missed   int           // the first call that it has not started
	culprit  levels.Rank   // has cancelled; nobody: none has
	dead     []levels.Rank // have died
	heard    []uint64      // by rank: of whose deaths, a bit for each
	broke    []uint64      // by rank: the links to whom have broken
	moves    []move        // that are possible
	history  []uint64      // by rank: hash of its moves
	events   int
	length   int // of the script so far
	recovery     // only with stage.recovers
}

// longestScript is how many moves no script has, unless ranks move on without getting anywhere.
const longestScript = 100_000

// act is a call on a rank.
type act struct {
	comm       *executor.Comm
	call       *played
	run        *executor.Run // of a collective
	ending     ending        // nil: it is over, as a message between others is
	send, recv []byte        // given at the begin of each script
	begin      [2][]byte
	started    bool
	ended      bool
	err        error
}

// ending is what a call has that was started.
type ending interface {
	Done() bool
	Wait(ctx context.Context) error
}

// start starts a rank's part of a call.
func (a *act) start(r levels.Rank) (err error) {
	ctx := context.Background()
	var t *executor.Transfer
	switch c := a.call; {
	case c.bytes == 0:
		a.ending = a.run
		return a.run.Start(ctx)
	case r == c.from:
		t, err = a.comm.Send(ctx, c.to, c.tag, 0, a.send)
	case r != c.to:
		return nil
	case c.way == 0:
		t, err = a.comm.Recv(ctx, c.from, c.tag, 0, a.recv)
	case c.way == 1:
		t, err = a.comm.RecvAlone(ctx, c.from, c.tag, 0, a.recv)
	case c.way == 2:
		t, err = a.comm.RecvAny(ctx, c.tag, 0, a.recv)
	default: // too short
		t, err = a.comm.Recv(ctx, c.from, c.tag, 0, a.recv[:len(a.recv)-1])
	}
	if err == nil {
		a.ending = t
	}
	return err
}

// promise is bytes that must be in a receive buffer.
type promise struct {
	at   int64
	want []byte
}

// scribbled is in the buffers of ended calls.
const scribbled = 0xee

var (
	errPlayed = errors.New("cancelled by the adversary")
	errDied   = errors.New("died by the adversary")
)

func newPlay(t failer, s *stage) *play {
	t.Helper()
	top := s.topology
	p := &play{stage: s, culprit: nobody, gone: nobody, heard: make([]uint64, top.Size()), broke: make([]uint64, top.Size()), net: newNetwork(top.Size(), s.direct, s.whole), history: make([]uint64, top.Size()), next: make([]int, top.Size()), open: make([]int, top.Size()), besides: make([]int, top.Size())}
	for i, c := range s.calls {
		if c.bytes > 0 {
			d, all := roundOfMessage(&c, i, top.Size())
			p.rounds, p.promised = append(p.rounds, d), append(p.promised, all)
			continue
		}
		if s.inPasses(c.Request) {
			c.Request.Count *= passesOfCall
		}
		d := roundFrom(t, 3*i, c.Request, top.Size())
		p.rounds = append(p.rounds, d)
		var all [][]promise
		for r := range top.Size() {
			var mine []promise
			for _, piece := range c.Request.Promised(levels.Rank(r), top.Size()) {
				from := d.source(t, piece)
				mine = append(mine, promise{piece.At, from[piece.Off:][:piece.Len]})
			}
			all = append(all, mine)
		}
		p.promised = append(p.promised, all)
	}
	if s.odd != nil {
		p.odd = roundFrom(t, 1, s.odd.Request, top.Size())
		p.promised[s.odd.call][s.odd.rank] = nil
	}
	p.build(t)
	return p
}

// roundOfMessage returns what the ranks put into the i-th call, a message, and what must come out.
func roundOfMessage(c *played, i, size int) (d round, promised [][]promise) {
	d.send, d.recv, promised = make([][]byte, size), make([][]byte, size), make([][]promise, size)
	text := make([]byte, c.bytes-1)
	for k := range text {
		text[k] = byte(7*i + 13*k + 1)
	}
	d.send[c.from], d.recv[c.to] = text, make([]byte, len(text))
	if c.way < 3 {
		promised[c.to] = []promise{{0, text}}
	}
	return d, promised
}

// build makes a new world.
func (p *play) build(t failer) {
	t.Helper()
	top := p.stage.topology
	at := places{isolated: p.stage.isolated, processes: p.stage.separate}
	if p.stage.far {
		for r := range top.Size() {
			at.nodes = append(at.nodes, top.Node(levels.Rank(r)))
		}
	}
	p.world, p.links, p.planes = newExplored(t, top.Size(), p.stage.config, p.net, at)
	p.ids = [2]executor.CommID{}
	p.bind(t)
}

// abandon ends a play after a fault: no goroutine may stay in a bubble.
func (p *play) abandon(t failer) {
	t.Helper()
	if p.stage.isInBubble() {
		p.close(t)
	}
}

// close ends the world.
func (p *play) close(t failer) {
	t.Helper()
	for r := range p.world.Size() {
		executor.Release(p.world.Endpoint(levels.Rank(r)))
	}
	p.endRecovery()
	if p.stage.separate {
		p.world.Abandon()
	} else if err := p.world.Close(); err != nil {
		t.Fatal(err)
	}
}

// bind makes two communicators of all ranks and binds all calls.
func (p *play) bind(t failer) {
	t.Helper()
	ranks := make([]levels.Rank, p.world.Size())
	for r := range ranks {
		ranks[r] = levels.Rank(r)
	}
	for _, r := range ranks {
		for i := range p.ids {
			makeComm(t, p.world.Endpoint(r), executor.CommID(i)+1+p.ids[1], ranks)
		}
	}
	p.ids = [2]executor.CommID{p.ids[1] + 1, p.ids[1] + 2}
	p.acts = nil
	for i := range p.stage.calls {
		d, c := &p.rounds[i], &p.stage.calls[i]
		j := job{p.world, c.Topology, c.Request, c.Plan}
		var acts []*act
		for r := range ranks {
			d, j := d, j
			if odd := p.stage.odd; odd != nil && odd.call == i && odd.rank == levels.Rank(r) {
				d, j.request, j.plan = &p.odd, odd.Request, odd.Plan
			}
			a := &act{comm: p.comm(ranks[r], c.beside), call: c, begin: [2][]byte{d.send[r], d.recv[r]}, send: bytes.Clone(d.send[r]), recv: bytes.Clone(d.recv[r])}
			if c.bytes == 0 {
				a.run = p.bindOne(t, j, ranks[r], a)
			}
			acts = append(acts, a)
		}
		p.acts = append(p.acts, acts)
	}
}

// isDead reports whether a rank has died.
func (p *play) isDead(r levels.Rank) bool { return slices.Contains(p.dead, r) }

// comm returns a rank's end of one of the communicators.
func (p *play) comm(r levels.Rank, beside bool) *executor.Comm {
	if beside {
		return p.world.Endpoint(r).Comm(p.ids[1])
	}
	return p.world.Endpoint(r).Comm(p.ids[0])
}

// passesOfCall is how many a call in passes has, the last one by a program of its own.
const passesOfCall = 3

// inPasses reports whether a request of three times as many elements runs in passes here.
func (s *stage) inPasses(r tasks.Request) bool {
	return s.passes && r.Coll.HasData() && !r.Blocks() && r.Count > 0
}

// bindOne binds a call on a rank.
func (p *play) bindOne(t failer, j job, r levels.Rank, a *act) *executor.Run {
	t.Helper()
	b, err := j.compile(r)
	if err != nil {
		t.Fatal(err)
	}
	if b.Send, b.Recv = a.send, a.recv; p.stage.inPasses(j.request) {
		b.Whole, b.Passes, b.Stride = b.Rest, passesOfCall-1, j.request.Bytes()
	}
	run, err := a.comm.Bind(b)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// closeAll closes the communicators and tells everybody, so that all forget it.
func (p *play) closeAll(t failer) {
	t.Helper()
	for r := range p.links {
		for _, beside := range []bool{false, true} {
			if levels.Rank(r) == p.gone && !beside {
				continue
			}
			if err := p.comm(levels.Rank(r), beside).Close(); err != nil && !errors.Is(err, errPlayed) && !errors.Is(err, executor.ErrClosed) {
				t.Fatal(err)
			}
		}
	}
	for r, link := range p.links {
		for from := range p.links {
			for len(p.net.lines[from][r].stream) > 0 {
				link.hear = levels.Rank(from)
				p.world.Endpoint(levels.Rank(r)).Hear()
			}
		}
	}
	for r := range p.links {
		p.world.Endpoint(levels.Rank(r)).CarryOut()
		if n := p.world.Endpoint(levels.Rank(r)).Comms(); n > 1 {
			t.Fatalf("rank %d remembers %d communicators", r, n-1)
		}
	}
}

// begin sets all to the begin of a script.
func (p *play) begin(t failer) {
	t.Helper()
	switch broken := p.asked != nil || p.stage.odd != nil || p.culprit != nobody || p.gone != nobody || len(p.dead) > 0; {
	case broken && p.stage.separate:
		p.close(t)
		p.build(t)
	case broken:
		p.closeAll(t)
		p.bind(t)
	}
	p.world.Renew()
	p.culprit, p.gone, p.dead, p.length = nobody, nobody, p.dead[:0], 0
	clear(p.heard)
	clear(p.broke)
	p.beginRecovery(t)
	clear(p.next)
	clear(p.open)
	clear(p.besides)
	clear(p.history)
	for _, acts := range p.acts {
		for _, a := range acts {
			copy(a.send, a.begin[0])
			copy(a.recv, a.begin[1])
			a.started, a.ended, a.err, a.ending = false, false, nil, nil
		}
	}
	if err := p.list(); err != nil {
		t.Fatal(err)
	}
}

// list lists the possible moves. It is an error if a rank has sent more than it may.
func (p *play) list() error {
	p.moves = p.moves[:0]
	quiet := p.culprit == nobody && p.gone == nobody
	for r := range levels.Rank(p.world.Size()) {
		if p.isDead(r) {
			continue
		}
		e := p.world.Endpoint(r)
		deferred, steps, budget := e.Moves()
		if budget < 0 {
			return fmt.Errorf("rank %d has sent %d bytes more than its budget to another one", r, -budget)
		}
		if deferred {
			p.moves = append(p.moves, move{failMove, r, 0})
		}
		if steps {
			p.moves = append(p.moves, move{stepMove, r, 0})
		}
		for from := range p.links {
			in, bit := &p.net.lines[from][r], uint64(1)<<from
			if len(in.stream) > 0 && p.broke[r]&bit == 0 {
				p.moves = append(p.moves, move{hearMove, r, levels.Rank(from)})
			}
			notes, direct := p.net.hasNotes(in)
			if notes && p.heard[r]&bit == 0 {
				p.moves = append(p.moves, move{noteMove, r, levels.Rank(from)})
			}
			if direct && p.heard[r]&bit == 0 {
				p.moves = append(p.moves, move{directMove, r, levels.Rank(from)})
			}
		}
		for _, dead := range p.dead {
			if p.heard[r]>>dead&1 == 0 {
				p.moves = append(p.moves, move{lossMove, r, dead})
			}
			if p.broke[r]>>dead&1 == 0 {
				p.moves = append(p.moves, move{breakMove, r, dead})
			}
		}
		if len(p.dead) < p.stage.deaths && quiet {
			p.moves = append(p.moves, move{dieMove, r, 0})
		}
		for to := range p.links {
			if p.net.lines[r][to].bulk.Len() > 0 {
				p.moves = append(p.moves, move{sendMove, r, levels.Rank(to)})
			}
		}
		if p.next[r] < len(p.acts) && p.open[r]+p.besides[r] < p.stage.ahead {
			p.moves = append(p.moves, move{startMove, r, 0})
		}
		if p.stage.leaves && quiet && (p.open[r] > 0 || p.next[r] < len(p.acts)) {
			p.moves = append(p.moves, move{leaveMove, r, 0})
		}
		if p.open[r] > 0 && p.stage.cancels && quiet {
			p.moves = append(p.moves, move{cancelMove, r, 0})
		}
	}
	p.listRecovery()
	return nil
}

// do does a move, one of the listed, and looks at what has come of it.
func (p *play) do(m move) error {
	p.events++
	if p.length++; p.length > longestScript {
		return errors.New("it goes on for ever")
	}
	e, link := p.world.Endpoint(m.rank), p.links[m.rank]
	if m.kind != sleepMove {
		p.idled = 0
	}
	switch m.kind {
	case startMove:
		a := p.acts[p.next[m.rank]][m.rank]
		p.next[m.rank]++
		if m.rank == p.gone && !a.call.beside {
			a.ended = true // it is not there any more
			break
		}
		if err := a.start(m.rank); err != nil {
			a.ended, a.err = true, err
			if fault := p.judge(m.rank, p.next[m.rank]-1, a); fault != nil {
				return fault
			}
			break
		}
		if a.ending == nil {
			a.ended = true
			break
		}
		a.started = true
		*p.count(m.rank, a)++
	case hearMove:
		link.hear = m.peer
		e.Hear()
	case stepMove:
		e.Poll()
	case sendMove:
		link.leave = m.peer
		e.Hear()
	case failMove:
		if p.stage.isInBubble() {
			go e.CarryOut() // it may ask other ranks
		} else {
			e.CarryOut()
		}
	case noteMove, directMove:
		p.planes[m.rank].hear(m.peer, m.kind == directMove)
		p.settle(e)
	case lossMove:
		p.heard[m.rank] |= 1 << m.peer
		p.planes[m.rank].onLost(m.peer, errDied)
		p.settle(e)
	case breakMove:
		p.broke[m.rank] |= 1 << m.peer
		e.Hold(func(s wire.Sink) { s.Fail(m.peer, errDied) })
	case dieMove:
		p.dead = append(p.dead, m.rank)
		p.net.dead |= 1 << m.rank
	case cancelMove:
		p.culprit = m.rank
		p.comm(m.rank, false).Revoke(errPlayed)
	case leaveMove:
		p.gone, p.torn, p.missed = m.rank, p.open[m.rank] > 0, p.next[m.rank]
		if err := p.comm(m.rank, false).Close(); (err != nil) != p.torn {
			return fmt.Errorf("rank %d closes, with %d calls open: %v", m.rank, p.open[m.rank], err)
		}
	default:
		if err := p.recover(m); err != nil {
			return err
		}
	}
	if p.stage.isInBubble() {
		synctest.Wait()
		if err := p.collectRecovery(); err != nil {
			return err
		}
	}
	p.history[m.rank] = mix(p.history[m.rank]*31 + m.number() + 1)
	if !p.stage.separate && (m.kind == failMove || m.kind == cancelMove) || m.kind == dieMove { // all ranks see it at once
		now := p.key()
		for r := range p.history {
			p.history[r] = mix(p.history[r] + now)
		}
	}
	for some := true; some; { // a wait carries out what was deferred, and other calls end
		some = false
		for r := range levels.Rank(len(p.links)) {
			did, err := p.collect(r)
			if err != nil {
				return err
			}
			some = some || did
		}
	}
	if err := p.list(); err != nil {
		return err
	}
	if len(p.moves) == 0 {
		return p.end()
	}
	return nil
}

// count returns the number of calls under way on a rank and the communicator of one of them.
func (p *play) count(r levels.Rank, a *act) *int {
	if a.call.beside {
		return &p.besides[r]
	}
	return &p.open[r]
}

// collect takes the results of a rank's calls that have ended, and uses their buffers for something else. It reports whether
// there were any.
func (p *play) collect(r levels.Rank) (some bool, err error) {
	if p.isDead(r) {
		return false, nil
	}
	for i := 0; i < p.next[r] && p.open[r]+p.besides[r] > 0; i++ {
		a := p.acts[i][r]
		if a.ended || !a.ending.Done() {
			continue
		}
		a.ended, a.err = true, a.ending.Wait(context.Background())
		*p.count(r, a)--
		some = true
		if err := p.judge(r, i, a); err != nil {
			return some, err
		}
		if to := p.net.leavesFrom(r, a.send, a.recv); to != nobody {
			return some, fmt.Errorf("call %d on rank %d has ended, and its bytes have not left for rank %d", i, r, to)
		}
		for _, b := range [][]byte{a.send, a.recv} {
			for k := range b {
				b[k] = scribbled
			}
		}
	}
	return some, nil
}

// judge returns what is wrong with the end of call i on a rank, nil if nothing is.
func (p *play) judge(r levels.Rank, i int, a *act) error {
	var peer *executor.PeerError
	named := errors.As(a.err, &peer)
	switch short := a.call.way == 3 && r == a.call.to; {
	case a.err == nil && short:
		return fmt.Errorf("call %d on rank %d: %d bytes were received in place of %d", i, r, len(a.recv), len(a.recv)-1)
	case a.err == nil:
		for _, want := range p.promised[i][r] {
			if got := a.recv[want.at:][:len(want.want)]; !bytes.Equal(got, want.want) {
				return fmt.Errorf("call %d on rank %d has from byte %d on\n%x, want\n%x", i, r, want.at, got, want.want)
			}
		}
	case short && errors.Is(a.err, executor.ErrTruncated):
	case named && p.isDead(peer.Rank):
	case p.stage.odd != nil && !a.call.beside && errors.Is(a.err, executor.ErrMismatch):
	case a.call.beside:
		return fmt.Errorf("call %d on rank %d and another communicator: %v", i, r, a.err)
	case named && errors.Is(a.err, executor.ErrRevoked) && p.gaveUp(peer.Rank):
	case p.culprit != nobody && (errors.Is(a.err, errPlayed) || p.stage.separate) && (r == p.culprit || named && peer.Rank == p.culprit):
	case p.gone == nobody || !errors.Is(a.err, executor.ErrClosed):
		return fmt.Errorf("call %d on rank %d: %v", i, r, a.err)
	case p.torn && r == p.gone, named && peer.Rank == p.gone && (p.torn || p.isGivenUp() || r != p.gone && i >= p.missed):
	default:
		return fmt.Errorf("call %d on rank %d: %v", i, r, a.err)
	}
	return nil
}

// end looks at a state in which nothing more can happen.
func (p *play) end() error {
	for i, acts := range p.acts {
		for r, a := range acts {
			switch {
			case p.isDead(levels.Rank(r)):
				continue
			case !a.ended:
				return fmt.Errorf("call %d on rank %d never ends: %s", i, r, strings.Join(p.world.Endpoint(levels.Rank(r)).Waiting(), "; "))
			}
			for _, b := range [][]byte{a.send, a.recv} {
				if a.started && slices.ContainsFunc(b, func(x byte) bool { return x != scribbled }) {
					return fmt.Errorf("a buffer of call %d on rank %d was written to after its end: %x", i, r, b)
				}
			}
		}
	}
	if p.stage.recovers {
		return p.endOfRecovery()
	}
	if left := p.world.Leftovers(p.dead...); len(left) > 0 {
		return errors.New(strings.Join(left, "; "))
	}
	if len(p.dead) == 0 && !p.net.isEmpty() {
		return errors.New("something is on its way")
	}
	return nil
}

// key is equal for two points with the same moves of each rank, in whatever order those of different ranks were.
func (p *play) key() (k uint64) {
	for r, h := range p.history {
		k += mix(h + uint64(r+1)*0x9e3779b97f4a7c15)
	}
	return k
}

func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
