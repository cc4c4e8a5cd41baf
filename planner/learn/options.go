package learn

import (
	"fmt"
	"slices"
	"strings"
)

// Pick is how the next point is chosen.
type Pick uint8

// The zero value is ByGain.
const (
	ByGain   Pick = iota // by the hoped gain on the best plan of its choice
	BySpread             // by the difference of trees, as the paper does
	AtRandom             // as Hunold and others do (CLUSTER 2020)
)

// Options are how a [Learner] learns. Zero fields have defaults.
type Options struct {
	Pick      Pick
	Words     Words  // of whoever makes features
	Bootstrap bool   // with BySpread: the jackknife after bootstrap in place of that over trees
	CostBlind bool   // times don't count; else the worth of a measurement is divided by its expected time
	NoPrior   bool   // priors are not used
	OddEvery  int    // each so many picks are of a size beside powers of two; 0: 5; below 0: none
	Seed      uint64 // of all drawn numbers
	Trees     int    // 0: 100
}

// optionWords are the words of [ParseOptions].
var optionWords = []struct {
	word string
	set  func(o *Options)
}{
	{"variance", func(o *Options) { o.Pick = BySpread }},
	{"random", func(o *Options) { o.Pick = AtRandom }},
	{"bootstrap", func(o *Options) { o.Bootstrap = true }},
	{"numbers", func(o *Options) { o.Words = AsNumbers }},
	{"no-prior", func(o *Options) { o.NoPrior = true }},
	{"cost-blind", func(o *Options) { o.CostBlind = true }},
}

// ParseOptions reads a list of words with commas, none in any order: variance or random in place
// of hoped gains; bootstrap, with variance; numbers: features name plans
// by these; no-prior; cost-blind.
func ParseOptions(text string) (o Options, err error) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		i := slices.Index(OptionWords(), word)
		if i < 0 {
			return o, fmt.Errorf("unknown word %q; known are %s", word, strings.Join(OptionWords(), ", "))
		}
		optionWords[i].set(&o)
	}
	return o, nil
}

// OptionWords lists the words of [ParseOptions].
func OptionWords() (all []string) {
	for _, w := range optionWords {
		all = append(all, w.word)
	}
	return all
}
