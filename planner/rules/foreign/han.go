package foreign

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/planner/rules"
)

// hanLevels are HAN's levels in its files, by name and number.
var hanLevels = []string{"intra_node", "inter_node", "global_communicator"}

// hanComponents are what a level may be left to.
var hanComponents = []string{"self", "basic", "libnbc", "tuned", "sm", "adapt", "han", "xhc"}

// hanAlgorithms are HAN's algorithms, from 1 on; 0 is default.
var hanAlgorithms = []string{"default", "intra", "simple", "reproducible"}

// hanFile is what a file says of a collective.
type hanFile struct {
	line   int
	of     *collective
	levels [3][]section // by level
}

// ReadHAN reads a file of coll_han_dynamic_rules_filename, and returns rules that decide the
// same as far as HAN follows the file. Levels by name, and algorithms after han, are of Open MPI
// 5.0 and later; 4.1 reads levels by number.
func ReadHAN(name, text string) (string, []Note, error) {
	r := &hanReader{name: name}
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if at := strings.IndexByte(line, '['); at >= 0 {
			r.notes = append(r.notes, Note{i + 1, "segment lengths in brackets have no effect in HAN: skipped"})
			line = line[:at]
		}
		for _, w := range strings.Fields(strings.ReplaceAll(line, "@", " @")) {
			r.words = append(r.words, hanWord{w, i + 1})
		}
	}
	b := &builder{library: OpenMPI, notes: r.notes}
	n, err := r.number("the number of collectives", 1, 22)
	if err != nil {
		return "", nil, err
	}
	var all []hanFile
	for range n {
		f, err := r.collective()
		if err != nil {
			return "", nil, err
		}
		all = slices.DeleteFunc(all, func(g hanFile) bool { return g.of != nil && g.of == f.of }) // the last one wins
		all = append(all, f)
	}
	if r.at < len(r.words) {
		return "", nil, fmt.Errorf("%s:%d: %q after the last collective", name, r.words[r.at].line, r.words[r.at].text)
	}
	b.notes = append(b.notes, r.notes[len(b.notes):]...)
	for _, f := range all {
		f.write(b)
	}
	return b.String(), b.notes, nil
}

type hanWord struct {
	text string
	line int
}

type hanReader struct {
	name  string
	words []hanWord
	at    int
	line  int
	notes []Note
}

// word takes a word.
func (r *hanReader) word(what string) (string, error) {
	if r.at == len(r.words) {
		return "", fmt.Errorf("%s:%d: the file ends; expected %s", r.name, max(r.line, 1), what)
	}
	w := r.words[r.at]
	r.at, r.line = r.at+1, w.line
	return w.text, nil
}

// number takes a number.
func (r *hanReader) number(what string, least, most int64) (int64, error) {
	w, err := r.word(what)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(w, 0, 64)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s:%d: %q for %s; allowed are %d to %d", r.name, r.line, w, what, least, most)
	}
	return n, nil
}

// oneOf takes one of some names, or its number.
func (r *hanReader) oneOf(what string, known []string, numbers bool) (int, error) {
	w, err := r.word(what)
	if err != nil {
		return 0, err
	}
	i := slices.Index(known, w)
	if n, err := strconv.Atoi(w); i < 0 && err == nil && n >= 0 && n < len(known) && numbers {
		i = n
	}
	if i < 0 {
		return 0, fmt.Errorf("%s:%d: %q for %s; allowed are %s", r.name, r.line, w, what, strings.Join(known, ", "))
	}
	return i, nil
}

func (r *hanReader) collective() (f hanFile, err error) {
	known := make([]string, 22)
	for _, c := range collectives {
		known[c.id] = c.name
	}
	for id, name := range others {
		known[id] = name
	}
	id, err := r.oneOf("a collective", known, true)
	if err != nil {
		return f, err
	}
	f.line, f.of = r.line, named(known[id])
	if f.of == nil {
		r.notes = append(r.notes, Note{r.line, known[id] + " has no counterpart: left to others"})
	}
	levels, err := r.number("the number of levels", 0, 1<<10)
	if err != nil {
		return f, err
	}
	for range levels {
		level, err := r.oneOf("a level", hanLevels, true)
		if err != nil {
			return f, err
		}
		if f.levels[level], err = r.sections(); err != nil {
			return f, err
		}
	}
	return f, nil
}

func (r *hanReader) sections() (all []section, err error) {
	n, err := r.number("the number of communicator sizes", 0, 1<<20)
	if err != nil {
		return nil, err
	}
	for i := range n {
		var s section
		if s.ranks, err = r.number("a communicator's size", 1, math.MaxInt32); err != nil {
			return nil, err
		}
		s.line = r.line
		if i == 0 && s.ranks != 1 || i > 0 && s.ranks <= all[i-1].ranks {
			return nil, fmt.Errorf("%s:%d: communicator size %d; the first is 1, and they ascend", r.name, r.line, s.ranks)
		}
		steps, err := r.number("the number of message sizes", 0, 1<<20)
		if err != nil {
			return nil, err
		}
		for k := range steps {
			var one step
			if one.bytes, err = r.number("a message size", 0, math.MaxInt64); err != nil {
				return nil, err
			}
			one.line = r.line
			if k == 0 && one.bytes > 1 || k > 0 && one.bytes <= s.steps[k-1].bytes {
				return nil, fmt.Errorf("%s:%d: message size %d; the first is 0, and they ascend", r.name, r.line, one.bytes)
			}
			component, err := r.oneOf("a component", hanComponents, false)
			if err != nil {
				return nil, err
			}
			one.word = hanComponents[component]
			if r.at < len(r.words) && strings.HasPrefix(r.words[r.at].text, "@") {
				if one.word += " " + r.words[r.at].text; one.word[:4] != "han " {
					return nil, fmt.Errorf("%s:%d: %s; an algorithm comes after han only", r.name, r.words[r.at].line, one.word)
				}
				r.at++
			}
			s.steps = append(s.steps, one)
		}
		all = append(all, s)
	}
	return all, nil
}

// write writes the rules for a collective: by the whole communicator's component, then by that
// between nodes, then by that inside them.
func (f *hanFile) write(b *builder) {
	if f.of == nil {
		return
	}
	if f.levels[2] == nil {
		b.note(f.line, "%s: nothing is said of global_communicator, so HAN is what the other components leave: left to others", f.of.name)
		return
	}
	inner := f.nest(b, "pernode", f.levels[0], func(s step) string { return f.inside(b, s) })
	fmt.Fprintf(b, "%s: %s\n\n", f.of.head(), f.cross(b, inner))
}

// cross returns the rules of all levels. inside are choices for the inside of nodes by condition.
func (f *hanFile) cross(b *builder, inside []choiceWhere) string {
	between := f.nest(b, "nodes", f.levels[1], func(s step) string { return f.between(b, s) })
	whole := f.nest(b, "ranks", f.levels[2], func(s step) string { return f.whole(b, s) })
	var arms []string
	for _, w := range whole {
		if w.plan == "" {
			arms = append(arms, fmt.Sprintf("if %s then default", w.where))
			continue
		}
		if !strings.HasPrefix(w.plan, "shape=flat") {
			for _, i := range between {
				for _, in := range inside {
					arms = append(arms, fmt.Sprintf("if %s and %s and %s then %s", w.where, i.where, in.where, joined(w.plan, i.plan, in.plan)))
				}
			}
			continue
		}
		arms = append(arms, fmt.Sprintf("if %s then %s", w.where, w.plan))
	}
	return strings.Join(arms, " el") + " else default"
}

// joined joins words of plans.
func joined(plans ...string) string {
	return strings.Join(slices.DeleteFunc(plans, func(p string) bool { return p == "" }), ",")
}

// choiceWhere is words of a plan under a condition.
type choiceWhere struct{ where, plan string }

// nest lists what is said for each interval of ranks and bytes; always something.
func (f *hanFile) nest(b *builder, what string, all []section, plan func(step) string) (list []choiceWhere) {
	for k, s := range all {
		for i, one := range s.steps {
			where := fmt.Sprintf("%s >= %d", what, s.ranks)
			if k+1 < len(all) {
				where += fmt.Sprintf(" and %s < %d", what, all[k+1].ranks)
			}
			if one.bytes > 1 {
				where += fmt.Sprintf(" and bytes >= %d", one.bytes)
			}
			if i+1 < len(s.steps) {
				where += fmt.Sprintf(" and bytes < %d", s.steps[i+1].bytes)
			}
			list = append(list, choiceWhere{where, plan(one)})
		}
	}
	if len(list) == 0 {
		list = append(list, choiceWhere{"ranks >= 1", ""})
	}
	return list
}

// whole returns the plan for a component of the whole communicator; empty: left to others.
func (f *hanFile) whole(b *builder, s step) string {
	component, algorithm, _ := strings.Cut(s.word, " @")
	if component != "han" {
		b.note(s.line, "%s by %s decides by itself: left to others, without hierarchy", f.of.name, component)
		return "shape=flat"
	}
	if i, err := strconv.Atoi(algorithm); err == nil && i >= 0 && i < len(hanAlgorithms) {
		algorithm = hanAlgorithms[i]
	}
	switch {
	case algorithm == "reproducible":
		return "shape=flat,order=tree"
	case algorithm != "simple" && slices.Contains([]string{"bcast", "reduce", "allreduce"}, f.of.name):
		return "shape=han-lockstep,fs=64KiB,w=4"
	case f.of.name == "allreduce":
		return "shape=ar,fs=all,w=4"
	}
	return "shape=han,fs=all,w=4"
}

// between returns the choice for a component between nodes.
func (f *hanFile) between(b *builder, s step) string {
	switch s.word {
	case "adapt":
		switch f.of.name {
		case "bcast":
			return "ib=adapt/binomial"
		case "reduce":
			return "ir=adapt/binomial"
		case "allreduce":
			return "ir=adapt/binomial,ib=adapt/binomial"
		}
	case "libnbc":
		switch f.of.name {
		case "bcast":
			return "ib=nbc/binomial"
		case "reduce":
			return "ir=nbc/rabenseifner"
		case "allreduce":
			return "ir=nbc/rabenseifner,ib=nbc/binomial"
		}
	}
	b.note(s.line, "%s between nodes by %s decides by itself: left open", f.of.name, s.word)
	return ""
}

// inside returns the choice for a component inside nodes.
func (f *hanFile) inside(b *builder, s step) string {
	if s.word == "sm" {
		return "s=sm/slots"
	}
	b.note(s.line, "%s inside nodes by %s decides by itself: left open", f.of.name, s.word)
	return ""
}

// WriteHAN writes rules as a file of coll_han_dynamic_rules_filename: for each collective
// whether HAN or tuned does it, and for HAN which component does it between nodes and inside
// them. Open MPI 4.1 gets levels by number and no algorithms of HAN.
func WriteHAN(b *rules.Base, l Layout, version string) (string, []Note) {
	g := &grid{layout: l, base: b, library: OpenMPI, noted: map[string]bool{}, known: map[matched]step{}, han: version}
	if g.layout.Most == 0 {
		g.layout.Most = 4096
	}
	var text strings.Builder
	n := 0
	for i := range collectives {
		c := collectives[i]
		if c.size == "total" { // HAN counts what a rank has
			c.size = "bytes"
		}
		if !b.Decides(c.coll) || c.size == perElement || c.differ || c.coll.String() == "reducescatter" {
			continue
		}
		g.bounds = b.Bounds(c.coll)
		g.assume(&c)
		all := g.collective(&c)
		if !slices.ContainsFunc(all, func(s section) bool {
			return slices.ContainsFunc(s.steps, func(one step) bool { return one.word != "0" })
		}) {
			continue
		}
		n++
		level := hanLevels[2]
		if version == For4 {
			level = "2"
		}
		fmt.Fprintf(&text, "%s\n1 # level\n%s\n%d # numbers of ranks\n", map[bool]string{true: strconv.Itoa(c.id), false: c.name}[version == For4], level, len(all))
		for k, s := range all {
			ranks := s.ranks
			if k == 0 {
				ranks = 1
			}
			fmt.Fprintf(&text, "%d # ranks and more\n%d # sizes\n", ranks, len(s.steps))
			for _, one := range s.steps {
				word := one.word
				if word == "0" {
					word = "tuned"
					g.note(0, "%s: where rules leave it open the file has tuned, without hierarchy", c.name)
				}
				fmt.Fprintf(&text, "%d %s\n", one.bytes, word)
			}
		}
	}
	return fmt.Sprintf("%d # collectives, by rules of %s, for HAN of Open MPI %s\n", n, strings.ReplaceAll(b.Name, "\n", " "), version) + text.String(), g.notes
}
