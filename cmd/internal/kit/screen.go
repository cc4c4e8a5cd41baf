package kit

import (
	"bytes"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// screen writes to a terminal. It breaks wide lines, and indents their rest: those of a table
// between the same two columns, other text between words.
type screen struct {
	out     io.Writer
	width   func() int // of the terminal, characters; 0: not known
	partial []byte     // an incomplete line
	breaks  []int      // of the last wide line, runes from the beginning of each piece
}

// minWidth is the least width for wrapping: below it nothing would be readable.
const minWidth = 20

// onScreen returns a writer that fits lines to out if it is a terminal, else out.
func onScreen(out io.Writer) io.Writer {
	if !isTerminal(out) {
		return out
	}
	f := Raw(out).(*os.File)
	return &screen{out: f, width: func() int {
		width, _, err := term.GetSize(int(f.Fd()))
		if err != nil {
			return 0
		}
		return width
	}}
}

// isTerminal reports whether out is a terminal.
func isTerminal(out io.Writer) bool {
	f, ok := Raw(out).(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Raw returns the writer below a command's output, for bytes as they are: text for programs is never
// wrapped. The caller looks at errors of writing.
func Raw(out io.Writer) io.Writer {
	if o, ok := out.(*output); ok {
		out = o.Writer
	}
	if s, ok := out.(*screen); ok {
		return s.out
	}
	return out
}

// Write writes the lines ended by p. The rest waits for its end.
func (s *screen) Write(p []byte) (int, error) {
	s.partial = append(s.partial, p...)
	end := bytes.LastIndexByte(s.partial, '\n') + 1
	if end == 0 {
		return len(p), nil
	}
	var fitted strings.Builder
	for line := range strings.Lines(string(s.partial[:end])) {
		s.fit(&fitted, strings.TrimSuffix(line, "\n"))
	}
	s.partial = append(s.partial[:0], s.partial[end:]...)
	_, err := io.WriteString(s.out, fitted.String())
	return len(p), err
}

// flush writes a last line without an end.
func (s *screen) flush() error {
	_, err := s.out.Write(s.partial)
	s.partial = nil
	return err
}

// deeper indents the rest of a wide line.
const deeper = "    "

// fit adds a line to b in as many as it needs.
func (s *screen) fit(b *strings.Builder, line string) {
	width := s.width()
	if strings.TrimSpace(line) == "" {
		s.breaks = nil // the next table has other columns
	}
	text, indent := []rune(line), ""
	for depth := 0; width >= minWidth && len(text) > width-len(indent); depth++ {
		at := s.breakAt(text, width-len(indent), depth)
		if at <= 0 {
			break
		}
		b.WriteString(indent + strings.TrimRight(string(text[:at]), " ") + "\n")
		text, indent = text[at:], deeper
	}
	b.WriteString(indent + string(text) + "\n")
}

// breakAt returns the place to break text at most width runes from its beginning: the place of
// the line before if it is a gap here too, else the end of the last column or word; 0 if there is
// none.
func (s *screen) breakAt(text []rune, width, depth int) int {
	if depth < len(s.breaks) {
		if at := s.breaks[depth]; at <= width && at < len(text) && (text[at-1] == ' ' || text[at] == ' ') {
			return at
		}
	}
	s.breaks = s.breaks[:min(depth, len(s.breaks))]
	at, word := 0, 0
	started := false
	for i := 1; i < len(text) && i <= width+1; i++ {
		started = started || text[i-1] != ' '
		switch {
		case !started || text[i] != ' ' && text[i-1] != ' ':
		case i <= width && text[0] == ' ' && text[i] == ' ' && text[i-1] != ' ' && i+1 < len(text) && text[i+1] == ' ':
			at = i // columns to the right end here
		case text[0] != ' ' && i > 1 && text[i] != ' ' && text[i-1] == ' ' && text[i-2] == ' ':
			at = i // columns to the left begin here
		case text[i] != ' ':
			word = i
		}
	}
	if at > width/3 { // a table: its next rows are broken there too
		s.breaks = append(s.breaks, at)
		return at
	}
	return word
}

// Colours of terminals: for faults, and for findings worth a look.
const (
	Red    = "31"
	Yellow = "33"
)

// Coloured returns text in a colour if out is a terminal. With NO_COLOR, or on a terminal
// without colours, it is text as it was.
func Coloured(out io.Writer, colour, text string) string {
	if !isTerminal(out) || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}
