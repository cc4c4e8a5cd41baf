package table

import (
	"slices"
	"strings"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// foldsFirst reports whether a plan's ranks fold on a machine of the wanted sizes, but on
// none of those where the plan was measured. Folding takes as long as several rounds, so a
// line between these says nothing then.
func foldsFirst(p tasks.Plan, measured []machine, want Sizes, reg submodules.Registry) bool {
	for _, key := range p.Keys() {
		c, _ := p.Choice(key)
		if a, known := reg.Algorithm(c); !known || !a.PrefersPowers() {
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

// passing are the operations that pass a whole message on, by the words for them in the keys of
// plans.
var passing = map[string]tasks.Collective{"b": tasks.Bcast, "r": tasks.Reduce, "ar": tasks.Allreduce}

// byRounds reports whether the time of a plan follows the rounds of a level, a logarithm of its
// ranks, rather than the ranks. A flat plan has one group on all levels.
func byRounds(p tasks.Plan, level string, reg submodules.Registry) bool {
	found := false
	for _, key := range p.Keys() {
		if !p.Shape.IsFlat() && !strings.HasPrefix(key, level) {
			continue
		}
		op, passes := passing[key[1:]]
		if !passes {
			return false
		}
		c, _ := p.Choice(key)
		a, _ := reg.Algorithm(c)
		if g := a.Traffic[op].Rounds; g != submodules.Doublings && g != submodules.TwiceDoublings {
			return false
		}
		found = true
	}
	return found
}

// rounds returns ⌈log2 n⌉; 1 <= n.
func rounds(n int) int { return submodules.Doublings.Of(n) }
