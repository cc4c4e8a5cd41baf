package executor

import (
	"bytes"
	"slices"
	"time"
)

// letterRest is the time before a letter may be sent again. A connection takes some ms, and some
// tenths of a second where all ranks share few processors: more of them only take longer.
const letterRest = 400 * time.Millisecond

// postbag is the letters to one rank.
type postbag struct {
	waiting [][]byte
	carried []carriedLetter // the last ones
	busy    bool            // a letter is being carried, or a connection waits for the next one
	more    chan struct{}   // tells the carrier of a waiting letter; room for one
}

// signal tells the carrier of a waiting letter.
func (p *postbag) signal() {
	select {
	case p.more <- struct{}{}:
	default:
	}
}

// carriedLetter is a letter on its way or delivered, as far as the sender knows.
type carriedLetter struct {
	letter []byte
	begun  time.Time
}

// drain forgets the signal.
func (p *postbag) drain() {
	select {
	case <-p.more:
	default:
	}
}

// has reports whether a letter waits, or was sent within [letterRest].
func (p *postbag) has(b []byte) bool {
	for _, l := range p.carried {
		if bytes.Equal(l.letter, b) && time.Since(l.begun) < letterRest {
			return true
		}
	}
	return slices.ContainsFunc(p.waiting, func(l []byte) bool { return bytes.Equal(l, b) })
}
