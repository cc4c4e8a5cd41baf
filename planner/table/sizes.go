package table

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/levels"
)

// Sizes are numbers of ranks by the symbol of a level.
type Sizes map[string]int

// SizesOf are the sizes of a topology's levels.
func SizesOf(t *levels.Topology) Sizes {
	h := t.Hierarchy(0)
	sizes := make(Sizes, h.Depth())
	for k := range h.Depth() {
		sizes[string(rune(h.Level(k).Symbol))] = h.Widest(k)
	}
	return sizes
}

// Machine returns how many nodes there are, and how many ranks on each.
func (s Sizes) Machine() (nodes, perNode int) {
	nodes, perNode = 1, 1
	for symbol, n := range s {
		if symbol == "s" || symbol == "m" { // inside nodes
			perNode *= n
		} else {
			nodes *= n
		}
	}
	return nodes, perNode
}

// String is i=4,s=2: the keys sorted.
func (s Sizes) String() string {
	var b bytes.Buffer
	for i, k := range sortedKeys(s) {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s=%d", k, s[k])
	}
	return b.String()
}

// ParseSizes reads what String has written.
func ParseSizes(text string) (Sizes, error) {
	s := Sizes{}
	for part := range strings.SplitSeq(text, ",") {
		symbol, number, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || len(symbol) != 1 || s[symbol] != 0 {
			return nil, fmt.Errorf("sizes %q; they are written as i=4,s=2", text)
		}
		s[symbol] = n
	}
	return s, nil
}

// Times returns by what factor machines differ most in a level, from 1 on. near: a table of one says something of the other.
func (s Sizes) Times(o Sizes) (times float64, near bool) {
	if !slices.Equal(sortedKeys(s), sortedKeys(o)) {
		return 0, false
	}
	times = ratio(s, o)
	return times, times <= farLevel
}

// Compare orders machines: by their levels' names, then by ranks, the smallest first.
func (s Sizes) Compare(o Sizes) int {
	keys := sortedKeys(s)
	if c := slices.Compare(keys, sortedKeys(o)); c != 0 {
		return c
	}
	for _, k := range keys {
		if c := cmp.Compare(s[k], o[k]); c != 0 {
			return c
		}
	}
	return 0
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
