package launch

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tierflow/tierflow/executor/flight/verdict"
)

// Exit statuses of the launcher's own; the numbers are those of timeout(1), env(1) and shells.
const (
	statusOptions    = 2   // bad options
	statusTimeout    = 124 // Options.Timeout ran out
	statusLauncher   = 125 // an agent that has died or did not start
	statusNotRunning = 126 // the program exists and can't be run
	statusNotFound   = 127 // no such program
	statusSignal     = 128 // plus the signal's number
)

// RankError is the failure that ended a job, by the rank it began with. This needn't be the first
// to die. Ranks of package planner tell the launcher the rank they blame. Without such word it is
// the first rank to exit with a status other than 0 or by a signal. If another rank's crash is
// reported soon after an exit, it is the crashed one: it caused the exit.
type RankError struct {
	Rank   int
	Host   string
	Status int      // its exit status, or 128 plus the number of the signal; that of First if it is 0 or the rank had not ended
	Signal string   // the signal in words, "" when it exited by itself
	Why    string   // the ranks' words about its failure, "" if there are none
	First  int      // the first rank to end with a failure, perhaps this one
	Tail   []string // its last lines of output, at most 10; 30 from a panic on

	how    string // it ended
	alone  bool   // it has ended by itself, and ranks blame nothing else
	nobody bool   // ranks disagree, and Rank is not more to blame than others
}

// findDeath returns the finding that a rank has died, if a job has failed because of that; nil: it hasn't.
func findDeath(err error) *verdict.Finding {
	if e, is := errors.AsType[*RankError](err); is && e.alone {
		return &verdict.Finding{Class: verdict.Died, Ranks: []int{e.Rank}, Text: e.endText()}
	}
	return nil
}

// Error names the failed rank and its end, and then shows its last lines. Where nobody in particular is to
// blame, it says why the job has failed.
func (e *RankError) Error() string {
	if e.nobody {
		return e.Why
	}
	text := e.endText()
	if why, _, _ := strings.Cut(e.Why, "\n"); why != "" {
		text += ": " + why
	}
	return text + quoteTail("its last lines", e.Tail)
}

// endText names the rank, its host and how it ended.
func (e *RankError) endText() string { return endText(e.Rank, e.Host, e.how) }

// endText is the one text for the end of a rank's process, whatever becomes of the job.
func endText(rank int, host, how string) string {
	return fmt.Sprintf("rank %d on %s: %s", rank, host, how)
}

// quoteTail shows the last lines of an output with the name what; nothing if there are none.
func quoteTail(what string, tail []string) string {
	if len(tail) == 0 {
		return ""
	}
	return "; " + what + ":\n  " + strings.Join(tail, "\n  ")
}
