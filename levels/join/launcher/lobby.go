package launcher

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/env"
)

// ErrOver: the job ends without the processes waiting to join it.
var ErrOver = errors.New("the job ends without this process")

// Newcomer is a process waiting to join a running job.
type Newcomer struct {
	Slot   int   `json:"slot"`   // its number at the launcher: that of the process before it
	Beside []int `json:"beside"` // the numbers of all on its node
}

// Place is the word to a newcomer that may join.
type Place struct {
	Slot int         `json:"slot"` // of the newcomer
	Rank levels.Rank `json:"rank"`
	Size int         `json:"size"`
	Text string      `json:"text"` // shared by rank 0
}

// Life is one process of the launcher: those in the place of others have the same number.
type Life struct {
	Slot     int `json:"slot"`
	Restarts int `json:"restarts"` // those in the job before it, with its own; 0: it is one of the first
}

// LobbyNote is a line of JSON between a rank and its launcher. One field is set.
type LobbyNote struct {
	Wait    bool        `json:"wait,omitempty"`    // from a rank: it waits to join
	In      bool        `json:"in,omitempty"`      // from a rank: it has joined
	Invite  []Place     `json:"invite,omitempty"`  // from rank 0; to a newcomer: its own
	LeftOut []Life      `json:"left,omitempty"`    // from a rank: the others go on without these, which may run
	Waiting *[]Newcomer `json:"waiting,omitempty"` // to all: the waiting processes, the first in front
	Runs    bool        `json:"runs,omitempty"`    // to all: the first process has joined
	Ended   *int        `json:"ended,omitempty"`   // to all: the process of a number has ended, or waits again
	Over    bool        `json:"over,omitempty"`    // to the waiting processes: nobody will take them in
}

// MaxNote bounds a line, in bytes.
const MaxNote = 1 << 20

// Lobby is a rank's end of a socket of the launcher. By it come the processes waiting to join the job, and
// invitations go the other way. Its methods may be called by any goroutine.
type Lobby struct {
	slot     int
	restarts int  // see [Life]
	newcomer bool // the process was started while the job ran

	reading sync.WaitGroup // one, until the other end closes
	sending sync.Mutex
	conn    io.ReadWriteCloser

	mu       sync.Mutex
	entered  bool // it has been in the job, or is
	waiting  []Newcomer
	place    *Place
	over     bool
	runs     bool          // a process has joined
	changed  chan struct{} // closed when one of these has changed
	watchers map[*watcher]bool
}

// watcher is told when one of some processes has ended, or waits again.
type watcher struct {
	slots []int
	ended context.CancelCauseFunc
}

var errEnded = errors.New("a process that was to join has ended, or could not")

// NewLobby returns this rank's end of a connection to its launcher. It reads until the other end closes.
func NewLobby(conn io.ReadWriteCloser, slot int, newcomer bool) *Lobby {
	l := &Lobby{slot: slot, newcomer: newcomer, conn: conn, changed: make(chan struct{}), watchers: map[*watcher]bool{}}
	l.reading.Go(l.read)
	return l
}

// The lobby of the process: its socket can be read once.
var (
	opening  sync.Mutex
	handedOn *Lobby
)

// OpenLobby returns the lobby of this process, nil if the launcher has given it none.
func OpenLobby(v *Vars) *Lobby {
	text := v.Get(env.LobbyFD)
	if text == "" {
		return nil
	}
	fd, ok := v.Number(env.LobbyFD, 3, 1<<20)
	slot, known := v.Number(envRank, 0, levels.MaxRanks-1)
	if !ok || !known {
		return nil
	}
	opening.Lock()
	defer opening.Unlock()
	if handedOn == nil {
		f, err := openSocket(fd, env.LobbyFD)
		if err != nil {
			return nil // a program in between has closed it
		}
		restarts, _ := strconv.Atoi(v.Get(env.Restarts)) // unset: 0
		handedOn = NewLobby(f, slot, restarts > 0)
		handedOn.restarts = restarts
	}
	return handedOn
}

// Slot is this process's number at the launcher.
func (l *Lobby) Slot() int { return l.slot }

// Life is this process.
func (l *Lobby) Life() Life { return Life{l.slot, l.restarts} }

// LeaveOut tells the launcher that the job goes on without some processes, though they may run. It ends those that don't
// notice, so that others can take their places.
func (l *Lobby) LeaveOut(lives []Life) error { return l.send(LobbyNote{LeftOut: lives}) }

// Enter notes that this process enters the job. It reports whether the job runs already: then
// the process must wait until the others let it in.
func (l *Lobby) Enter() (wait bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wait = l.newcomer || l.entered
	l.entered = true
	return wait
}

// Entered tells the launcher of this process in the job. Before the first one is, others are started
// again as if it were the first time.
func (l *Lobby) Entered() { _ = l.send(LobbyNote{In: true}) }

// ErrRuns: the others are in the job, and this process isn't.
var ErrRuns = errors.New("the job runs without this process")

// lateTime is how long after the first process has joined others may still be about to: all do at once.
const lateTime = 5 * time.Second

// InTime returns a context for joining the job as one of the first. It ends with [ErrRuns] as the cause if
// this process hasn't joined some time after another one has: the job has begun with the process that this one replaces.
// stop ends it, too.
func (l *Lobby) InTime(ctx context.Context) (inTime context.Context, stop context.CancelFunc) {
	inTime, end := context.WithCancelCause(ctx)
	var looking sync.WaitGroup
	looking.Go(func() {
		if l.waitUntil(inTime, func() bool { return l.runs }) != nil {
			return
		}
		select {
		case <-time.After(lateTime):
			end(ErrRuns)
		case <-inTime.Done():
		}
	})
	return inTime, func() {
		end(nil)
		looking.Wait()
	}
}

// Waiting returns the processes waiting to join, the first in front.
func (l *Lobby) Waiting() []Newcomer {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting
}

// Await waits until this process may join. [ErrOver] says that it never will.
func (l *Lobby) Await(ctx context.Context) (Place, error) {
	if err := l.send(LobbyNote{Wait: true}); err != nil {
		return Place{}, err
	}
	var p *Place
	err := l.waitUntil(ctx, func() bool {
		p, l.place = l.place, nil
		return p != nil || l.over
	})
	switch {
	case err != nil:
		return Place{}, err
	case p == nil:
		return Place{}, ErrOver
	}
	return *p, nil
}

// waitUntil waits for holds to become true by news of the launcher, or for the end of ctx. It calls holds under the lock.
func (l *Lobby) waitUntil(ctx context.Context, holds func() bool) error {
	for {
		l.mu.Lock()
		enough, changed := holds(), l.changed
		l.mu.Unlock()
		if enough {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Invite lets newcomers in.
func (l *Lobby) Invite(places []Place) error { return l.send(LobbyNote{Invite: places}) }

// Follow returns a context that ends when the process of one of these numbers does, or waits again.
func (l *Lobby) Follow(ctx context.Context, slots []int) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	w := &watcher{slots, end}
	l.mu.Lock()
	l.watchers[w] = true
	l.mu.Unlock()
	return ctx, func() {
		l.mu.Lock()
		delete(l.watchers, w)
		l.mu.Unlock()
		end(nil)
	}
}

func (l *Lobby) send(n LobbyNote) error {
	line, err := json.Marshal(n)
	if err != nil {
		return err
	}
	l.sending.Lock()
	defer l.sending.Unlock()
	_, err = l.conn.Write(append(line, '\n'))
	return err
}

// read takes the news of the launcher. After its end nobody lets anybody in.
func (l *Lobby) read() {
	defer l.conn.Close()
	lines := bufio.NewScanner(l.conn)
	lines.Buffer(nil, MaxNote)
	for lines.Scan() {
		var n LobbyNote
		if json.Unmarshal(lines.Bytes(), &n) != nil {
			break
		}
		l.take(n)
	}
	l.take(LobbyNote{Over: true})
}

func (l *Lobby) take(n LobbyNote) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case n.Waiting != nil:
		l.waiting = *n.Waiting
	case len(n.Invite) > 0:
		l.place = &n.Invite[0]
	case n.Ended != nil:
		for w := range l.watchers {
			if slices.Contains(w.slots, *n.Ended) {
				w.ended(errEnded)
			}
		}
	case n.Runs:
		l.runs = true
	case n.Over:
		l.over, l.waiting = true, nil
	}
	close(l.changed)
	l.changed = make(chan struct{})
}
