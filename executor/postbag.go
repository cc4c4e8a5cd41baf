package executor

import (
	"bytes"
	"slices"
	"time"
)

// letterRest is for how long a letter that was sent isn't sent again. A connection takes some ms, and
// some tenths of a second where all ranks share few processors: more of them only take longer.
const letterRest = 400 * time.Millisecond

// postbag is the letters to one rank.
type postbag struct {
	waiting [][]byte
	carried []carriedLetter // the last ones
	busy    bool            // one is being carried, or a connection waits for the next one
	more    chan struct{}   // tells it that one waits; room for one
}

// signal tells who carries that a letter waits.
func (p *postbag) signal() {
	select {
	case p.more <- struct{}{}:
	default:
	}
}

// carriedLetter is a letter that is on its way or has come, as far as the sender knows.
type carriedLetter struct {
	letter []byte
	begun  time.Time
}

// drain forgets what it was told.
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
