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

// Versions of Open MPI that read files in different ways.
const (
	For4    = "4.1"
	For5    = "5.0"
	ForMain = "main"
)

// section is the part of a file for numbers of ranks from a least one on.
type section struct {
	ranks int64
	steps []step
}

// step is the part of a section for messages from a size on.
type step struct {
	line  int
	bytes int64
	word  string // an algorithm's number or name; 0: the library's own decision
	settings
	requests int64
}

// numbersOf cuts a classic file into its numbers, as Open MPI does: it skips other words.
func (b *builder) numbersOf(text string) (all []word) {
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.FieldsFunc(line, func(r rune) bool { return r < '0' || r > '9' && r < 'A' || r > 'Z' && r < 'a' || r > 'z' })
		for _, w := range words {
			n, err := strconv.ParseInt(w, 0, 64) // strtol with base 0
			if err != nil && w[0] >= '0' && w[0] <= '9' {
				b.fail(i+1, "%q is no number; decimal, 0x… and 0… octal ones are allowed", w)
			} else if err != nil {
				b.note(i+1, "%q is no number: skipped, as Open MPI does", w)
				continue
			}
			all = append(all, word{strconv.FormatInt(n, 10), i + 1})
		}
	}
	return all
}

// fileVersion begins a file of version 2 or later.
const fileVersion = "rule-file-version-"

// ReadClassic reads a file of coll_tuned_dynamic_rules_filename as Open MPI of a version does,
// and returns rules with the same decisions.
func ReadClassic(name, text, version string) (string, []Note, error) {
	b := &builder{complaints: complaints{name: name}}
	columns := 1
	body := text
	if rest, has := strings.CutPrefix(text, fileVersion); has {
		digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
		n, err := strconv.Atoi(digits)
		if err != nil || n < 1 || n > 2 {
			b.fail(1, "%s%s; versions 1 and 2 are known", fileVersion, digits)
		}
		columns, body = n, rest[len(digits):]
	}
	r := &reader{words: b.numbersOf(body), complaints: b.complaints, plain: true}
	for range r.count("the number of collectives", 0, int64(len(collectives)+len(others))) {
		id := r.number("a collective's number", 0, 21)
		line := r.line
		sections := r.sections(0, func(all []section, ranks int64) {
			if k := len(all); k > 0 && ranks <= all[k-1].ranks {
				r.fail(r.line, "communicator size %d after %d; they ascend", ranks, all[k-1].ranks)
			}
		}, func(before []step) step { return r.step(before, columns) })
		if r.err == nil {
			b.add(int(id), line, sections, version)
		}
	}
	if r.at < len(r.words) {
		r.fail(r.words[r.at].line, "%s after the last collective; a fifth column needs %s2 at the very beginning", r.words[r.at].text, fileVersion)
	}
	b.err = r.err
	return b.result()
}

// step reads a line of a section, behind others.
func (r *reader) step(before []step, columns int) (s step) {
	s.bytes = r.number("a message size", 0, math.MaxInt64)
	s.line = r.line
	s.word = strconv.FormatInt(r.number("an algorithm", 0, 1<<10), 10)
	s.Fan = int(r.number("a fan-out", 0, math.MaxInt32))
	s.Segment = r.number("a segment size", 0, math.MaxInt32)
	if columns > 1 && r.at < len(r.words) && r.words[r.at].line == r.line {
		s.requests = r.number("a number of requests", 0, math.MaxInt32)
	}
	if k := len(before); k > 0 && s.bytes <= before[k-1].bytes {
		r.fail(s.line, "message size %d after %d; they ascend", s.bytes, before[k-1].bytes)
	} else if k == 0 && s.bytes != 0 {
		r.fail(s.line, "the first message size is %d; it must be 0", s.bytes)
	}
	return s
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

// steps writes the decisions of a section.
func (b *builder) steps(c *collective, steps []step) {
	if len(steps) == 0 {
		b.WriteString("default")
		return
	}
	if c.size == "0" && len(steps) > 1 {
		b.note(steps[1].line, "Open MPI counts no bytes of %s: only the first message size is ever used", c.name)
		steps = steps[:1]
	}
	if len(steps) == 1 {
		b.WriteString(b.leaf(c, steps[0]))
		return
	}
	b.WriteByte('(')
	word := "if"
	for i, s := range steps {
		if i == len(steps)-1 {
			b.WriteString("\n\t\telse ")
		} else {
			fmt.Fprintf(b, "\n\t\t%s %s < %d then ", word, c.size, steps[i+1].bytes)
		}
		b.WriteString(b.leaf(c, s))
		word = "elif"
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
	return leaf(r, r.inFile(s.settings, s.line, &b.notes), s.line, &b.notes)
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
				words := fmt.Sprintf("%d %d %d %d", one.bytes, r.Number, one.Fan, one.Segment)
				fmt.Fprintf(&text, "%-15s # %s\n", words, cmp.Or(r.Name, "its own decision"))
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
