package launcher

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/tierflow/tierflow/levels"
)

// Variables of jobs whose launcher starts processes in the place of those that have died.
const (
	// LobbyVariable names the descriptor of a socket, see [Lobby].
	LobbyVariable = "TIERFLOW_LOBBY_FD"
	// RestartsVariable is how many restarts the job has had, with that of this process; unset or 0 in one of the first.
	RestartsVariable = "TIERFLOW_RESTARTS"
)

// ErrOver: the job ends without the processes that wait to join it.
var ErrOver = errors.New("the job ends without this process")

// Newcomer is a process that waits to join a job that runs.
type Newcomer struct {
	Slot   int   `json:"slot"`   // its number at the launcher, which has that of the process before it
	Beside []int `json:"beside"` // the numbers that are on its node
}

// Place is what a newcomer is told when it may join.
type Place struct {
	Slot int         `json:"slot"` // whose place it is
	Rank levels.Rank `json:"rank"`
	Size int         `json:"size"`
	Text string      `json:"text"` // what rank 0 shares
}

// LobbyNote is a line of JSON between a rank and its launcher. One field is set.
type LobbyNote struct {
	Wait    bool        `json:"wait,omitempty"`    // from a rank: it waits to join
	In      bool        `json:"in,omitempty"`      // from a rank: it has joined
	Invite  []Place     `json:"invite,omitempty"`  // from rank 0; to a newcomer: its own
	Waiting *[]Newcomer `json:"waiting,omitempty"` // to all: who waits, the first in front
	Runs    bool        `json:"runs,omitempty"`    // to all: the first process has joined
	Ended   *int        `json:"ended,omitempty"`   // to all: the process of a number has ended, or waits again
	Over    bool        `json:"over,omitempty"`    // to those who wait: nobody will take them in
}

// MaxNote bounds a line, in bytes.
const MaxNote = 1 << 20

// Lobby is a rank's end of the socket over which the launcher says who waits to join the job, and
// takes invitations. Its methods may be called by any goroutine.
type Lobby struct {
	slot     int
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
	text := v.Get(LobbyVariable)
	if text == "" {
		return nil
	}
	fd, ok := v.Number(LobbyVariable, 3, 1<<20)
	slot, known := v.Number(envRank, 0, levels.MaxRanks-1)
	if !ok || !known {
		return nil
	}
	opening.Lock()
	defer opening.Unlock()
	if handedOn == nil {
		f, err := openSocket(fd, LobbyVariable)
		if err != nil {
			return nil // a program in between has closed it
		}
		restarts := v.Get(RestartsVariable)
		handedOn = NewLobby(f, slot, restarts != "" && restarts != "0")
	}
	return handedOn
}

// Slot is this process's number at the launcher.
func (l *Lobby) Slot() int { return l.slot }

// Enter notes that this process enters the job. It reports whether the job runs already, so that
// the process must wait until those who are in it let it in.
func (l *Lobby) Enter() (wait bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wait = l.newcomer || l.entered
	l.entered = true
	return wait
}

// Entered tells the launcher that this process is in the job. Before the first one is, others are started
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
		for {
			l.mu.Lock()
			runs, changed := l.runs, l.changed
			l.mu.Unlock()
			if runs {
				select {
				case <-time.After(lateTime):
					end(ErrRuns)
				case <-inTime.Done():
				}
				return
			}
			select {
			case <-changed:
			case <-inTime.Done():
				return
			}
		}
	})
	return inTime, func() {
		end(nil)
		looking.Wait()
	}
}

// Waiting returns who waits to join, the first in front.
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
	for {
		l.mu.Lock()
		p, over, changed := l.place, l.over, l.changed
		l.place = nil
		l.mu.Unlock()
		switch {
		case p != nil:
			return *p, nil
		case over:
			return Place{}, ErrOver
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Place{}, context.Cause(ctx)
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

// read takes what the launcher says. After its end nobody lets anybody in.
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
