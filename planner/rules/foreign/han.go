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

// hanComponents are the components for a level.
var hanComponents = []string{"self", "basic", "libnbc", "tuned", "sm", "adapt", "han", "xhc"}

// hanAlgorithms are HAN's algorithms, from 1 on; 0 is default.
var hanAlgorithms = []string{"default", "intra", "simple", "reproducible"}

// hanFile is the part of a file for a collective.
type hanFile struct {
	line   int
	name   string
	of     *collective  // nil: it has no counterpart
	levels [3][]section // by level
}

// ReadHAN reads a file of coll_han_dynamic_rules_filename, and returns rules with the same decisions,
// as far as HAN follows the file. Levels by name, and algorithms after han, are of Open MPI
// 5.0 and later; 4.1 reads levels by number.
func ReadHAN(name, text string) (string, []Note, error) {
	b := &builder{complaints: complaints{name: name}}
	r := &reader{complaints: b.complaints}
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if at := strings.IndexByte(line, '['); at >= 0 {
			b.note(i+1, "segment lengths in brackets have no effect in HAN: skipped")
			line = line[:at]
		}
		for _, w := range strings.Fields(strings.ReplaceAll(line, "@", " @")) {
			r.words = append(r.words, word{w, i + 1})
		}
	}
	var all []hanFile
	for range r.count("the number of collectives", 1, 22) {
		f := r.hanCollective()
		if f.of == nil {
			b.note(f.line, "%s has no counterpart: left to others", f.name)
		}
		all = slices.DeleteFunc(all, func(g hanFile) bool { return g.of != nil && g.of == f.of }) // the last one wins
		all = append(all, f)
	}
	if r.at < len(r.words) {
		r.fail(r.words[r.at].line, "%q after the last collective", r.words[r.at].text)
	}
	if b.err = r.err; b.err == nil {
		for _, f := range all {
			f.write(b)
		}
	}
	return b.result()
}

// hanCollective reads the part of a collective.
func (r *reader) hanCollective() (f hanFile) {
	known := make([]string, 22)
	for _, c := range collectives {
		known[c.id] = c.name
	}
	for id, name := range others {
		known[id] = name
	}
	f.name = known[r.oneOf("a collective", known, true)]
	f.line, f.of = r.line, findCollective(f.name)
	for range r.count("the number of levels", 0, 1<<10) {
		level := r.oneOf("a level", hanLevels, true)
		f.levels[level] = r.sections(1, func(all []section, ranks int64) {
			if k := len(all); k == 0 && ranks != 1 || k > 0 && ranks <= all[k-1].ranks {
				r.fail(r.line, "communicator size %d; the first is 1, and they ascend", ranks)
			}
		}, r.hanStep)
	}
	return f
}

// hanStep reads a message size with its component, behind others.
func (r *reader) hanStep(before []step) step {
	s := step{bytes: r.number("a message size", 0, math.MaxInt64), line: r.line}
	if k := len(before); k == 0 && s.bytes > 1 || k > 0 && s.bytes <= before[k-1].bytes {
		r.fail(r.line, "message size %d; the first is 0, and they ascend", s.bytes)
	}
	s.word = hanComponents[r.oneOf("a component", hanComponents, false)]
	if r.at < len(r.words) && strings.HasPrefix(r.words[r.at].text, "@") {
		if s.word += " " + r.words[r.at].text; s.word[:4] != "han " {
			r.fail(r.words[r.at].line, "%s; an algorithm comes after han only", s.word)
		}
		r.at++
	}
	return s
}

// write writes the rules for a collective: by the component of the whole communicator, then by the one
// between nodes, then by the one inside them.
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
	between := f.nest(b, "nodes", f.levels[1], func(s step) string { return f.choiceBetween(b, s) })
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
					arms = append(arms, fmt.Sprintf("if %s and %s and %s then %s", w.where, i.where, in.where, joinWords(w.plan, i.plan, in.plan)))
				}
			}
			continue
		}
		arms = append(arms, fmt.Sprintf("if %s then %s", w.where, w.plan))
	}
	return strings.Join(arms, " el") + " else default"
}

// joinWords joins words of plans.
func joinWords(plans ...string) string {
	return strings.Join(slices.DeleteFunc(plans, func(p string) bool { return p == "" }), ",")
}

// choiceWhere is words of a plan under a condition.
type choiceWhere struct{ where, plan string }

// nest lists the choice for each interval of ranks and bytes; at least one.
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

// hanBetween are choices between nodes, by component and collective.
var hanBetween = map[string]map[string]string{
	"adapt": {
		"bcast": "ib=adapt/binomial", "reduce": "ir=adapt/binomial", "allreduce": "ir=adapt/binomial,ib=adapt/binomial",
	},
	"libnbc": {
		"bcast": "ib=nbc/binomial", "reduce": "ir=nbc/rabenseifner", "allreduce": "ir=nbc/rabenseifner,ib=nbc/binomial",
	},
}

// choiceBetween returns the choice for a component between nodes.
func (f *hanFile) choiceBetween(b *builder, s step) string {
	choice := hanBetween[s.word][f.of.name]
	if choice == "" {
		b.note(s.line, "%s between nodes by %s decides by itself: left open", f.of.name, s.word)
	}
	return choice
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
// whether HAN or tuned does it, and for HAN the components between nodes and inside
// them. Open MPI 4.1 gets levels by number and no algorithms of HAN.
func WriteHAN(b *rules.Base, l Layout, version string) (string, []Note) {
	g := l.grid(b, OpenMPI)
	g.han = version
	var text strings.Builder
	n := 0
	for i := range collectives {
		c := collectives[i]
		if c.size == "total" { // HAN counts a rank's bytes
			c.size = "bytes"
		}
		if !b.Decides(c.coll) || c.size == perElement || c.differ || c.coll.String() == "reducescatter" {
			continue
		}
		all := g.collective(&c)
		if len(all) == 0 {
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
