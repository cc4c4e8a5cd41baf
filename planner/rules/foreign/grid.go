package foreign

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/tasks"
)

// Layout is the layout of the ranks for a file: most formats know only their number. All other
// parameters of rules are as usual: ranks are processes and numbered node by node, operations commute,
// blocks are equal, the root is rank 0, elements have 4 bytes. The machine is not known.
type Layout struct {
	PerNode int64 // ranks of each node but the last; 0: 1
	Most    int64 // ranks; sections go up to here. 0: 4096
}

// table is the part of a file for a collective.
type table struct {
	of       *collective
	sections []section
}

// element is the size of the elements in files, bytes. A file for scans knows nothing but the size of
// their elements: there are so many of them.
const (
	element  = 4
	elements = 1024
)

// params is a request of a library's collective, with the size as the library counts it.
func (l Layout) params(c *collective, ranks, size int64) *rules.Params {
	per := max(l.PerNode, 1)
	blocks, bytes, total := int64(1), size, size
	if c.coll.HasBlocks() {
		blocks = ranks
	}
	switch c.size {
	case "total":
		bytes = (size + ranks - 1) / ranks
	case "bytes":
		total = size * blocks
	}
	count, each := bytes/element, int64(element)
	if c.size == perElement {
		count, each = elements, size/ranks
		bytes, total = count*each, count*each
	}
	p := &rules.Params{Coll: c.coll}
	for q, v := range map[rules.Param]int64{
		rules.Ranks: ranks, rules.Nodes: (ranks + per - 1) / per, rules.PerNode: min(per, ranks),
		rules.Balanced: rules.Bool(ranks%per == 0 || ranks < per), rules.Ordered: 1, rules.Processes: 1,
		rules.Bytes: bytes, rules.Total: total, rules.Longest: bytes, rules.Blocks: blocks, rules.Count: count, rules.Element: each,
		rules.Root: 0, rules.Commutative: 1, rules.BuiltIn: 1, rules.Regular: rules.Bool(!c.differ),
	} {
		p.Set(q, v)
	}
	return p
}

// tables decides for each collective, from 2 ranks on.
func (l Layout) tables(b *rules.Base, library string, compositions bool) (all []table, notes []Note) {
	g := l.grid(b, library)
	g.compositions = compositions
	if line, does := b.DecidesParts(); does {
		g.note(line, "rules for parts of plans have no counterpart: left out")
	}
	for i := range collectives {
		c := &collectives[i]
		if !b.Decides(c.coll) || compositions && flatCompositions[c.name] == "" {
			continue
		}
		if library == MPICH && c.size != "0" {
			own := *c
			own.size = mpichSize(b, c)
			c = &own
		}
		if sections := g.collective(c); len(sections) > 0 {
			all = append(all, table{c, sections})
		}
	}
	return all, g.notes
}

// mpichAverage are MPICH's collectives with the size of a rank's part. Others have that of all parts,
// and scans have none: MPICH 4.0.2 ends a program if its file asks.
var mpichAverage = []string{"bcast", "reduce", "allreduce", "alltoall"}

// mpichSize returns the size in a file of MPICH, of a rank's part or of all. If both are possible it is
// the one in the rules.
func mpichSize(b *rules.Base, c *collective) string {
	if c.coll.Scans() {
		return "0"
	}
	if slices.Contains(mpichAverage, c.name) {
		for _, use := range b.Uses(c.coll) {
			if use.Param == rules.Bytes || use.Param == rules.Longest {
				return "bytes"
			}
		}
	}
	return "total"
}

// assume notes parameters of the rules that the file lacks.
func (g *grid) assume(c *collective) {
	per := max(g.layout.PerNode, 1)
	for _, use := range g.base.Uses(c.coll) {
		said := "as elsewhere"
		switch use.Param {
		case rules.Ranks, rules.Regular:
			continue
		case rules.Bytes, rules.Total, rules.Longest:
			if c.size != "0" || !c.coll.Scans() {
				continue
			}
			said = "as 0"
		case rules.Element:
			if c.size == perElement {
				continue
			}
			fallthrough
		case rules.Count:
			said = fmt.Sprintf("as elements of %d bytes make it", element)
		case rules.Nodes, rules.PerNode, rules.Balanced, rules.Blocks:
			said = fmt.Sprintf("as %s a node make it", plural(per, "rank"))
		default:
			switch v := g.layout.params(c, 2, 0).Get(use.Param); v {
			case rules.Unknown:
				said = "as not known"
			default:
				said = "as " + strconv.FormatInt(v, 10)
			}
		}
		g.note(use.Line, "%s: the file can't ask for %v; taken %s", c.name, use.Param, said)
	}
}

// grid finds the numbers of ranks and the sizes at which decisions change.
type grid struct {
	layout       Layout
	base         *rules.Base
	bounds       []int64 // numbers in the rules for the collective at work
	library      string
	notes        []Note
	noted        map[string]bool
	known        map[matched]step
	compositions bool   // the file is MPICH's, of compositions
	han          string // the version of Open MPI, of a file for HAN; empty: it is another file
}

// grid returns one without decisions.
func (l Layout) grid(b *rules.Base, library string) *grid {
	l.Most = cmp.Or(l.Most, 4096)
	return &grid{layout: l, base: b, library: library, noted: map[string]bool{}, known: map[matched]step{}}
}

// mostSections bounds the sections of a collective.
const mostSections = 64

// collective returns the sections of a collective; none if all of them leave it to the library.
func (g *grid) collective(c *collective) (all []section) {
	g.bounds = g.base.Bounds(c.coll)
	g.assume(c)
	var candidates []int64
	for n := int64(2); n <= g.layout.Most; n *= 2 {
		candidates = append(candidates, n, n+1)
	}
	for n := int64(2); n <= 40; n++ {
		candidates = append(candidates, n)
	}
	per := max(g.layout.PerNode, 1)
	for _, n := range g.bounds {
		candidates = append(candidates, n, n+1, n*per, n*per+1, (n-1)*per+1, n/per, n/per+1)
	}
	candidates = numbersBetween(candidates, 2, g.layout.Most)
	at := func(ranks int64) section { return section{ranks: ranks, steps: g.steps(c, ranks)} }
	all = []section{at(candidates[0])}
	for _, n := range candidates[1:] {
		if s := at(n); !c.same(all[len(all)-1].steps, s.steps, n) {
			all = append(all, s)
		}
	}
	if len(all) > mostSections { // thresholds that move with the number of ranks
		g.note(0, "%s: what is decided changes with nearly each number of ranks; the file has powers of two only, each up to the next one", c.name)
		all = slices.DeleteFunc(all, func(s section) bool { return s.ranks&(s.ranks-1) != 0 })
	}
	if !slices.ContainsFunc(all, section.decides) {
		return nil
	}
	return all
}

// decides reports whether a section has an algorithm.
func (s section) decides() bool {
	return slices.ContainsFunc(s.steps, func(one step) bool { return one.word != "0" })
}

// numbersBetween sorts numbers and keeps those between two.
func numbersBetween(all []int64, least, most int64) []int64 {
	all = slices.DeleteFunc(all, func(n int64) bool { return n < least || n > most })
	slices.Sort(all)
	return slices.Compact(all)
}

// same reports whether the steps for fewer ranks are right for so many.
func (c *collective) same(before, now []step, ranks int64) bool {
	return slices.EqualFunc(before, now, func(x, y step) bool {
		bytes := x.bytes == y.bytes
		if c.size == perElement { // only multiples occur
			bytes = (x.bytes+ranks-1)/ranks == (y.bytes+ranks-1)/ranks
		}
		return bytes && x.settings == y.settings && (x.word == y.word || c.means(x.word, ranks) == c.means(y.word, ranks))
	})
}

// means returns the plan for a library's word and so many ranks.
func (c *collective) means(word string, ranks int64) string {
	library := OpenMPI
	if strings.HasPrefix(word, "MPI") {
		library = MPICH
	}
	r, err := Find(library, c.name, word)
	if err != nil || word == "0" {
		return word
	}
	return cmp.Or(r.For(ranks), "0")
}

// steps returns the decisions for so many ranks, by size.
func (g *grid) steps(c *collective, ranks int64) (all []step) {
	if c.size == "0" {
		return []step{g.decide(c, ranks, 0)}
	}
	candidates := []int64{0, 1}
	for n := int64(2); n <= 1<<30; n *= 2 {
		candidates = append(candidates, n, n+1)
	}
	for _, n := range g.bounds {
		candidates = append(candidates, n-1, n, n+1)
	}
	candidates = numbersBetween(candidates, 0, 1<<31-1)
	all = []step{g.decide(c, ranks, 0)}
	for i, n := range candidates[1:] {
		next := g.decide(c, ranks, n)
		for last := all[len(all)-1]; !agree(last, next); last = all[len(all)-1] {
			low, high := max(candidates[i], last.bytes), n // the change is above low, up to high
			for low+1 < high {
				if middle := low + (high-low)/2; agree(last, g.decide(c, ranks, middle)) {
					low = middle
				} else {
					high = middle
				}
			}
			change := g.decide(c, ranks, high)
			change.bytes = high
			all = append(all, change)
		}
	}
	return all
}

// agree reports whether two steps are equal but for the size.
func agree(a, b step) bool { return a.word == b.word && a.settings == b.settings }

// allRanks returns the number of all ranks for a file's number of ranks. A file may count the leaders
// of nodes, see [WriteMPICH].
func (g *grid) allRanks(c *collective, ranks int64) int64 {
	if g.library == MPICH && !g.compositions && flatCompositions[c.name] != "" {
		return ranks * max(g.layout.PerNode, 1)
	}
	return ranks
}

// decide returns the decision of the rules in the library's words.
func (g *grid) decide(c *collective, ranks, size int64) step {
	own := step{word: "0", bytes: size}
	p := g.layout.params(c, g.allRanks(c, ranks), size)
	l, _ := g.base.Decide(p)
	if l == nil || l.Default {
		return own
	}
	key := matched{l, c}
	s, before := g.known[key]
	if !before || l.Computes() {
		s = g.match(c, l, g.base.Plan(l, p))
		g.known[key] = s
	}
	s.bytes = size
	return s
}

// matched is a leaf for a collective.
type matched struct {
	leaf *rules.Leaf
	of   *collective
}

// match returns the library's words for a plan of a leaf.
func (g *grid) match(c *collective, l *rules.Leaf, plan tasks.Plan) step {
	if g.han != "" {
		return g.matchHAN(c, l, plan)
	}
	if g.compositions && plan.Shape.IsFlat() {
		return step{word: flatCompositions[c.name]}
	}
	r, s, known := match(g.library, c.name, plan)
	known = known && strings.Contains(r.Name, "_composition_") == g.compositions
	if !known {
		g.note(l.Line, "%s: %s has no algorithm for %s: left to its own decision", c.name, g.library, l.Text)
		return step{word: "0"}
	}
	word := r.Name
	if r.Number > 0 {
		word = strconv.Itoa(r.Number)
	}
	return step{word: word, settings: s}
}

// flatCompositions are MPICH's names for all ranks as one group.
var flatCompositions = map[string]string{
	"bcast": "MPIDI_Bcast_intra_composition_gamma", "reduce": "MPIDI_Reduce_intra_composition_gamma",
	"allreduce": "MPIDI_Allreduce_intra_composition_beta",
}

// matchHAN returns the component for a plan: tuned for plans without hierarchy.
func (g *grid) matchHAN(c *collective, l *rules.Leaf, plan tasks.Plan) step {
	word := "han"
	switch {
	case plan.Shape.IsFlat():
		word = "tuned"
		g.note(l.Line, "%s: %s: the file has tuned, which decides by itself", c.name, l.Text)
		return step{word: word}
	case plan.Shape == tasks.HanLockstep || plan.Shape == tasks.Han && plan.Segment > 0 && plan.Segment != tasks.Whole:
		word += " @intra"
	case plan.Shape == tasks.Han || plan.Shape == tasks.AR && c.coll == tasks.Allreduce:
		word += " @simple"
	default:
		g.note(l.Line, "%s: HAN has nothing like %s: left to tuned", c.name, l.Text)
		return step{word: "0"}
	}
	if g.han == For4 {
		word = "han"
	}
	if len(plan.Keys()) > 0 || plan.Segment > 0 && plan.Segment != tasks.Whole {
		g.note(l.Line, "%s: %s: segments and choices of levels are parameters of HAN, not of its file", c.name, l.Text)
	}
	return step{word: word}
}

// note adds a note once.
func (g *grid) note(line int, format string, args ...any) {
	n := Note{line, fmt.Sprintf(format, args...)}
	if !g.noted[n.String()] {
		g.noted[n.String()] = true
		g.notes = append(g.notes, n)
	}
}
