package launch

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

const (
	pieceSize = 32 << 10 // bytes of input or output passed on together
	// inputWindow bounds the unread pieces of input of a rank.
	inputWindow = 4
	// foregroundPoll is how often a job in the background of its terminal looks whether it
	// still is: reading would stop the launcher.
	foregroundPoll = 100 * time.Millisecond
)

// readers returns the ranks of a job with the launcher's standard input.
func (o *Options) readers(size int) (map[int]bool, error) {
	to := map[int]bool{}
	switch o.Stdin {
	case stdinNone:
	case stdinAll:
		for rank := range size {
			to[rank] = true
		}
	default:
		rank, err := strconv.Atoi(o.Stdin)
		if err != nil || rank < 0 || rank >= size {
			return nil, fmt.Errorf("standard input for rank %q: allowed are %s, %s and ranks from 0 to %d", o.Stdin, stdinAll, stdinNone, size-1)
		}
		to[rank] = true
	}
	return to, nil
}

// supply passes the launcher's standard input on to ranks. Only the job's loop touches
// it, but for pieces and end.
type supply struct {
	from   io.Reader
	to     map[*conn][]int // the reading ranks of each agent
	owed   map[int]int     // a rank's unread pieces; without an entry it reads no more
	pieces chan []byte     // closed at the end of input
	end    chan struct{}   // closed when nobody wants more
	ended  bool            // the end has been passed on
}

// plan notes the reading ranks of an agent, and returns them.
func (s *supply) plan(c *conn, ranks []int, readers map[int]bool) []int {
	var here []int
	for _, rank := range ranks {
		if s.from != nil && readers[rank] {
			here = append(here, rank)
			s.owed[rank] = 0
		}
	}
	if len(here) > 0 {
		s.to[c] = here
	}
	return here
}

// start begins to read. Nobody waits for the reader: a read of a terminal can't be ended. The
// reader ends with the first read to return after the job.
func (s *supply) start() {
	if s.from == nil || len(s.owed) == 0 {
		s.ended = true
		return
	}
	s.pieces, s.end = make(chan []byte), make(chan struct{})
	go s.read()
}

// stop ends the reading.
func (s *supply) stop() {
	if s.end != nil {
		close(s.end)
	}
}

// read reads ahead by one piece. An error is the end of the input.
func (s *supply) read() {
	defer close(s.pieces)
	for {
		if !s.awaitForeground() {
			return
		}
		piece := make([]byte, pieceSize)
		n, err := s.from.Read(piece)
		if n > 0 {
			select {
			case s.pieces <- piece[:n]:
			case <-s.end:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// awaitForeground waits while the input is a terminal in another job's hands; false: nobody wants
// input any more.
func (s *supply) awaitForeground() bool {
	f, ok := s.from.(*os.File)
	for ok && inBackground(f) {
		select {
		case <-time.After(foregroundPoll):
		case <-s.end:
			return false
		}
	}
	return true
}

// next returns the channel of the next piece; nil while a rank has enough, and when there
// is no more.
func (s *supply) next() <-chan []byte {
	if s.ended {
		return nil
	}
	for _, owed := range s.owed {
		if owed >= inputWindow {
			return nil
		}
	}
	return s.pieces
}

// pass passes a piece on, or the end of the input.
func (s *supply) pass(piece []byte, ok bool) {
	s.ended = s.ended || !ok
	for c, ranks := range s.to {
		c.send(frame{Input: &input{Bytes: piece, End: !ok}})
		for _, rank := range ranks {
			if _, reads := s.owed[rank]; reads {
				s.owed[rank]++
			}
		}
	}
}

// note counts a piece read by a rank, or strikes off a rank at the end of its reading.
func (s *supply) note(f *inputRead) {
	owed, reads := s.owed[f.Rank]
	switch {
	case !reads:
	case f.Closed:
		delete(s.owed, f.Rank)
		s.ended = s.ended || len(s.owed) == 0
	case owed > 0:
		s.owed[f.Rank]--
	}
}

// feeder holds the input of one rank, on its agent.
type feeder struct {
	rank   int
	pieces chan []byte // closed at the end of input
}

func newFeeders(ranks []int) map[int]*feeder {
	all := map[int]*feeder{}
	for _, rank := range ranks {
		all[rank] = &feeder{rank, make(chan []byte, inputWindow)}
	}
	return all
}

// feed writes pieces to the rank's pipe and says so, until the input or the rank ends, or the
// rank closes its end. At the rank's end somebody else has to end a waiting write.
func (f *feeder) feed(pipe *os.File, ended <-chan struct{}, send func(frame)) {
	defer pipe.Close()
	for {
		select {
		case <-ended:
			send(frame{Fed: &inputRead{Rank: f.rank, Closed: true}})
			return
		case piece, ok := <-f.pieces:
			if !ok {
				return
			}
			_, err := pipe.Write(piece)
			send(frame{Fed: &inputRead{Rank: f.rank, Closed: err != nil}})
			if err != nil {
				return
			}
		}
	}
}
