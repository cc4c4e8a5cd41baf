package main

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

// withStatus makes the exit status of a failure another one than 1.
func withStatus(err error, status int) error { return &statusError{err, status} }

// usage makes err the complaint about arguments that it is; nil stays nil.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &statusError{err, statusUsage}
}

func usagef(format string, args ...any) error { return usage(fmt.Errorf(format, args...)) }
