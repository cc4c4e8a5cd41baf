package join

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/tierflow/tierflow/levels"
)

// progressEvery is how often rank 0 tells the waiting ranks of the missing ones.
const progressEvery = 500 * time.Millisecond

// stragglerTime is how long a failed join still takes ranks in, only
// to tell them why.
const stragglerTime = 500 * time.Millisecond

// host is rank 0's side of the rendezvous: it collects all records and sends
// everyone a place in the tree.
type host struct {
	self  *Peer
	size  int
	began time.Time

	events chan event
	done   chan struct{} // closed when nobody takes events any more

	mu   sync.Mutex
	over bool
	open map[net.Conn]bool // the connections of admit

	door   *gate
	peers  []*Peer                // by rank; nil: not here yet
	conns  []net.Conn             // by rank
	gaveUp map[levels.Rank]bool   // the ranks that came, and gave up waiting for others
	hints  map[levels.Rank]string // failed attempts in a rank's name, at most one each
	other  string                 // the last failed attempt in nobody's name
}

// event is news of one connection.
type event struct {
	conn net.Conn
	peer *Peer       // arrived, if not nil
	gone *Peer       // closed its connection, if not nil
	left bool        // said goodbye before: it has joined
	why  *JoinError  // says why it failed, if not nil
	bad  error       // failed, if not nil,
	from levels.Rank // says why; or in the name of this rank (a claim), -1: nobody's
}

// runHost collects until all are here or ctx ends. A part of the time left is
// kept for telling the others when it fails. The connections stay open, for the
// monitor.
func runHost(ctx context.Context, cfg *Config, guard *guard, self *Peer, log *refusals) (*place, *table, *host, error) {
	listeners, err := rendezvousListeners(cfg)
	if err != nil {
		return nil, nil, nil, err
	}
	h := &host{
		self: self, size: cfg.Size, began: time.Now(),
		events: make(chan event), done: make(chan struct{}), open: map[net.Conn]bool{},
		peers: make([]*Peer, cfg.Size), conns: make([]net.Conn, cfg.Size),
		gaveUp: map[levels.Rank]bool{}, hints: map[levels.Rank]string{},
	}
	h.peers[0] = self
	h.door = &gate{
		key: rendezvousKey(cfg.Secret), guard: guard, self: 0, size: cfg.Size, listeners: listeners,
		admit: h.admit, refused: h.noteRefusal, log: log,
	}
	h.door.open()
	t, err := h.collect(ctx)
	var places []*place
	if err == nil {
		places, err = t.places()
	}
	h.answer(ctx, places, err)
	if err != nil {
		h.dismiss()
		return nil, nil, nil, err
	}
	h.door.shut()
	return places[0], t, h, nil
}

// rendezvousListeners returns the listeners of the invitation or the inherited one, or
// opens each alternative that can be opened; one is enough.
func rendezvousListeners(cfg *Config) ([]net.Listener, error) {
	if cfg.opened != nil {
		return cfg.opened, nil
	}
	if cfg.Listener != nil {
		return []net.Listener{cfg.Listener}, nil
	}
	var listeners []net.Listener
	var errs reasons
	for _, a := range cfg.Rendezvous {
		l, err := listenAt(a)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		listeners = append(listeners, l)
	}
	if len(listeners) == 0 {
		return nil, fmt.Errorf("rank 0 can't listen for the job: %w", errs)
	}
	return listeners, nil
}

// listenAt listens on exactly the address if it is one of this host's. A name may
// mean loopback here and something else to the others, and an address may be
// translated on the way: then any interface will do.
func listenAt(address string) (net.Listener, error) {
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(name); err == nil || name == "localhost" {
		l, err := net.Listen("tcp", address)
		if !errors.Is(err, syscall.EADDRNOTAVAIL) {
			return l, err
		}
	}
	return net.Listen("tcp", net.JoinHostPort("", port))
}

// admit reads the record of an authenticated rank, then stays to see it leave.
func (h *host) admit(g greeting, c net.Conn) {
	defer h.release(c)
	if !h.hold(c) || g.purpose != purposeRendezvous {
		return
	}
	c.SetReadDeadline(time.Now().Add(handshakeTime))
	p, err := readRecord(c, g.from)
	if err != nil {
		h.tell(event{bad: err, from: g.from})
		return
	}
	c.SetReadDeadline(time.Time{})
	h.tell(event{conn: c, peer: p})
	e := event{conn: c, gone: p}
	for {
		f, err := readFrame(c, levels.MaxRanks, MaxPayload)
		switch {
		case err != nil: // the rank has left, or we have closed c
			h.tell(e)
			return
		case f.kind == frameGoodbye:
			e.left = true
		case f.kind == frameFailure:
			why, _ := errors.AsType[*JoinError](parseFailure(&f))
			h.tell(event{conn: c, why: why, from: p.Rank})
		}
	}
}

func readRecord(c net.Conn, from levels.Rank) (*Peer, error) {
	f, err := readFrame(c, levels.MaxRanks, maxRecord)
	if err != nil {
		return nil, err
	}
	p, err := parsePeer(f.payload)
	if err == nil && p.Rank != from {
		err = fmt.Errorf("its record is rank %d's", p.Rank)
	}
	return p, err
}

// hold and release bracket the work on a connection; dismiss ends all of it.
func (h *host) hold(c net.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open[c] = true
	return !h.over
}

func (h *host) release(c net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, c)
	c.Close()
}

// dismiss ends all goroutines and connections.
func (h *host) dismiss() {
	close(h.done)
	h.mu.Lock()
	h.over = true
	for c := range h.open {
		c.Close()
	}
	h.mu.Unlock()
	h.door.close()
}

// noteRefusal notes a claim without proof.
func (h *host) noteRefusal(g greeting, c net.Conn, err error) {
	e := event{bad: fmt.Errorf("%s: %w", source(c), err), from: -1}
	if g.version != 0 && g.from > 0 && int(g.from) < h.size {
		e.from = g.from
	}
	h.tell(e)
}

func (h *host) tell(e event) {
	select {
	case h.events <- e:
	case <-h.done:
	}
}

// spareTime is the part of the time left for telling the others.
func spareTime(deadline time.Time) time.Duration { return min(time.Until(deadline)/10, time.Second) }

func (h *host) collect(ctx context.Context) (*table, error) {
	deadline, _ := ctx.Deadline()
	spare := spareTime(deadline)
	end := time.NewTimer(time.Until(deadline) - spare)
	defer end.Stop()
	progress := time.NewTicker(progressEvery)
	defer progress.Stop()
	var contradiction error
	for len(h.missing()) > 0 {
		select {
		case e := <-h.events:
			err := h.note(e)
			if err != nil && contradiction == nil {
				contradiction = err
				end.Reset(min(time.Until(deadline)-spare, stragglerTime))
			}
		case <-progress.C:
			h.report()
		case <-end.C:
			if contradiction != nil {
				return nil, contradiction
			}
			err := absent(h.missing(), h.size, time.Since(h.began), h.failureHints())
			err.Ranks = h.culprits()
			return nil, err
		case <-ctx.Done():
			return nil, fmt.Errorf("rank 0 gave up: %w", context.Cause(ctx))
		}
	}
	if contradiction != nil {
		return nil, contradiction
	}
	t := &table{Job: make([]byte, jobIDLen), Peers: h.peers}
	rand.Read(t.Job)
	return t, nil
}

// note takes one event in; with an error the join has failed.
func (h *host) note(e event) error {
	switch {
	case e.bad != nil && e.from >= 0:
		h.hints[e.from] = fmt.Sprintf("rank %d: %v", e.from, e.bad)
	case e.bad != nil:
		h.other = e.bad.Error()
	case e.gone != nil && h.conns[e.gone.Rank] == e.conn:
		h.peers[e.gone.Rank], h.conns[e.gone.Rank] = nil, nil
		h.hints[e.gone.Rank] = fmt.Sprintf("rank %d: came and left again (%s)", e.gone.Rank, e.gone.where())
		h.gaveUp[e.gone.Rank] = e.left
	case e.peer != nil:
		return h.enter(e.peer, e.conn)
	}
	return nil
}

// enter adds a rank unless it contradicts what is known.
func (h *host) enter(p *Peer, c net.Conn) error {
	var reason string
	switch {
	case p.Size != h.size:
		reason = fmt.Sprintf("rank %d (%s) was started for %d ranks, rank 0 (%s) for %d",
			p.Rank, p.where(), p.Size, h.self.where(), h.size)
	case h.peers[p.Rank] != nil:
		reason = fmt.Sprintf("rank %d joined twice: %s and %s", p.Rank, h.peers[p.Rank].where(), p.where())
	default:
		h.peers[p.Rank], h.conns[p.Rank] = p, c
		delete(h.hints, p.Rank)
		delete(h.gaveUp, p.Rank)
		return nil
	}
	err := &JoinError{Ranks: []levels.Rank{p.Rank}, Reason: reason}
	deliver(c, failureFrame(frameFailure, err), time.Now().Add(time.Second))
	c.Close()
	return err
}

func (h *host) missing() []levels.Rank {
	var missing []levels.Rank
	for r, p := range h.peers {
		if p == nil {
			missing = append(missing, levels.Rank(r))
		}
	}
	return missing
}

// culprits are the missing ranks at fault: those that never came, else those that
// gave up waiting.
func (h *host) culprits() []levels.Rank {
	if never := slices.DeleteFunc(h.missing(), func(r levels.Rank) bool { return h.gaveUp[r] }); len(never) > 0 {
		return never
	}
	return h.missing()
}

// failureHints lists a few hints on failed attempts, in rank order.
func (h *host) failureHints() []string {
	var hints []string
	for _, r := range h.missing() {
		if hint := h.hints[r]; hint != "" && len(hints) < 8 {
			hints = append(hints, hint)
		}
	}
	if h.other != "" {
		hints = append(hints, "a connection was refused: "+h.other)
	}
	return hints
}

// report sends the waiting ranks the list of the missing ones: the first rank to give up
// can name them. It waits for nobody to listen.
func (h *host) report() {
	missing := h.missing()
	b := failureFrame(frameWaiting, &JoinError{
		Ranks:  h.culprits(),
		Reason: fmt.Sprintf("rank 0 still waits for %s (have %d of %d)", ranksText(missing), h.size-len(missing), h.size),
	})
	for _, c := range h.conns {
		if c != nil {
			deliver(c, b, time.Now().Add(10*time.Millisecond))
		}
	}
}

// answer sends the outcome to all ranks here: places by rank, or an error.
func (h *host) answer(ctx context.Context, places []*place, err error) {
	deadline, _ := ctx.Deadline()
	if ctx.Err() != nil {
		deadline = time.Now().Add(time.Second)
	}
	if err != nil {
		h.toAll(failureFrame(frameFailure, err), deadline)
		return
	}
	h.toEach(func(r levels.Rank) []byte {
		payload, _ := json.Marshal(places[r]) // of plain fields: can't fail
		return frame{kind: framePlace, to: everyone, payload: payload}.encode()
	}, deadline)
}

func (h *host) toAll(b []byte, deadline time.Time) {
	h.toEach(func(levels.Rank) []byte { return b }, deadline)
}

// toEach sends each rank something, all at once.
func (h *host) toEach(of func(levels.Rank) []byte, deadline time.Time) {
	var sent sync.WaitGroup
	for r, c := range h.conns {
		if c != nil {
			sent.Go(func() { deliver(c, of(levels.Rank(r)), deadline) })
		}
	}
	sent.Wait()
}

// deliver writes b; a rank out of reach will find out by itself.
func deliver(c net.Conn, b []byte, deadline time.Time) {
	c.SetWriteDeadline(deadline)
	c.Write(b)
}

// asJoinError returns the JoinError of an error, or makes one of it.
func asJoinError(err error) *JoinError {
	j, ok := errors.AsType[*JoinError](err)
	if !ok {
		j = &JoinError{Reason: err.Error()}
		if p, ok := errors.AsType[*PeerError](err); ok {
			j.Ranks = []levels.Rank{p.Rank}
		}
	}
	return j
}

// failureFrame carries a JoinError, or what can be made one.
func failureFrame(kind frameKind, err error) []byte {
	payload, _ := json.Marshal(asJoinError(err)) // of plain fields: can't fail
	return frame{kind: kind, to: everyone, payload: payload}.encode()
}

// parseFailure reads the JoinError of a failureFrame.
func parseFailure(f *frame) error {
	j := new(JoinError)
	if err := json.Unmarshal(f.payload, j); err != nil {
		return fmt.Errorf("the join was ended: %w", err)
	}
	return j
}
