// Package levels places ranks: it has the tiers of a machine, and for a given root
// the groups and leaders on every tier.
//
// It never starts a goroutine, reads a clock or file, or looks at its own machine:
// equal input gives equal output.
//
//	t, err := levels.Parse("4x2")        // 4 nodes of 2 ranks
//	h := t.Hierarchy(0)                  // groups and leaders for root 0
//	for k := range h.Depth() {           // from the inside out
//		if g := h.Group(me, k); g != nil {
//			fmt.Println(h.Level(k).Name, g.Ranks, "led by", g.Lead())
//		}
//	}
package levels

import (
	"fmt"
	"strings"

	"github.com/tierflow/tierflow/levels/strictjson"
)

// Limits of a topology.
const (
	MaxRanks = 1 << 20
	MaxDepth = 8
)

// Rank numbers one participant, from 0 to [Topology.Size]-1.
type Rank int32

// Level is one tier of the machine.
type Level struct {
	Name   string // scope that ranks share at this level: "node"
	Symbol byte   // one lower-case letter, distinct in a topology: 's'
}

// String is symbol/name: s/node.
func (l Level) String() string { return string(rune(l.Symbol)) + "/" + l.Name }

// Standard returns the usual levels of a machine with the given depth, from the
// inside out: s; s i; m s i; m s i w. Deeper machines have no usual names: nil.
func Standard(depth int) []Level {
	all := []Level{{"numa", 'm'}, {"node", 's'}, {"network", 'i'}, {"site", 'w'}}
	switch depth {
	case 1, 2:
		return all[1 : 1+depth]
	case 3, 4:
		return all[:depth]
	}
	return nil
}

// checkLevels reports the faults of levels; at returns the position of level k.
func checkLevels(c *strictjson.Complaints, levels []Level, at func(k int) string) {
	if n := len(levels); n < 1 || n > MaxDepth {
		c.Add("%s%d levels; allowed are 1 to %d", at(-1), n, MaxDepth)
	}
	for k, l := range levels {
		if err := checkName(l.Name); err != nil {
			c.Add("%slevel %d: %w", at(k), k, err)
		}
		if l.Symbol < 'a' || l.Symbol > 'z' {
			c.Add("%slevel %d: symbol %q; allowed is one letter a to z", at(k), k, string(rune(l.Symbol)))
		}
		for j, m := range levels[:k] {
			if l.Symbol == m.Symbol {
				c.Add("%slevel %d: symbol %q is level %d's already", at(k), k, string(rune(l.Symbol)), j)
			}
			if l.Name == m.Name {
				c.Add("%slevel %d: name %q is level %d's already", at(k), k, strictjson.Clip(l.Name), j)
			}
		}
	}
}

// checkName allows the characters of host names and addresses. So specs and printed trees stay
// unambiguous.
func checkName(s string) error {
	for _, r := range s {
		if !strings.ContainsRune("._-:", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return fmt.Errorf("name %q has %q; allowed are ASCII letters, digits and any of . _ : -, no others", strictjson.Clip(s), r)
		}
	}
	if s == "" || len(s) > 255 {
		return fmt.Errorf("name %q has %d characters; allowed are 1 to 255", strictjson.Clip(s), len(s))
	}
	return nil
}
