package kit

import (
	"bytes"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// screen writes to a terminal. Lines that are wider go on below, indented: tables between
// two columns, the same for all their rows, other text between words.
type screen struct {
	out    io.Writer
	width  func() int // of the terminal, characters; 0: not known
	begun  []byte     // of a line that is not written yet
	breaks []int      // where the last wide line was broken, one for each line that it became but the last
}

// minWidth is the width below which wrapping would make nothing readable.
const minWidth = 20

// onScreen returns a writer that fits lines to out if that is a terminal, else out.
func onScreen(out io.Writer) io.Writer {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return out
	}
	return &screen{out: f, width: func() int {
		width, _, err := term.GetSize(int(f.Fd()))
		if err != nil {
			return 0
		}
		return width
	}}
}

// Raw returns the writer to which bytes go as they are: text that programs read is never
// wrapped.
func Raw(out io.Writer) io.Writer {
	if s, ok := out.(*screen); ok {
		return s.out
	}
	return out
}

// Write writes the lines that p ends. What is left waits for its end.
func (s *screen) Write(p []byte) (int, error) {
	s.begun = append(s.begun, p...)
	end := bytes.LastIndexByte(s.begun, '\n') + 1
	if end == 0 {
		return len(p), nil
	}
	var fitted strings.Builder
	for line := range strings.Lines(string(s.begun[:end])) {
		s.fit(&fitted, strings.TrimSuffix(line, "\n"))
	}
	s.begun = append(s.begun[:0], s.begun[end:]...)
	_, err := io.WriteString(s.out, fitted.String())
	return len(p), err
}

// flush writes a last line that has no end.
func (s *screen) flush() {
	_, _ = s.out.Write(s.begun) // the command has its error already, if it has one
	s.begun = nil
}

// deeper is the indent of the lines that a wide one goes on in.
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

// breakAt returns where text is broken to fit: where the line before was, if there is a gap,
// else behind the last column or word that fits; 0 if there is none.
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

// Colours, of terminals that have them: of faults, of what deserves a look, and of the best.
const (
	Red    = "31"
	Yellow = "33"
	Green  = "32"
)

// Coloured returns text in a colour if out is a terminal. With NO_COLOR, or on a terminal
// without colours, it is text as it was.
func Coloured(out io.Writer, colour, text string) string {
	f, ok := Raw(out).(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(f.Fd())) {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}
