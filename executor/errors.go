package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
	// ErrMismatch: ranks called different operations at the same place in their
	// sequence of calls.
	ErrMismatch = errors.New("ranks disagree on the operation")
	// ErrProtocol: a peer sent something that can't be. The links know it as
	// [wire.ErrProtocol].
	ErrProtocol = wire.ErrProtocol
	// ErrBusy: the same run, or the same communicator, was started again before
	// the start before had returned or the run had ended.
	ErrBusy = errors.New("already started")
	// ErrNotStarted: somebody waited for a run that was never started.
	ErrNotStarted = errors.New("never started")
)

var errNoContext = errors.New("the context is nil")

// sentinels are the errors that others can be told of by name, so that errors.Is finds
// them on all ranks.
var sentinels = []struct {
	name string
	err  error
}{
	{"closed", ErrClosed},
	{"protocol", ErrProtocol},
	{"operation", ErrOperation},
	{"cancelled", context.Canceled},
	{"deadline", context.DeadlineExceeded},
}

// wraps names the sentinels that err wraps.
func wraps(err error) (names []string) {
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			names = append(names, s.name)
		}
	}
	return names
}

// toldError is an error of another process.
type toldError struct {
	text  string
	wraps []error
}

// err is the error that a note tells of.
func (n *note) err() error {
	if n.Mismatch != nil {
		return n.Mismatch
	}
	e := &toldError{text: n.Text}
	for _, s := range sentinels {
		if slices.Contains(n.Wraps, s.name) {
			e.wraps = append(e.wraps, s.err)
		}
	}
	return e
}

// Error is the other process's text.
func (e *toldError) Error() string { return e.text }

// Unwrap is the sentinels that the error wraps there.
func (e *toldError) Unwrap() []error { return e.wraps }

// PeerError says on which rank the failure was that ended a run here.
type PeerError struct {
	Rank  levels.Rank // of the communicator
	Err   error
	world levels.Rank // its number in the world plus 1; 0: unknown
}

// LostRank is the failure of a rank as numbered in the world, with its error.
func LostRank(rank levels.Rank, err error) *PeerError {
	return &PeerError{Rank: rank, Err: err, world: rank + 1}
}

// failure is the error on this rank for a failure on another one of the world.
func (c *Comm) failure(of levels.Rank, err error) *PeerError {
	return &PeerError{Rank: c.number(of), Err: err, world: of + 1}
}

// Error names the rank and its error.
func (e *PeerError) Error() string { return fmt.Sprintf("rank %d failed: %v", e.Rank, e.Err) }

// Unwrap is the failed rank's error.
func (e *PeerError) Unwrap() error { return e.Err }

// StepError is a step that failed; the steps that depend on it never ran.
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

// Unwrap is why.
func (e *StepError) Unwrap() error { return e.Err }
