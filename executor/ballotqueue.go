package executor

import (
	"bytes"
	"slices"
	"time"
)

// resendRest is the time before a message may be sent again. A connection takes some ms, and some
// tenths of a second where all ranks share few processors: more of them only take longer.
const resendRest = 400 * time.Millisecond

// ballotQueue is the messages of agreements to one rank, over a connection of their own.
type ballotQueue struct {
	waiting [][]byte
	sent    []sentBallot  // the last ones
	busy    bool          // a message is being sent, or a connection waits for the next one
	more    chan struct{} // tells the sender of a waiting message; room for one
}

// signal tells the sender of a waiting message.
func (p *ballotQueue) signal() {
	select {
	case p.more <- struct{}{}:
	default:
	}
}

// sentBallot is a message on its way or delivered, as far as the sender knows.
type sentBallot struct {
	message []byte
	begun   time.Time
}

// drain forgets the signal.
func (p *ballotQueue) drain() {
	select {
	case <-p.more:
	default:
	}
}

// has reports whether a message waits, or was sent within [resendRest].
func (p *ballotQueue) has(b []byte) bool {
	for _, l := range p.sent {
		if bytes.Equal(l.message, b) && time.Since(l.begun) < resendRest {
			return true
		}
	}
	return slices.ContainsFunc(p.waiting, func(l []byte) bool { return bytes.Equal(l, b) })
}
