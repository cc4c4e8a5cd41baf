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

// RankError is the failure that ended a job, by the rank with which it began. This needn't be
// the first to die. Ranks that use this library tell the launcher whom they blame. Without
// such word it is the first rank that exited with a status other than 0 or by a signal. If
// the crash of another rank is reported soon after an exit, it is that one: it caused the exit.
type RankError struct {
	Rank   int
	Host   string
	Status int      // its exit status, or 128 plus the number of the signal; that of First where it is 0 or the rank had not ended
	Signal string   // the signal in words, "" when it exited by itself
	Why    string   // what ranks say of its failure, "" when they say nothing
	First  int      // the first rank that ended with a failure, perhaps this one
	Tail   []string // its last lines of output, at most 10; 30 from a panic on

	how string // it ended
}

// Error says which rank failed and how, and then shows its last lines.
func (e *RankError) Error() string {
	how := e.how
	if why, _, _ := strings.Cut(e.Why, "\n"); why != "" {
		how += ": " + why
	}
	if e.First != e.Rank {
		how += fmt.Sprintf("; rank %d ended first, because of it", e.First)
	}
	return fmt.Sprintf("rank %d on %s: %s", e.Rank, e.Host, how) + quoteTail(e.Tail)
}

func quoteTail(tail []string) string {
	if len(tail) == 0 {
		return ""
	}
	return "; its last lines:\n  " + strings.Join(tail, "\n  ")
}
