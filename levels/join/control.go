package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tierflow/tierflow/levels"
)

// inboxSize bounds the messages waiting for the OnControl handler.
const inboxSize = 1024

// delivery is a message, or a loss if err is set.
type delivery struct {
	from    levels.Rank
	kind    uint8
	payload []byte
	err     error
}

// OnControl sets the handler of messages from Broadcast and Send. Earlier
// messages are kept for it, 1024 at most. Handlers run one at a time, those of one
// sender in the order of sending, and own the payload. A handler must not wait
// for the control plane (Exchange, Close) and should return soon: while 1024
// messages wait for it, nothing else is taken from the tree. A later call
// replaces the handler.
func (j *Job) OnControl(handler func(from levels.Rank, kind uint8, payload []byte)) {
	j.onControl.Store(&handler)
	j.inbox.wake()
}

// OnLost sets the handler for ranks that ended without goodbye, or have a host
// silent for 10 s. It is called once per lost rank, on every surviving rank; the
// error wraps [ErrLost]. Earlier losses are kept for it. It runs as
// OnControl's handler does, never beside it.
//
// A rank has ended when its connection has. If a child of its process keeps that open, a neighbour in
// the tree on the same machine still sees the end of the process, on Linux.
//
// When the lost rank was an inner node of the tree, the ranks below it are cut
// off from the others: control messages no longer pass between the two sides. Each
// learns of the loss, and of those after it: they connect anew for the news.
func (j *Job) OnLost(handler func(levels.Rank, error)) {
	j.onLost.Store(&handler)
	j.inbox.wake()
}

// dispatch calls the handlers until the inbox closes.
func (j *Job) dispatch() {
	for {
		d, ok := j.inbox.takeFirst(func(d delivery) bool {
			return d.err != nil && j.onLost.Load() != nil || d.err == nil && j.onControl.Load() != nil
		})
		switch {
		case !ok:
			return
		case d.err != nil:
			j.LetOut()
			(*j.onLost.Load())(d.from, d.err)
		default:
			(*j.onControl.Load())(d.from, d.kind, d.payload)
		}
	}
}

// passTime is how long the news of a loss is kept from this rank's handler at most, until it is on its
// way to the others: on a busy machine a writer waits for its turn.
const passTime = 500 * time.Millisecond

// LetOut waits until all messages sent and passed on so far are with the operating system,
// 500 ms at most. A program may end itself as soon as it hears why it can't go on. The
// others then lose this rank too, and must have heard the reason before.
func (j *Job) LetOut() {
	ctx, cancel := context.WithTimeout(context.Background(), passTime)
	defer cancel()
	for _, e := range j.allEdges() {
		e.out.awaitDone(ctx)
	}
}

// Broadcast sends a message to every other rank, of at most [MaxPayload] bytes. It
// doesn't wait: when a queue is full it fails with [ErrBusy] and sends nothing.
// Lost ranks, and those cut off by a loss, are passed over.
func (j *Job) Broadcast(kind uint8, payload []byte) error {
	f := frame{kind: frameMessage, user: kind, from: j.Rank, to: everyone, payload: payload}
	return j.originate(&f, j.edges)
}

// Send sends a message to one rank, maybe this one. Limits are Broadcast's;
// a gone rank, or one cut off, is a [PeerError].
func (j *Job) Send(to levels.Rank, kind uint8, payload []byte) error {
	if to < 0 || int(to) >= j.Size {
		return fmt.Errorf("send control message: rank %d; allowed are 0 to %d", to, j.Size-1)
	}
	f := frame{kind: frameMessage, user: kind, from: j.Rank, to: to, payload: payload}
	if to == j.Rank {
		return j.sendSelf(&f)
	}
	if err := j.goneError(to); err != nil {
		return err
	}
	hop := j.tree.next(j.Rank, to)
	if err := j.goneError(hop); err != nil {
		return &PeerError{to, fmt.Errorf("cut off: %w", err)}
	}
	return j.originate(&f, []*edge{j.edgeTo(hop)})
}

// CutOff lists the ranks here but out of reach for control messages from this
// one: a rank on the way to them is lost, or left before them. [Job.Dial] reaches
// them.
func (j *Job) CutOff() []levels.Rank {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.ContainsFunc(j.absent, func(err error) bool { return err != nil }) {
		return nil
	}
	var cut []levels.Rank
	for r := range levels.Rank(j.Size) {
		if r != j.Rank && j.absent[r] == nil && !j.reaches(r) {
			cut = append(cut, r)
		}
	}
	return cut
}

// reaches reports whether all ranks on the way to another one are here. j.mu is held.
func (j *Job) reaches(to levels.Rank) bool {
	for at := j.tree.next(j.Rank, to); at != to; at = j.tree.next(at, to) {
		if j.absent[at] != nil {
			return false
		}
	}
	return true
}

func (j *Job) sendSelf(f *frame) error {
	if err := j.sendable(f); err != nil {
		return err
	}
	j.sending.Lock()
	defer j.sending.Unlock()
	if j.inbox.full() {
		return fmt.Errorf("rank %d to itself: %w", j.Rank, ErrBusy)
	}
	j.inbox.force(delivery{from: f.from, kind: f.user, payload: append([]byte{}, f.payload...)})
	return nil
}

func (j *Job) sendable(f *frame) error {
	if len(f.payload) > MaxPayload {
		return fmt.Errorf("control message of %d bytes; allowed are %d", len(f.payload), MaxPayload)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closing {
		return ErrClosed
	}
	return nil
}

// originate queues this rank's own message on all edges or none. Forwarders don't
// take the lock, so a queue may end one above its limit.
func (j *Job) originate(f *frame, edges []*edge) error {
	if err := j.sendable(f); err != nil {
		return err
	}
	b := f.encode()
	j.sending.Lock()
	defer j.sending.Unlock()
	for _, e := range edges {
		if e.out.full() {
			return &PeerError{e.peer, ErrBusy}
		}
	}
	for _, e := range edges {
		e.out.force(b)
	}
	return nil
}

// goneError returns a PeerError if r is lost or has left.
func (j *Job) goneError(r levels.Rank) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.absent[r]; err != nil {
		return &PeerError{r, err}
	}
	return nil
}

func (j *Job) edgeTo(r levels.Rank) *edge {
	for _, e := range j.edges {
		if e.peer == r {
			return e
		}
	}
	panic(fmt.Sprintf("join: rank %d has no edge to its neighbour %d", j.Rank, r))
}

// handle takes one frame from a neighbour; an error ends that edge.
//
// Forwarding a message may wait for room in the next queue. No deadlock follows:
// a message never goes back over the edge it came from, so in a tree the queues
// that wait for each other form no circle.
func (j *Job) handle(e *edge, f *frame) error {
	j.count(e, f)
	switch f.kind {
	case frameAck:
	case frameMessage:
		j.pass(e, f)
	case frameBlob:
		j.flood(e, f)
		return j.receivePart(f)
	case frameLost:
		// After a split of the network each side counts the ranks of the other as lost. When it heals nobody may believe the other side.
		if f.from != j.Rank && !errors.Is(j.goneError(e.peer), ErrLost) {
			j.lose(e, f.from, f.loss())
		}
	case frameGoodbye:
		j.takeLeave(e, f)
	case frameHealed:
		e.stands.Store(true)
	default:
		return fmt.Errorf("frame of kind %d on a control connection", f.kind)
	}
	return nil
}

// pass delivers a message, or passes it on, or both.
func (j *Job) pass(e *edge, f *frame) {
	switch f.to {
	case everyone:
		b := f.encode()
		for _, other := range j.edges {
			if other != e {
				other.out.put(b)
			}
		}
	case j.Rank:
	default:
		if hop := j.edgeTo(j.tree.next(j.Rank, f.to)); hop != e {
			hop.out.put(f.encode())
		}
		return
	}
	j.inbox.put(delivery{from: f.from, kind: f.user, payload: f.payload})
}

// flood sends f on over all edges but the one it came from, beyond the queues'
// limit: for frames with a bounded number per rank under way. News goes along the
// edges beside the tree too, once.
func (j *Job) flood(except *edge, f *frame) {
	b := f.encode()
	edges := j.edges
	if f.kind == frameLost || f.kind == frameGoodbye {
		edges = j.allEdges()
	}
	for _, e := range edges {
		if e != except {
			e.out.force(b)
		}
	}
}

// loss is the error in a frameLost.
func (f *frame) loss() error { return fmt.Errorf("%w: %s", ErrLost, f.payload) }

// lose takes in the loss of r, as its neighbour saw or e said; nil: as this rank found. The others hear of it.
func (j *Job) lose(e *edge, r levels.Rank, err error) { j.miss(e, r, lostFrame(r, err), err) }

// miss is lose with the news for the others; nil: there is none. It is queued before the lock is free: whoever finds r
// absent, and ends because of it, has passed the news on.
func (j *Job) miss(e *edge, r levels.Rank, news *frame, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.absent[r] != nil || j.stopped {
		return
	}
	j.losses = append(j.losses, r)
	j.setAbsent(e, r, news, err)
	for _, e := range j.allEdges() {
		if e.peer == r {
			e.depart(false) // its connection may stay
		}
	}
	j.inbox.force(delivery{from: r, err: err}) // behind the news to the others, see dispatch
}

// Lose counts another rank as lost, though it may live: it goes on without this one, or the others do without it. Close
// doesn't wait for it, and messages go past it. tell: the others hear of the loss, and count it too.
func (j *Job) Lose(r levels.Rank, why error, tell bool) {
	switch err := fmt.Errorf("%w: %w", ErrLost, why); {
	case !j.isOther(r):
	case tell:
		j.lose(nil, r, err)
	default:
		j.miss(nil, r, nil, err)
	}
}

// setAbsent notes why a rank is gone, and passes the news on, if there is some. j.mu is held.
func (j *Job) setAbsent(e *edge, r levels.Rank, news *frame, why error) {
	j.absent[r] = why
	if news != nil {
		j.flood(e, news)
	}
	for _, x := range j.exchanges {
		j.settle(x)
	}
	j.needHealing()
}

// lostFrame is the news of a lost rank.
func lostFrame(r levels.Rank, err error) *frame {
	return &frame{kind: frameLost, from: r, to: everyone, payload: []byte(strings.TrimPrefix(err.Error(), ErrLost.Error()+": "))}
}

// takeLeave takes in the goodbye of a rank.
func (j *Job) takeLeave(e *edge, f *frame) {
	j.noteLeft(e, f)
	if f.from == e.peer {
		e.depart(true)
	}
}

// noteLeft notes the goodbye of a rank, and passes it on if it is new.
func (j *Job) noteLeft(e *edge, f *frame) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.absent[f.from] == nil && f.from != j.Rank {
		j.setAbsent(e, f.from, f, ErrLeft)
	}
}

// serve begins to write to a neighbour, to listen to it, and to watch its process.
func (j *Job) serve(e *edge) {
	j.writing.Go(e.write)
	j.running.Go(func() { j.listenTo(e) })
	j.running.Go(func() { j.watchProcess(e) })
}

// listenTo reads an edge to its end, over as many connections as it takes, and tells of the loss if its end is one.
func (j *Job) listenTo(e *edge) {
	for e.read(j.Size, j.handle); j.mend(e); {
		e.read(j.Size, j.handle)
	}
	e.current().Close()
	j.mu.Lock()
	e.end()
	j.mu.Unlock()
	if err := e.loss(); err != nil && e.stands.Load() {
		j.lose(e, e.peer, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.needHealing()
}
