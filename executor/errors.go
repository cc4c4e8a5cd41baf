package executor

import (
	"context"
	"errors"
	"fmt"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// Sentinels. Errors that a run returns wrap one of these, or a [PeerError], or
// the cause of a cancelled context.
var (
	// ErrClosed: the world or the communicator was closed.
	ErrClosed = errors.New("closed")
	// ErrBroken: an earlier failure ended this communicator on all ranks.
	ErrBroken = errors.New("communicator is broken")
	// ErrMismatch: ranks called different collectives at the same place in their
	// sequence of calls.
	ErrMismatch = errors.New("ranks disagree on the collective")
	// ErrProtocol: a peer sent something that can't be. The links know it as
	// [wire.ErrProtocol].
	ErrProtocol = wire.ErrProtocol
	// ErrBusy: the same run, or the same communicator, was started again before
	// the start before had returned or the run had ended. So are two calls that overlap on a
	// communicator, if both wait for their ends: they are of two goroutines, and their order is
	// left to chance. The first one goes on unharmed.
	ErrBusy = errors.New("already started")
	// ErrNotStarted: Wait was called on a run that was never started.
	ErrNotStarted = errors.New("never started")
	// ErrRevoked: a rank has given the communicator up, to go on with the remaining ranks.
	ErrRevoked = errors.New("the communicator was given up")
	// ErrExcluded: the others counted this rank as lost, and have gone on without it.
	ErrExcluded = errors.New("the others have gone on without this rank")
	// ErrMinority: too few ranks are left here to go on; the others may have gone on elsewhere.
	ErrMinority = errors.New("too few ranks are left to go on")
	// ErrLink: a connection has broken between two living ranks. They connect anew.
	ErrLink = errors.New("a connection between ranks that live broke")
	// ErrUnwound: a rank's goroutine panicked, or was ended by runtime.Goexit, before it
	// had closed.
	ErrUnwound = errors.New("the goroutine of a rank was unwound")
	// ErrAborted: a rank has ended the job, see [World.Abort].
	ErrAborted = errors.New("aborted")
)

var errNoContext = errors.New("the context is nil")

// errLeft: the owner of an operand left during the read, and may have reused the memory.
var errLeft = errors.New("left the call while its memory was read")

// errUnread: the memory of an operand can't be read. Its owner is suspect; mostly it has died, and
// the control plane will say so.
var errUnread = errors.New("operand could not be read")

// sentinels are the errors with a name in control messages, so errors.Is finds them on all ranks.
var sentinels = []struct {
	name string
	err  error
}{
	{"closed", ErrClosed},
	{"protocol", ErrProtocol},
	{"cancelled", context.Canceled},
	{"deadline", context.DeadlineExceeded},
	{"unwound", ErrUnwound},
	{"aborted", ErrAborted},
	{"revoked", ErrRevoked},
	{"excluded", ErrExcluded},
	{"link", ErrLink},
}

// sentinelNames returns the names of the sentinels wrapped by err.
func sentinelNames(err error) (names []string) {
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			names = append(names, s.name)
		}
	}
	return names
}

// toldError is an error of another process, or one with a text of its own.
type toldError struct {
	text  string
	wraps []error
}

// Error returns the text.
func (e *toldError) Error() string { return e.text }

// Unwrap returns the sentinels that it wraps.
func (e *toldError) Unwrap() []error { return e.wraps }

// closedError says how a rank has closed; it wraps [ErrClosed].
func closedError(format string, args ...any) error {
	return &toldError{fmt.Sprintf(format, args...), []error{ErrClosed}}
}

// errHasClosed: the other end of a transfer has closed the communicator.
var errHasClosed = closedError("has closed")

// PeerError names the rank with the failure that ended a run here.
type PeerError struct {
	Rank  levels.Rank // of the communicator
	Err   error
	world levels.Rank // its number in the world plus 1; 0: unknown
}

// LostRank is the failure of a rank as numbered in the world, with its error.
func LostRank(rank levels.Rank, err error) *PeerError {
	return &PeerError{Rank: rank, Err: err, world: rank + 1}
}

// Error names the rank and its error.
func (e *PeerError) Error() string {
	if errors.Is(e.Err, ErrUnwound) || errors.Is(e.Err, ErrAborted) || errors.Is(e.Err, ErrClosed) {
		return fmt.Sprintf("rank %d %v", e.Rank, e.Err) // panicked: …, aborted: …, or has closed: it has not failed
	}
	if _, late := e.Err.(*LateError); late { // it names the rank, and this one has not failed
		return e.Err.Error()
	}
	return fmt.Sprintf("rank %d failed: %v", e.Rank, e.Err)
}

// Unwrap returns the failed rank's error.
func (e *PeerError) Unwrap() error { return e.Err }

// StepError is a failed step; the steps depending on it never ran.
type StepError struct {
	Rank    levels.Rank
	Request string
	Step    string // label
	Err     error
}

// Error names rank, request and step.
func (e *StepError) Error() string {
	return fmt.Sprintf("rank %d, %s, step %q: %v", e.Rank, e.Request, e.Step, e.Err)
}

// Unwrap returns the step's failure.
func (e *StepError) Unwrap() error { return e.Err }
