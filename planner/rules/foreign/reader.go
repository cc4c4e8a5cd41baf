package foreign

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
)

// complaints are about a file. Only the first one counts.
type complaints struct {
	name string // the file's
	err  error
}

// fail complains of a line.
func (c *complaints) fail(line int, format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%s:%d: %s", c.name, line, fmt.Sprintf(format, args...))
	}
}

// word is a word of a file with its line.
type word struct {
	text string
	line int
}

// reader takes one word after the other. After a complaint it has no more words.
type reader struct {
	complaints
	words []word
	at    int
	line  int  // of the word taken last
	plain bool // numbers are without quotation marks in complaints
}

// take returns the next word. Complaints name it by what.
func (r *reader) take(what string) string {
	if r.at == len(r.words) {
		r.fail(max(r.line, 1), "the file ends; expected %s", what)
	}
	if r.err != nil {
		return ""
	}
	w := r.words[r.at]
	r.at, r.line = r.at+1, w.line
	return w.text
}

// number takes a number between two bounds.
func (r *reader) number(what string, least, most int64) int64 {
	w := r.take(what)
	n, err := strconv.ParseInt(w, 0, 64)
	if err != nil || n < least || n > most {
		if !r.plain {
			w = strconv.Quote(w)
		}
		r.fail(r.line, "%s for %s; allowed are %d to %d", w, what, least, most)
	}
	return n
}

// count takes how many parts follow, and returns their indexes. A complaint ends them.
func (r *reader) count(what string, least, most int64) iter.Seq[int64] {
	n := r.number(what, least, most)
	return func(yield func(int64) bool) {
		for i := int64(0); i < n && r.err == nil && yield(i); i++ {
		}
	}
}

// sections reads those of a collective. check complains of a wrong number of ranks after others, and
// next reads a step.
func (r *reader) sections(least int64, check func(all []section, ranks int64), next func(before []step) step) (all []section) {
	for range r.count("the number of communicator sizes", 0, 1<<20) {
		s := section{ranks: r.number("a communicator's size", least, math.MaxInt32)}
		check(all, s.ranks)
		for range r.count("the number of message sizes", 0, 1<<20) {
			s.steps = append(s.steps, next(s.steps))
		}
		all = append(all, s)
	}
	return all
}

// oneOf takes one of some names, or if numbers count its number.
func (r *reader) oneOf(what string, known []string, numbers bool) int {
	w := r.take(what)
	i := slices.Index(known, w)
	if n, err := strconv.Atoi(w); i < 0 && err == nil && n >= 0 && n < len(known) && numbers {
		i = n
	}
	if i < 0 {
		r.fail(r.line, "%q for %s; allowed are %s", w, what, strings.Join(known, ", "))
	}
	return max(i, 0)
}

// builder writes rules.
type builder struct {
	complaints
	strings.Builder
	notes []Note
}

// note adds a note.
func (b *builder) note(line int, format string, args ...any) {
	b.notes = append(b.notes, Note{line, fmt.Sprintf(format, args...)})
}

// result returns the rules with their notes, or the first complaint.
func (b *builder) result() (string, []Note, error) {
	if b.err != nil {
		return "", nil, b.err
	}
	return b.String(), b.notes, nil
}
