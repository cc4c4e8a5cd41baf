package flight

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/tierflow/tierflow/levels/printable"
)

// Recording is a ring as it was read.
type Recording struct {
	Name        string // of the file
	Rank, Ranks int
	PID         int
	Start       time.Time
	Seen        time.Duration // the last sign of life, since Start
	Closed      bool          // the rank left in good order
	Total       uint64        // events so far
	Events      []Event       // the last ones, the oldest first
	Calls       []Call        // the last ones, the oldest first
	Failure     string        // the last failure of a communicator; empty: none
	FailedAt    time.Duration // since Start
}

// Call is one run of a program on a rank.
type Call struct {
	Comm    uint64
	Seq     uint32
	Request string
	Begun   time.Duration // since the recording's start
	Ended   time.Duration // 0: not yet
	Waits   string        // its open steps while it stands still; empty: it moves, or has ended
	Since   time.Duration // from when on
	Apart   bool          // a send or receive, without a Seq
}

// ReadRecording reads the bytes of a file, called name in errors. A
// recording that goes on meanwhile can be read too: half overwritten
// events are left out.
func ReadRecording(name string, data []byte) (*Recording, error) {
	bad := func(offset int, format string, args ...any) (*Recording, error) {
		return nil, fmt.Errorf("recording %s: offset %d: %s", name, offset, fmt.Sprintf(format, args...))
	}
	var h header
	if len(data) < headerBytes {
		return bad(len(data), "the file ends in the header of %d bytes", headerBytes)
	}
	if _, err := binary.Decode(data, binary.LittleEndian, &h); err != nil {
		return bad(0, "%v", err)
	}
	switch {
	case h.Magic != magic:
		return bad(0, "begins with %q, want %q: this is no recording", h.Magic[:], magic[:])
	case h.Version != version:
		return bad(8, "version %d; this program reads version %d", h.Version, version)
	case h.Ranks < 1 || h.Rank < 0 || h.Rank >= h.Ranks:
		return bad(12, "rank %d of %d", h.Rank, h.Ranks)
	case h.Events < 1 || h.Events > MaxEvents || h.Events&(h.Events-1) != 0:
		return bad(32, "a ring of %d events; allowed are powers of two up to %d", h.Events, MaxEvents)
	case h.Calls != calls:
		return bad(36, "%d calls, want %d", h.Calls, calls)
	case int(h.FailLen) > len(h.Fail):
		return bad(60, "a failure of %d bytes; there is room for %d", h.FailLen, len(h.Fail))
	case len(data) != fileBytes(int(h.Events)):
		return bad(len(data), "the file has %d bytes; with %d events it has %d", len(data), h.Events, fileBytes(int(h.Events)))
	}
	r := &Recording{
		Name: name, Rank: int(h.Rank), Ranks: int(h.Ranks), PID: int(h.PID), Start: time.Unix(0, h.Start),
		Seen: time.Duration(h.Seen), Closed: h.Closed != 0, Total: h.Count,
		Failure: clean(h.Fail[:h.FailLen]), FailedAt: time.Duration(h.FailAt),
	}
	if err := r.readCalls(data); err != nil {
		return nil, err
	}
	r.readEvents(data[headerBytes+calls*callBytes:], uint64(h.Events))
	return r, nil
}

func (r *Recording) readCalls(data []byte) error {
	for i := range calls {
		at := headerBytes + i*callBytes
		var c call
		if _, err := binary.Decode(data[at:], binary.LittleEndian, &c); err != nil {
			return fmt.Errorf("recording %s: offset %d: %w", r.Name, at, err)
		}
		if int(c.TextLen) > len(c.Text) || int(c.WaitLen) > len(c.Wait) {
			return fmt.Errorf("recording %s: offset %d: texts of %d and %d bytes; there is room for %d and %d",
				r.Name, at+36, c.TextLen, c.WaitLen, len(c.Text), len(c.Wait))
		}
		if c.Begun == 0 {
			continue
		}
		k := Call{Comm: c.Comm, Seq: c.Seq, Request: clean(c.Text[:c.TextLen]), Begun: time.Duration(c.Begun), Ended: time.Duration(c.Ended)}
		k.Apart = c.Apart != 0
		if c.Waits != 0 && c.Ended == 0 {
			k.Waits, k.Since = clean(c.Wait[:c.WaitLen]), time.Duration(c.Waits)
		}
		r.Calls = append(r.Calls, k)
	}
	slices.SortStableFunc(r.Calls, func(a, b Call) int { return cmp.Compare(a.Begun, b.Begun) })
	return nil
}

// readEvents takes the events in the order of their numbers.
func (r *Recording) readEvents(ring []byte, size uint64) {
	for n := r.Total - min(r.Total, size); n < r.Total; n++ {
		var e Event
		at := ring[n%size*eventBytes:]
		e.Time = int64(binary.LittleEndian.Uint64(at))
		e.Comm = binary.LittleEndian.Uint64(at[8:])
		e.Bytes = int64(binary.LittleEndian.Uint64(at[16:]))
		e.Seq = binary.LittleEndian.Uint32(at[24:])
		e.Pass = binary.LittleEndian.Uint32(at[28:])
		e.Peer = int32(binary.LittleEndian.Uint32(at[32:]))
		e.Edge = int32(binary.LittleEndian.Uint32(at[36:]))
		e.Kind, e.Message = Kind(at[40]), at[41]
		e.stamp = binary.LittleEndian.Uint16(at[42:])
		if e.stamp == uint16(n) {
			r.Events = append(r.Events, e)
		}
	}
}

// clean makes bytes of a file printable on one line.
func clean(b []byte) string {
	for len(b) > 0 && !utf8.Valid(b) && !utf8.RuneStart(b[len(b)-1]) {
		b = b[:len(b)-1] // a cut rune
	}
	return printable.Text(string(bytes.TrimRight(b, "\x00")))
}

// Unfinished returns the calls without an end.
func (r *Recording) Unfinished() []Call {
	var open []Call
	for _, c := range r.Calls {
		if c.Ended == 0 {
			open = append(open, c)
		}
	}
	return open
}

// State returns the calls of the rank at its last sign of life. Times are up to then.
func (r *Recording) State() State {
	s := State{Rank: r.Rank, Doing: Outside, PID: r.PID}
	var last *Call
	for i := range r.Calls {
		c := &r.Calls[i]
		switch {
		case c.Ended != 0:
			if !c.Apart && (last == nil || c.Ended >= last.Ended) {
				last = c
			}
		default:
			o := Open{Comm: c.Comm, Seq: c.Seq, What: c.Request, Waits: c.Waits, Transfer: c.Apart, Awaited: true}
			if c.Waits != "" {
				o.For = r.Seen - c.Since
			}
			s.Doing, s.Open = Inside, append(s.Open, o)
		}
	}
	if last != nil {
		s.Last, s.Since = fmt.Sprintf("%s #%d", last.Request, last.Seq), r.Seen-last.Ended
	}
	if r.Failure != "" {
		s.Failed = &Failed{Rank: r.Rank, Text: r.Failure}
	}
	return s
}

// request is the text of a call, as far as it is known.
func (r *Recording) request(comm uint64, seq uint32) string {
	for i := range r.Calls {
		if c := &r.Calls[i]; c.Comm == comm && c.Seq == seq && !c.Apart {
			return c.Request
		}
	}
	return "call"
}
