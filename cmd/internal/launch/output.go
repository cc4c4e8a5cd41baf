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

// lines cuts a stream into lines of at most maxLine bytes.
type lines struct {
	part []byte // of a line without its end yet
}

// add calls emit, with no newline, for every line completed by b.
func (l *lines) add(b []byte, emit func(line []byte)) {
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		ended := end >= 0
		if !ended {
			end = len(b)
		}
		if room := maxLine - len(l.part); end > room {
			l.part = append(l.part, b[:room]...)
			b = b[room:]
			l.flush(emit)
			continue
		}
		l.part = append(l.part, b[:end]...)
		if !ended {
			return
		}
		b = b[end+1:]
		l.end(emit)
	}
}

// flush emits a line without an end.
func (l *lines) flush(emit func(line []byte)) {
	if len(l.part) > 0 {
		l.end(emit)
	}
}

// end emits a line, empty or not.
func (l *lines) end(emit func(line []byte)) {
	emit(l.part)
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
	tail    []string // its last lines, both streams
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

	mu   sync.Mutex
	dest [streams]io.Writer
}

// print takes bytes of a source's stream; no bytes end the stream.
func (p *printer) print(s *source, stream int, b []byte) error {
	var out, kept, stamp []byte
	if p.stamped {
		stamp = time.Now().AppendFormat(nil, timeLayout)
	}
	emit := func(line []byte) {
		s.remember(line)
		out = append(append(append(append(out, stamp...), s.label...), line...), '\n')
		if s.log != nil {
			kept = append(append(append(kept, stamp...), line...), '\n')
		}
	}
	if len(b) == 0 {
		s.streams[stream].flush(emit)
	} else {
		s.streams[stream].add(b, emit)
	}
	if s.raw {
		out = b
	}
	if len(kept) > 0 {
		if _, err := s.log.Write(kept); err != nil {
			return fmt.Errorf("keep the job's output: %w", err)
		}
	}
	if len(out) == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.dest[stream].Write(out); err != nil {
		return fmt.Errorf("write the job's output: %w", err)
	}
	return nil
}
