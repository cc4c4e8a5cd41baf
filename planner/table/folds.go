package table

import (
	"slices"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// folding are the algorithms that work on a power of two of ranks. In other groups the
// ranks beyond it hand over to a neighbour first, and wait for the result: that takes as
// long as several rounds.
var folding = []string{submodules.Halving, submodules.Rabenseifner, submodules.RecDoubling}

// foldsFirst reports whether a plan's ranks fold on a machine of the wanted sizes, but on
// none of those where the plan was measured. Then a line between these says nothing.
func foldsFirst(p tasks.Plan, measured []machine, want Sizes) bool {
	for _, key := range p.Keys() {
		if c, _ := p.Choice(key); !slices.Contains(folding, c.Algorithm) {
			continue
		}
		group := func(s Sizes) int {
			if !p.Shape.IsFlat() {
				return s[key[:1]]
			}
			n := 1
			for _, k := range sortedKeys(s) {
				n *= s[k]
			}
			return n
		}
		if !isPower(group(want)) && !slices.ContainsFunc(measured, func(m machine) bool { return !isPower(group(m.sizes)) }) {
			return true
		}
	}
	return false
}

// isPower reports whether n is a power of two; 1 <= n.
func isPower(n int) bool { return n&(n-1) == 0 }
