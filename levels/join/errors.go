package join

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/seal"
	"github.com/tierflow/tierflow/levels/ranges"
)

// Causes that errors of this package wrap.
var (
	// ErrClosed: this rank has called Close.
	ErrClosed = errors.New("job is closed")
	// ErrLeft: the rank said goodbye, so it will not answer any more.
	ErrLeft = errors.New("has left the job")
	// ErrLost: the rank's control connection ended without goodbye, or it has said why it can't go on.
	ErrLost = errors.New("was lost")
	// ErrBusy: the control queue towards a neighbour is full; nothing was sent.
	ErrBusy = errors.New("control queue is full")
	// ErrSecret: the other side of a connection doesn't hold the same job secret,
	// or belongs to another job.
	ErrSecret = errors.New("job secrets differ")
	// ErrVersion: the other side speaks another version of this protocol.
	ErrVersion = errors.New("protocol versions differ")
	// ErrTLS: the two sides of a connection differ about TLS, its handshake failed, or a rank's
	// certificate can't be used. All such errors are a [TLSError].
	ErrTLS = errors.New("no TLS")
)

// TLSError says why there is no TLS. It unwraps to [ErrTLS] too.
type TLSError struct {
	Source string // the file, or the address of the other side; empty: the error around it says so
	Reason string // the fault, and the allowed values
	Err    error  // beneath; nil: nothing
}

// Error is the reason.
func (e *TLSError) Error() string { return ErrTLS.Error() + ": " + e.Reason }

// Unwrap returns ErrTLS and the cause.
func (e *TLSError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrTLS}
	}
	return []error{ErrTLS, e.Err}
}

// PeerError is a failure with one rank as its cause or other side.
type PeerError struct {
	Rank levels.Rank
	Err  error
}

// Error is "rank 5: " and the cause.
func (e *PeerError) Error() string { return fmt.Sprintf("rank %d: %v", e.Rank, e.Err) }

// Unwrap returns the cause.
func (e *PeerError) Unwrap() error { return e.Err }

// ReachError is a vain search of one rank for another. It unwraps to a
// [PeerError] of To.
type ReachError struct {
	From, To levels.Rank
	At       []string // addresses tried
	Err      error    // of each attempt
}

// Error is on one line.
func (e *ReachError) Error() string {
	at := ""
	if len(e.At) > 0 {
		at = " at " + strings.Join(e.At, ", ")
	}
	return fmt.Sprintf("rank %d can't reach rank %d%s: %v", e.From, e.To, at, e.Err)
}

// Unwrap returns a PeerError.
func (e *ReachError) Unwrap() error { return &PeerError{e.To, e.Err} }

// JoinError says why a job didn't come together. Rank 0 finds out; every rank
// registered by then gets the same error.
type JoinError struct {
	Ranks  []levels.Rank // at fault: absent, duplicate or started with another size
	Reason string        // names them
}

// Error is the reason.
func (e *JoinError) Error() string { return e.Reason }

// absent is the error for ranks that did not come in time. hints tell of
// failed attempts in their name.
func absent(missing []levels.Rank, size int, waited time.Duration, hints []string) *JoinError {
	reason := fmt.Sprintf("%s did not join within %s (have %d of %d)",
		ranksText(missing), roundText(waited), size-len(missing), size)
	if len(hints) > 0 {
		reason += ": " + strings.Join(hints, "; ")
	}
	return &JoinError{Ranks: missing, Reason: reason}
}

// ranksText prints sorted ranks as "rank 5" or "ranks 1, 3-7".
func ranksText(ranks []levels.Rank) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d", ranks[0])
	}
	return "ranks " + strings.Join(ranges.Items(ranks), ", ")
}

// roundText prints a duration for people: 30 s, 1.5 s, 250 ms.
func roundText(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	}
	return fmt.Sprintf("%.3g s", d.Round(100*time.Millisecond).Seconds())
}

// reasons is several errors on one line.
type reasons []error

func (r reasons) Error() string {
	var texts []string
	for _, err := range r {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
}

func (r reasons) Unwrap() []error { return r }

// timedOut: a deadline ended the attempt, maybe that of ctx before ctx knows.
func timedOut(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}

// isDropped: the other side ended the handshake. A listener does so when strangers keep
// it busy, a dialer when another of its attempts was faster.
func isDropped(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, seal.ErrTruncated)
}
