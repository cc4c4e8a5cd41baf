package learn

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tierflow/tierflow/tasks"
)

// Words says how features name a plan.
type Words uint8

// The zero value is InWords.
const (
	InWords   Words = iota // by its parts: plans share the knowledge about each
	AsNumbers              // by its number alone, as the paper does
)

// Coder makes features of plans: numbers for a forest.
type Coder struct {
	words   Words
	numbers map[string]float64            // of plans
	parts   map[string]map[string]float64 // by column: numbers of its words
	kinds   []string                      // keys of choices of all plans
}

// NewCoder numbers the words of some plans. It codes these, and others of their words.
func NewCoder(plans []tasks.Plan, w Words) *Coder {
	c := &Coder{words: w, numbers: map[string]float64{}, parts: map[string]map[string]float64{}}
	seen := map[string]map[string]bool{}
	note := func(column, word string) {
		if seen[column] == nil {
			seen[column] = map[string]bool{}
		}
		seen[column][word] = true
	}
	kinds := map[string]bool{}
	for _, p := range plans {
		note("", p.String())
		note("shape", p.Shape.String())
		for _, key := range p.Keys() {
			kinds[key] = true
			choice, _ := p.Choice(key)
			note(key, algorithm(choice))
		}
	}
	c.kinds = slices.Sorted(maps.Keys(kinds))
	for column, words := range seen {
		c.parts[column] = map[string]float64{}
		for k, word := range slices.Sorted(maps.Keys(words)) {
			c.parts[column][word] = float64(k + 1)
		}
	}
	c.numbers = c.parts[""]
	return c
}

func algorithm(c tasks.Choice) string { return fmt.Sprintf("%s/%s/%d", c.Submodule, c.Algorithm, c.N) }

// asked is the number of features of the request; the others are the plan's.
const asked = 3

// Features returns a row of them: log₂ of nodes, of ranks a node and of bytes, and the plan.
func (c *Coder) Features(nodes, perNode int, bytes int64, p tasks.Plan) []float64 {
	row := []float64{log2(float64(nodes)), log2(float64(perNode)), log2(float64(bytes))}
	if c.words == AsNumbers {
		return append(row, c.numbers[p.String()])
	}
	row = append(row, c.parts["shape"][p.Shape.String()], log2(float64(min(p.Segment, bytes))), log2(float64(p.Window)))
	for _, key := range c.kinds {
		choice, has := p.Choice(key)
		if !has {
			row = append(row, 0, 0)
			continue
		}
		row = append(row, c.parts[key][algorithm(choice)], log2(float64(choice.Inner)))
	}
	return row
}

// log2 is the logarithm of a number from 1 on, and −1 below.
func log2(x float64) float64 {
	if x < 1 {
		return -1
	}
	return math.Log2(x)
}
