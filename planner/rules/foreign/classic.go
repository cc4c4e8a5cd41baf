package foreign

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/planner/rules"
)

// Versions of Open MPI for which files are.
const (
	For4    = "4.1"
	For5    = "5.0"
	ForMain = "main"
)

// section is what a file says for numbers of ranks from a least one on.
type section struct {
	line  int
	ranks int64
	steps []step
}

// step is what a section says for messages from a size on.
type step struct {
	line  int
	bytes int64
	word  string // an algorithm's number or name; 0: the library's own decision
	Settings
	requests int64
}

// cell is a number of a text with its line.
type cell struct {
	n    int64
	line int
}

// cells cuts a classic file into its numbers, as Open MPI does: what is no number is skipped.
func cells(name, text string) (all []cell, notes []Note, err error) {
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.FieldsFunc(line, func(r rune) bool { return r < '0' || r > '9' && r < 'A' || r > 'Z' && r < 'a' || r > 'z' })
		for _, w := range words {
			n, err := strconv.ParseInt(w, 0, 64) // strtol with base 0
			if err != nil && w[0] >= '0' && w[0] <= '9' {
				return nil, nil, fmt.Errorf("%s:%d: %q is no number; decimal, 0x… and 0… octal ones are allowed", name, i+1, w)
			}
			if err != nil {
				notes = append(notes, Note{i + 1, fmt.Sprintf("%q is no number: skipped, as Open MPI does", w)})
				continue
			}
			all = append(all, cell{n, i + 1})
		}
	}
	return all, notes, nil
}

// reader takes one number after the other.
type reader struct {
	name  string
	cells []cell
	at    int
	line  int // of the number taken last
}

// take returns the next number, between two bounds. what is its name for complaints.
func (r *reader) take(what string, least, most int64) (int64, error) {
	if r.at == len(r.cells) {
		return 0, fmt.Errorf("%s:%d: the file ends; expected %s", r.name, max(r.line, 1), what)
	}
	c := r.cells[r.at]
	r.at, r.line = r.at+1, c.line
	if c.n < least || c.n > most {
		return 0, fmt.Errorf("%s:%d: %d for %s; allowed are %d to %d", r.name, c.line, c.n, what, least, most)
	}
	return c.n, nil
}

// fileVersion begins a file of version 2 or later.
const fileVersion = "rule-file-version-"

// ReadClassic reads a file of coll_tuned_dynamic_rules_filename as Open MPI of a version does,
// and returns rules that decide the same.
func ReadClassic(name, text, version string) (string, []Note, error) {
	columns := 1
	body := text
	if rest, has := strings.CutPrefix(text, fileVersion); has {
		digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
		n, err := strconv.Atoi(digits)
		if err != nil || n < 1 || n > 2 {
			return "", nil, fmt.Errorf("%s:1: %s%s; versions 1 and 2 are known", name, fileVersion, digits)
		}
		columns, body = n, rest[len(digits):]
	}
	all, notes, err := cells(name, body)
	if err != nil {
		return "", nil, err
	}
	r := &reader{name: name, cells: all}
	b := &builder{library: OpenMPI, notes: notes}
	colls, err := r.take("the number of collectives", 0, int64(len(collectives)+len(others)))
	if err != nil {
		return "", nil, err
	}
	for range colls {
		id, err := r.take("a collective's number", 0, 21)
		if err != nil {
			return "", nil, err
		}
		line := r.line
		sections, err := r.sections(columns)
		if err != nil {
			return "", nil, err
		}
		b.add(int(id), line, sections, version)
	}
	if r.at < len(all) {
		return "", nil, fmt.Errorf("%s:%d: %d after the last collective; a fifth column needs %s2 at the very beginning", name, all[r.at].line, all[r.at].n, fileVersion)
	}
	return b.String(), b.notes, nil
}

// sections reads those of a collective.
func (r *reader) sections(columns int) (all []section, err error) {
	n, err := r.take("the number of communicator sizes", 0, 1<<20)
	if err != nil {
		return nil, err
	}
	for range n {
		var s section
		if s.ranks, err = r.take("a communicator's size", 0, math.MaxInt32); err != nil {
			return nil, err
		}
		if s.line = r.line; len(all) > 0 && s.ranks <= all[len(all)-1].ranks {
			return nil, fmt.Errorf("%s:%d: communicator size %d after %d; they ascend", r.name, r.line, s.ranks, all[len(all)-1].ranks)
		}
		steps, err := r.take("the number of message sizes", 0, 1<<20)
		if err != nil {
			return nil, err
		}
		for range steps {
			one, err := r.step(columns)
			if err != nil {
				return nil, err
			}
			if k := len(s.steps); k > 0 && one.bytes <= s.steps[k-1].bytes {
				return nil, fmt.Errorf("%s:%d: message size %d after %d; they ascend", r.name, one.line, one.bytes, s.steps[k-1].bytes)
			} else if k == 0 && one.bytes != 0 {
				return nil, fmt.Errorf("%s:%d: the first message size is %d; it must be 0", r.name, one.line, one.bytes)
			}
			s.steps = append(s.steps, one)
		}
		all = append(all, s)
	}
	return all, nil
}

// step reads a line of a section.
func (r *reader) step(columns int) (s step, err error) {
	if s.bytes, err = r.take("a message size", 0, math.MaxInt64); err != nil {
		return s, err
	}
	s.line = r.line
	alg, err := r.take("an algorithm", 0, 1<<10)
	if err != nil {
		return s, err
	}
	s.word = strconv.FormatInt(alg, 10)
	fan, err := r.take("a fan-out", 0, math.MaxInt32)
	if err != nil {
		return s, err
	}
	s.Fan = int(fan)
	if s.Segment, err = r.take("a segment size", 0, math.MaxInt32); err != nil {
		return s, err
	}
	if columns > 1 && r.at < len(r.cells) && r.cells[r.at].line == r.line {
		s.requests, err = r.take("a number of requests", 0, math.MaxInt32)
	}
	return s, err
}

// builder writes rules.
type builder struct {
	strings.Builder
	library string
	notes   []Note
}

// note adds a note.
func (b *builder) note(line int, format string, args ...any) {
	b.notes = append(b.notes, Note{line, fmt.Sprintf(format, args...)})
}

// add writes the rules for one of Open MPI's collectives.
func (b *builder) add(id, line int, sections []section, version string) {
	i := slices.IndexFunc(collectives, func(c collective) bool { return c.id == id })
	switch {
	case i < 0:
		b.note(line, "%s has no counterpart: left to others", others[id])
		return
	case len(sections) == 0:
		return
	}
	c := &collectives[i]
	if version == ForMain && len(sections) > 1 {
		b.note(line, "%s: the main branch takes each section for the next smaller numbers of ranks; 4.1 and 5.0 for its own and larger ones", c.name)
	}
	fmt.Fprintf(b, "%s:\n", c.head())
	if c.regular {
		b.WriteString("\tif not regular then default\n\tel")
	} else {
		b.WriteByte('\t')
	}
	for k, s := range sections[:len(sections)-1] {
		below := sections[k+1].ranks
		if version == ForMain {
			below = s.ranks
		}
		fmt.Fprintf(b, "if ranks < %d then ", below)
		b.steps(c, s.steps)
		b.WriteString("\n\tel")
	}
	if c.regular || len(sections) > 1 {
		b.WriteString("se ")
	}
	b.steps(c, sections[len(sections)-1].steps)
	b.WriteString("\n\n")
}

// steps writes what a section says.
func (b *builder) steps(c *collective, steps []step) {
	if len(steps) == 0 {
		b.WriteString("default")
		return
	}
	if c.size == "0" {
		if len(steps) > 1 {
			b.note(steps[1].line, "Open MPI counts no bytes of %s: only the first message size is ever used", c.name)
		}
		b.WriteString(b.leaf(c, steps[0]))
		return
	}
	if len(steps) == 1 {
		b.WriteString(b.leaf(c, steps[0]))
		return
	}
	b.WriteByte('(')
	for i, s := range steps {
		switch {
		case i == len(steps)-1:
			b.WriteString("\n\t\telse ")
		case i == 0:
			fmt.Fprintf(b, "\n\t\tif %s < %d then ", c.size, steps[i+1].bytes)
		default:
			fmt.Fprintf(b, "\n\t\telif %s < %d then ", c.size, steps[i+1].bytes)
		}
		b.WriteString(b.leaf(c, s))
	}
	b.WriteByte(')')
}

// leaf returns the plan of a step.
func (b *builder) leaf(c *collective, s step) string {
	if s.requests > 0 {
		b.note(s.line, "%s: at most %d requests at a time has no counterpart", c.name, s.requests)
	}
	if s.word == "0" {
		return "default"
	}
	r, err := Find(OpenMPI, c.name, s.word)
	if err != nil {
		b.note(s.line, "%v: left to others", err)
		return "default"
	}
	return leaf(r, r.inFile(s.Settings, s.line, &b.notes), s.line, &b.notes)
}

// WriteClassic writes rules as a file of coll_tuned_dynamic_rules_filename for a version of
// Open MPI. Its decisions are those of the rules on a layout.
func WriteClassic(b *rules.Base, l Layout, version string) (string, []Note) {
	var text strings.Builder
	tables, notes := l.tables(b, OpenMPI, false)
	fmt.Fprintf(&text, "%-15d # collectives, by rules of %s, for Open MPI %s\n", len(tables), strings.ReplaceAll(b.Name, "\n", " "), version)
	for _, t := range tables {
		sections := t.sections
		fmt.Fprintf(&text, "%-15d # %s\n%-15d # numbers of ranks\n", t.of.id, t.of.name, len(sections))
		for k, s := range sections {
			ranks := s.ranks
			if version == ForMain { // a section is for the numbers below its own
				if ranks = s.ranks + 1; k+1 < len(sections) {
					ranks = sections[k+1].ranks
				}
			}
			fmt.Fprintf(&text, "%-15d # from %s\n%-15d # sizes\n", ranks, plural(s.ranks, "rank"), len(s.steps))
			for _, one := range s.steps {
				r, _ := Find(OpenMPI, t.of.name, one.word)
				name := cmp.Or(r.Name, "its own decision")
				number := 0
				if r.Number > 0 {
					number = r.Number
				}
				fmt.Fprintf(&text, "%-15s # %s\n", fmt.Sprintf("%d %d %d %d", one.bytes, number, one.Fan, one.Segment), name)
			}
		}
	}
	return text.String(), notes
}

// plural returns 1 rank, 2 ranks.
func plural(n int64, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
