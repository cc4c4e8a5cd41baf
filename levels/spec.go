package levels

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/levels/strictjson"
)

// Parse reads a short description of a machine:
//
//	8            one node of 8 ranks: level s
//	4x2          4 nodes of 2 ranks: levels s and i
//	2x2x4        2 nodes of 2 NUMA domains of 4 ranks: m, s and i
//	2x3x2x4      2 sites of 3 nodes of 2 NUMA domains of 4 ranks: m, s, i and w
//	a:3,b:1,c:2  named nodes of unequal size: s and i
//
// The levels are those of [Standard]. Ranks fill one domain after the other; "/block"
// at the end says so, "/rr" deals them round robin, the outermost domains taking
// turns first and full ones being passed over. The error lists all that is wrong.
func Parse(spec string) (*Topology, error) {
	var c strictjson.Complaints
	shape, order, given := strings.Cut(spec, "/")
	if given && order != "block" && order != "rr" {
		c.Add("order %q; allowed are /block and /rr", strictjson.Clip("/"+order))
	}
	var m machine
	if strings.ContainsAny(shape, ":,") {
		m = parseNodes(&c, shape)
	} else {
		m = parseDims(&c, shape)
	}
	if err := c.Err(); err != nil {
		return nil, fmt.Errorf("topology %q: %w", strictjson.Clip(spec), err)
	}
	return m.topology(order == "rr"), nil
}

// machine is a parsed spec before ranks are placed.
type machine struct {
	dims  []int    // domains inside each domain, outer to inner, down to level 0
	sizes []int    // ranks of each level-0 domain
	names []string // of the level-0 domains, if given
}

func parseDims(c *strictjson.Complaints, shape string) (m machine) {
	total := 1
	words := strings.Split(shape, "x")
	if len(words) > 4 {
		c.Add("%d dimensions; allowed are 1 to 4, deeper machines need a JSON file that names their levels", len(words))
		return m
	}
	for _, word := range words {
		n := 0
		if word == "" || strings.Trim(word, "0123456789") != "" {
			c.Add("dimension %q; allowed are numbers from 1 to %d with x between them, as in 4x2, or nodes as in a:3,b:1", strictjson.Clip(word), MaxRanks)
		} else {
			n = parseCount(c, "dimension", word)
		}
		m.dims = append(m.dims, n)
		total *= max(n, 1)
		if total > MaxRanks {
			c.Add("%d ranks or more; allowed are at most %d", total, MaxRanks)
			return m
		}
	}
	inner := len(m.dims) - 1
	m.sizes = slices.Repeat(m.dims[inner:], total/max(m.dims[inner], 1))
	m.dims = m.dims[:inner]
	return m
}

func parseNodes(c *strictjson.Complaints, shape string) (m machine) {
	seen := map[string]bool{}
	total := 0
	for word := range strings.SplitSeq(shape, ",") {
		i := strings.LastIndexByte(word, ':')
		if i < 0 {
			c.Add("%q; each node is name:ranks", strictjson.Clip(word))
			continue
		}
		name := word[:i]
		if err := checkName(name); err != nil {
			c.Add("node %w", err)
		}
		if seen[name] {
			c.Add("node %q is given twice", strictjson.Clip(name))
		}
		seen[name] = true
		n := parseCount(c, "ranks", word[i+1:])
		total += n
		m.names, m.sizes = append(m.names, name), append(m.sizes, n)
	}
	if total > MaxRanks {
		c.Add("%d ranks; allowed are at most %d", total, MaxRanks)
	}
	m.dims = []int{len(m.sizes)}
	return m
}

// parseCount reads a number from 1 to MaxRanks, or complains and returns 0.
func parseCount(c *strictjson.Complaints, what, word string) int {
	n, err := strconv.ParseUint(word, 10, 32)
	if err != nil || n < 1 || n > MaxRanks {
		c.Add("%s %q; allowed are numbers from 1 to %d", what, strictjson.Clip(word), MaxRanks)
		return 0
	}
	return int(n)
}

// topology places the ranks.
func (m machine) topology(roundRobin bool) *Topology {
	var place []int32 // the level-0 domain of each rank
	if roundRobin {
		place = deal(m.turns(), m.sizes)
	} else {
		for d, n := range m.sizes {
			place = append(place, slices.Repeat([]int32{int32(d)}, n)...)
		}
	}
	ids := make([][]int32, len(m.dims))
	inside := int32(1) // level-0 domains in a level-k domain
	for k := range ids {
		ids[k] = make([]int32, len(place))
		for r, d := range place {
			ids[k][r] = d / inside
		}
		inside *= int32(m.dims[len(m.dims)-1-k])
	}
	var name func(int, int32) string
	if m.names != nil {
		name = func(_ int, d int32) string { return m.names[d] }
	}
	return assemble(Standard(len(m.dims)+1), len(place), ids, name)
}

// turns lists the level-0 domains with the outermost coordinate moving fastest.
func (m machine) turns() []int32 {
	turns := make([]int32, len(m.sizes))
	for i := range turns {
		rest := i
		for _, n := range m.dims {
			turns[i] = turns[i]*int32(n) + int32(rest%n)
			rest /= n
		}
	}
	return turns
}

// deal gives one rank to each domain in turn until all are full.
func deal(turns []int32, sizes []int) (place []int32) {
	for round := 1; len(turns) > 0; round++ {
		place = append(place, turns...)
		turns = slices.DeleteFunc(turns, func(d int32) bool { return sizes[d] == round })
	}
	return place
}
