package kit

import (
	"fmt"
)

// Exit statuses of all subcommands but run.
const (
	statusFailed = 1
	statusUsage  = 2
)

// statusError is an error that chooses the exit status.
type statusError struct {
	error
	status int
}

func (e *statusError) Unwrap() error { return e.error }

// WithStatus makes the exit status of a failure another one than 1.
func WithStatus(err error, status int) error { return &statusError{err, status} }

// UsageError makes err the complaint about arguments that it is; nil stays nil.
func UsageError(err error) error {
	if err == nil {
		return nil
	}
	return &statusError{err, statusUsage}
}

func Usagef(format string, args ...any) error { return UsageError(fmt.Errorf(format, args...)) }
