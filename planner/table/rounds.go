package table

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// roundly are the algorithms that pass a message on in ⌈log2 n⌉ rounds among n ranks, and
// passing are the suffixes of the kinds of task in which each of these rounds has all of it.
var (
	roundly = []string{submodules.Binomial, submodules.Blocks, submodules.InOrderBinomial, submodules.RecDoubling}
	passing = []string{"b", "r", "ar"}
)

// byRounds reports whether the time of a plan follows the rounds of a level rather than its
// ranks. A flat plan has one group on all levels.
func byRounds(p tasks.Plan, level string) bool {
	found := false
	for _, key := range p.Keys() {
		if !p.Shape.IsFlat() && !strings.HasPrefix(key, level) {
			continue
		}
		c, _ := p.Choice(key)
		if !slices.Contains(passing, key[1:]) || !slices.Contains(roundly, c.Algorithm) {
			return false
		}
		found = true
	}
	return found
}

// rounds returns ⌈log2 n⌉; 1 <= n.
func rounds(n int) int { return bits.Len(uint(n - 1)) }
