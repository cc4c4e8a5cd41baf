package levels

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/levels/ranges"
)

// String is the spec that [Parse] reads back to an equal topology if there is one, else levels and domains
// as a tree: "s/node i/network tree: a{0-2,5} b{3-4}". Different topologies have different strings.
func (t *Topology) String() string {
	if text := t.made.text.Load(); text != nil {
		return *text
	}
	text := t.spec()
	t.made.text.Store(&text)
	return text
}

func (t *Topology) spec() string {
	if slices.Equal(t.levels, Standard(t.Depth())) {
		for _, shape := range t.shapes() {
			for _, spec := range []string{shape, shape + "/rr"} {
				if back, err := Parse(spec); err == nil && back.Equal(t) {
					return spec
				}
			}
		}
	}
	return t.tree()
}

// shapes lists specs that may be t's.
func (t *Topology) shapes() []string {
	dims, outer := "", 1
	for k := t.Depth() - 2; k >= 0; k-- {
		dims += strconv.Itoa(t.count[k]/outer) + "x"
		outer = t.count[k]
	}
	shapes := []string{dims + strconv.Itoa(t.Size()/outer)}
	if t.Depth() == 2 {
		var nodes []string
		for d, ranks := range members(t.domain[0], t.count[0]) {
			nodes = append(nodes, fmt.Sprintf("%s:%d", t.name(0, int32(d)), len(ranks)))
		}
		shapes = append(shapes, strings.Join(nodes, ","))
	}
	return shapes
}

func (t *Topology) tree() string {
	var b strings.Builder
	for _, l := range t.levels {
		b.WriteString(l.String() + " ")
	}
	b.WriteString("tree:")
	top := t.Depth() - 1
	open := make([]int32, top) // the domain being written, per level
	for d, ranks := range members(t.domain[0], t.count[0]) {
		outer := top - 1 // outermost level on which a new domain begins
		for d > 0 && t.domain[outer][ranks[0]] == open[outer] {
			outer--
		}
		if d > 0 {
			b.WriteString(strings.Repeat("}", outer+1))
		}
		b.WriteString(" ")
		for k := outer; k >= 0; k-- {
			open[k] = t.domain[k][ranks[0]]
			b.WriteString(t.name(k, open[k]) + "{")
		}
		b.WriteString(ranges.Text(ranks))
	}
	return b.String() + strings.Repeat("}", top)
}
