package kit

import (
	"fmt"
)

// Exit statuses of all subcommands but run.
const (
	statusFailed = 1
	statusUsage  = 2
)

// statusError is an error with an exit status.
type statusError struct {
	error
	status int
}

func (e *statusError) Unwrap() error { return e.error }

// WithStatus returns err with the program's exit status.
func WithStatus(err error, status int) error { return &statusError{err, status} }

// UsageError returns err as a complaint about arguments, with status 2. It returns nil for nil.
func UsageError(err error) error {
	if err == nil {
		return nil
	}
	return &statusError{err, statusUsage}
}

// Usagef formats a complaint about arguments, see [UsageError].
func Usagef(format string, args ...any) error { return UsageError(fmt.Errorf(format, args...)) }
