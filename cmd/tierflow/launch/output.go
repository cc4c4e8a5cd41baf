package launch

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

const (
	maxLine     = 64 << 10
	tailLines   = 10
	maxTailLine = 1 << 10
)

// lines cuts a stream into lines of at most maxLine bytes.
type lines struct {
	part []byte // of a line that has not ended
}

// add calls emit, with no newline, for every line that b completes.
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
		emit(l.part)
		l.part = l.part[:0]
	}
}

// flush emits a line that has not ended.
func (l *lines) flush(emit func(line []byte)) {
	if len(l.part) > 0 {
		emit(l.part)
		l.part = l.part[:0]
	}
}

// source is one writer of output, a rank or an agent. It belongs to one goroutine at a time.
type source struct {
	label   string
	raw     bool // pass bytes as they come, without label
	streams [streams]lines
	tail    []string // its last lines, both streams
}

func (s *source) remember(line []byte) {
	if len(s.tail) == tailLines {
		s.tail = append(s.tail[:0], s.tail[1:]...)
	}
	s.tail = append(s.tail, string(line[:min(len(line), maxTailLine)]))
}

// printer merges the output of all sources. A whole line is one Write, so lines never
// mix.
type printer struct {
	mu   sync.Mutex
	dest [streams]io.Writer
}

// print takes bytes of a source's stream; no bytes end the stream.
func (p *printer) print(s *source, stream int, b []byte) error {
	var out []byte
	emit := func(line []byte) {
		s.remember(line)
		out = append(append(append(out, s.label...), line...), '\n')
	}
	if len(b) == 0 {
		s.streams[stream].flush(emit)
	} else {
		s.streams[stream].add(b, emit)
	}
	if s.raw {
		out = b
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
