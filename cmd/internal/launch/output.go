package launch

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	maxLine     = 16 << 20 // of a stream of a rank as much is kept in memory
	keptLine    = 1 << 20  // and so much for the next line
	tailLines   = 10
	panicLines  = 30 // of a panicking Go program
	maxTailLine = 1 << 10
	timeLayout  = "2006-01-02T15:04:05.000000Z07:00 " // as RFC 3339 has it, in microseconds
)

// promptTime is how long a part of a line waits for the rest before a terminal shows it.
const promptTime = 100 * time.Millisecond

// lines cuts a stream into lines of at most maxLine bytes. A line ends with a newline, or with a carriage return
// alone, as in progress bars.
type lines struct {
	part  []byte // of a line without its end yet
	shown int    // bytes of part that a terminal shows already
	added uint64 // counts what has come
}

// add calls emit, with no newline, for every line completed by b.
func (l *lines) add(b []byte, emit func(line []byte)) {
	for l.added++; len(b) > 0; {
		if n := len(l.part); n > 0 && l.part[n-1] == '\r' && b[0] != '\n' {
			if l.part = l.part[:n-1]; n > 1 { // else it only goes back, before a bar
				l.end(emit)
			}
			continue
		}
		end := bytes.IndexAny(b, "\r\n")
		if end < 0 {
			end = len(b)
		}
		if room := max(0, maxLine-len(l.part)); end > room {
			l.part = append(l.part, b[:room]...)
			b = b[room:]
			l.flush(emit)
			continue
		}
		l.part = append(l.part, b[:end]...)
		if end == len(b) {
			return
		}
		if b[end] == '\r' { // what follows tells whether it is an end
			l.part = append(l.part, '\r')
		} else {
			l.end(emit)
		}
		b = b[end+1:]
	}
}

// flush emits a line without an end.
func (l *lines) flush(emit func(line []byte)) {
	l.added++
	if l.part = bytes.TrimSuffix(l.part, []byte("\r")); len(l.part) > 0 {
		l.end(emit)
	}
}

// end emits a line, empty or not.
func (l *lines) end(emit func(line []byte)) {
	emit(l.part)
	l.shown = 0
	if l.part = l.part[:0]; cap(l.part) > keptLine {
		l.part = nil
	}
}

// source is one writer of output, a rank or an agent. It belongs to one goroutine at a time.
type source struct {
	label   string
	log     *os.File // gets all of it, without label; nil: none
	raw     bool     // pass bytes as they come, without label
	streams [streams]lines
	tail    []string   // its last lines, both streams
	past    [][]string // those of a rank's earlier processes, the oldest first
	begun   bool       // a process of the rank has started
}

// begin notes the start of a rank's process.
func (s *source) begin() {
	if s.begun {
		s.past, s.tail = append(s.past, s.tail), nil
	}
	s.begun = true
}

// lastLines returns those of the rank's process after so many others.
func (s *source) lastLines(nth int) []string {
	if nth < len(s.past) {
		return s.past[nth]
	}
	return s.tail
}

// remember keeps the last lines. Those of a panic begin with its message.
func (s *source) remember(line []byte) {
	most := tailLines
	switch {
	case len(s.tail) > 0 && isPanic(s.tail[0]):
		most = panicLines
	case isPanic(string(line)):
		s.tail = s.tail[:0]
	}
	for len(s.tail) >= most {
		s.tail = append(s.tail[:0], s.tail[1:]...)
	}
	s.tail = append(s.tail, string(line[:min(len(line), maxTailLine)]))
}

// isPanic reports whether a Go program begins to say with a line why it dies.
func isPanic(line string) bool {
	return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
}

// printer merges the output of all sources. A whole line is one Write, so lines never
// mix.
type printer struct {
	stamped bool // the time of its arrival comes before each line

	mu       sync.Mutex
	dest     [streams]io.Writer
	terminal [streams]bool // dest is one: it shows parts of lines, too
	open     *lines        // whose part ends what the terminals show; nil: nobody's
	openTo   io.Writer
}

// print takes bytes of a source's stream; no bytes end the stream.
func (p *printer) print(s *source, stream int, b []byte) error {
	kept, err := p.merge(s, stream, b)
	if len(kept) > 0 { // a slow log holds up nobody else
		if _, failed := s.log.Write(kept); failed != nil {
			return fmt.Errorf("keep the job's output: %w", failed)
		}
	}
	return err
}

// merge writes what print takes, and returns the lines for the source's log.
func (p *printer) merge(s *source, stream int, b []byte) (kept []byte, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &s.streams[stream]
	var out []byte
	stamp := p.stamp()
	emit := func(line []byte) {
		s.remember(line)
		if rest := line[l.shown:]; len(rest) > 0 || l.shown == 0 || p.open == l { // else another one has ended it
			out = append(append(p.begin(out, l, s, stamp), rest...), '\n')
		}
		if p.open == l {
			p.open = nil
		}
		if s.log != nil {
			kept = append(append(append(kept, stamp...), line...), '\n')
		}
	}
	if len(b) == 0 {
		l.flush(emit)
	} else {
		l.add(b, emit)
	}
	if s.raw {
		out = b
	} else if added := l.added; p.terminal[stream] && len(l.part) > 0 {
		time.AfterFunc(promptTime, func() { p.show(s, stream, added) })
	}
	return kept, p.write(stream, l, out)
}

// stamp is what comes before lines that come now: the time, or nothing.
func (p *printer) stamp() []byte {
	if !p.stamped {
		return nil
	}
	return time.Now().AppendFormat(nil, timeLayout)
}

// begin adds to out what comes before a line, or before the rest of one that was shown in part.
func (p *printer) begin(out []byte, l *lines, s *source, stamp []byte) []byte {
	if p.open == l {
		return out
	}
	return append(append(out, stamp...), s.label...)
}

// show writes the part of a line to a terminal, unless more has come meanwhile.
func (p *printer) show(s *source, stream int, added uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &s.streams[stream]
	part := bytes.TrimSuffix(l.part, []byte("\r")) // which may be half an end
	if l.added != added || l.shown >= len(part) {
		return
	}
	out := append(p.begin(nil, l, s, p.stamp()), part[l.shown:]...)
	if p.write(stream, l, out) == nil { // else the next line says so
		l.shown, p.open, p.openTo = len(part), l, p.dest[stream]
	}
}

// write writes some of a stream's lines. A part of another one's line, which a terminal shows, ends there.
func (p *printer) write(stream int, l *lines, out []byte) (err error) {
	if len(out) == 0 {
		return nil
	}
	if p.open != nil && p.open != l {
		_, err = p.openTo.Write([]byte("\n"))
		p.open = nil
	}
	if err == nil {
		_, err = p.dest[stream].Write(out)
	}
	if err != nil {
		return fmt.Errorf("write the job's output: %w", err)
	}
	return nil
}
