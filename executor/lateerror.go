package executor

import (
	"fmt"
	"strings"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// maxWaits bounds the ranks named by an error, and the steps named by a stall report.
const maxWaits = 8

// LateError says that the deadline of a call has passed, and which ranks it waited for. All ranks
// of the communicator get the same.
type LateError struct {
	Request string        // allreduce 1024 f32 sum, or receive from rank 1, tag 5
	For     time.Duration // time it had stood still; 0: less than a tenth of a second
	// Late are the ranks missing in the call, without those that wait for others of them; a rank in an operation is
	// among them if one of these waits for it. Of a send or receive it is the peer, whatever that waits for. If all had
	// come, these are the ranks in an operation, stopped or not answering. None: the time was too short for the work.
	Late []LateRank
	// Circle are ranks waiting for each other, each for the next one. nil: there are none.
	Circle []LateRank
	Alone  bool  `json:"-"` // a receive has ended alone: the communicator is as it was
	Err    error `json:"-"` // the cause of the context
}

// LateRank is a rank of the communicator with its state when the deadline passed.
type LateRank struct {
	Rank  levels.Rank
	State flight.State
}

// Error names the late ranks, their states, since when and where.
func (e *LateError) Error() string {
	var parts []string
	if len(e.Circle) > 0 {
		parts = append(parts, "deadlock: "+circleText(e.Circle))
	} else {
		for i, l := range e.Late {
			if i == maxWaits {
				parts = append(parts, fmt.Sprintf("%d more ranks", len(e.Late)-i))
				break
			}
			parts = append(parts, l.text(e.For))
		}
	}
	if len(parts) == 0 {
		parts = []string{"all ranks have come, and it has not ended"}
	}
	return fmt.Sprintf("%s: %s: %v", e.Request, strings.Join(parts, "; "), e.Err)
}

// blames reports whether a rank is to blame as the first late one.
func (e *LateError) blames(rank levels.Rank) bool {
	return len(e.Circle) == 0 && len(e.Late) > 0 && e.Late[0].Rank == rank
}

// Unwrap returns the cause of the context.
func (e *LateError) Unwrap() error { return e.Err }

// text says why the rank is named.
func (l *LateRank) text(after time.Duration) string {
	switch d := l.State.Doing; {
	case d == flight.Silent:
		return fmt.Sprintf("rank %d does not answer", l.Rank)
	case d == flight.Computing, d == flight.Stopped && len(l.State.Open) > 0:
		return fmt.Sprintf("rank %d is %v", l.Rank, &l.State)
	}
	text := fmt.Sprintf("rank %d has not come", l.Rank)
	if after >= wire.Tick {
		text += fmt.Sprintf(" for %.1f s", after.Seconds())
	}
	return text + ", it is " + l.State.String()
}

// circleText says for each rank which one it waits for.
func circleText(all []LateRank) string {
	var b strings.Builder
	for _, l := range all {
		fmt.Fprintf(&b, "rank %d is %v; ", l.Rank, &l.State)
	}
	return strings.TrimSuffix(b.String(), "; ")
}
