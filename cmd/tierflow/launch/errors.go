package launch

import (
	"fmt"
	"strings"
)

// Exit statuses that are not a rank's own; the numbers are those of timeout(1), env(1) and shells.
const (
	statusTimeout    = 124 // Options.Timeout ran out
	statusLauncher   = 125 // bad options, an agent that could not be started or died
	statusNotRunning = 126 // the program exists and can't be run
	statusNotFound   = 127 // no such program
	statusSignal     = 128 // plus the signal's number
)

// RankError is the failure that ended a job: the first rank that exited with a status
// other than 0 or by a signal. If the crash of another rank is reported soon after an
// exit, it is that one: it caused the exit.
type RankError struct {
	Rank   int
	Host   string
	Status int      // its exit status, or 128 plus the number of the signal
	Signal string   // the signal in words, "" when it exited by itself
	Tail   []string // its last lines of output, at most 10
}

// Error says which rank failed and how, and then shows its last lines.
func (e *RankError) Error() string {
	how := fmt.Sprintf("exit status %d", e.Status)
	if e.Signal != "" {
		how = fmt.Sprintf("ended by signal: %s (status %d)", e.Signal, e.Status)
	}
	return fmt.Sprintf("rank %d on %s: %s", e.Rank, e.Host, how) + quoteTail(e.Tail)
}

func quoteTail(tail []string) string {
	if len(tail) == 0 {
		return ""
	}
	return "; its last lines:\n  " + strings.Join(tail, "\n  ")
}
