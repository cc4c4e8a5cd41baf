package tasks

import (
	"fmt"
	"slices"
	"strings"
)

// Row returns the collective's row; the zero row if it is none.
func (c Collective) Row() Row { return *c.row() }

// row is [Collective.Row], to be read only.
func (c Collective) row() *Row {
	if int(c) >= len(rows) {
		c = 0
	}
	return &rows[c]
}

// Reduces reports whether the collective combines data.
func (c Collective) Reduces() bool { return c.row().From.combines() }

// Scans reports whether each rank's result is made of the inputs of the ranks before it, or up
// to it. Such an operation keeps the order of ranks under any leader.
func (c Collective) Scans() bool {
	return c.row().From == PrefixThrough || c.row().From == PrefixBelow
}

// IsRooted reports whether the collective has a root, with another role than the other ranks.
func (c Collective) IsRooted() bool {
	return c.row().Input.Holders == TheRoot || c.row().Output.Holders == TheRoot
}

// HasData reports whether the collective moves elements of a type.
func (c Collective) HasData() bool { return c.row().Output.Content != Nothing }

// HasBlocks reports whether a buffer holds a block of each rank.
func (c Collective) HasBlocks() bool { return c.row().takesBlocks() || c.row().givesBlocks() }

// Exchanges reports whether each rank has a block of its own for each of its receivers: blocks
// have two ends.
func (c Collective) Exchanges() bool { return c.row().takesBlocks() && c.row().givesBlocks() }

// HasCounts reports whether blocks may differ, see [Counts].
func (c Collective) HasCounts() bool { return c.row().Counts }

// HasMatrix reports whether blocks may differ for each pair of ranks, see [Matrix].
func (c Collective) HasMatrix() bool { return c.row().Matrix }

// HasInPlace reports whether a rank may work in place, or with two buffers.
func (c Collective) HasInPlace() bool {
	return c.row().Placement == InRecv || c.row().Placement == InSend
}

// Scatters reports whether each rank gets a part of an input.
func (c Collective) Scatters() bool { return c.row().takesBlocks() }

// BusFactor returns how often the busiest link carries the message, as NCCL's tests
// define it.
func (c Collective) BusFactor(ranks int) float64 {
	if trips := c.row().BusTrips; trips > 0 {
		return float64(trips) * float64(ranks-1) / float64(ranks)
	}
	return 1
}

// isRequestable reports whether [Expand] can expand requests for the collective.
func (c Collective) isRequestable() bool { return c.row().Recipe.Top != nil }

// Requestable lists the collectives that a name, a count and a root ask for: those of [Expand]
// without exchanges with peers. For these each rank has a list of its own.
func Requestable() []Collective {
	return CollectivesWith(func(c Collective) bool { return c.isRequestable() && !c.row().Straight })
}

// CollectivesWith lists the collectives that has reports true for.
func CollectivesWith(has func(Collective) bool) []Collective {
	return slices.DeleteFunc(Collectives(), func(c Collective) bool { return !has(c) })
}

// Collectives lists all of them, even the mere tasks.
func Collectives() []Collective {
	all := make([]Collective, 0, len(rows)-1)
	for c := range len(rows) - 1 {
		all = append(all, Collective(c+1))
	}
	return all
}

// String is the collective's lower-case name.
func (c Collective) String() string {
	if name := c.row().Name; name != "" {
		return name
	}
	return fmt.Sprintf("Collective(%d)", uint8(c))
}

// ParseCollective finds a requestable collective by its name.
func ParseCollective(s string) (Collective, error) {
	names := make([]string, 0, len(rows))
	for _, c := range Requestable() {
		if c.String() == s {
			return c, nil
		}
		names = append(names, c.String())
	}
	return 0, fmt.Errorf("unknown collective %q; known are %s", s, strings.Join(names, ", "))
}

// ShapesOf lists a collective's shapes.
func ShapesOf(c Collective) []Shape {
	return slices.DeleteFunc(Shapes(), func(s Shape) bool { return !s.Fits(c) })
}

// shapesText lists them for an error.
func shapesText(c Collective) string {
	var names []string
	for _, s := range ShapesOf(c) {
		names = append(names, s.String())
	}
	return strings.Join(names, ", ")
}

// Fits reports whether a collective has the shape.
func (s Shape) Fits(c Collective) bool {
	_, special := c.row().Shapes[s]
	return special || s > 0 && s < maxShape && shapes[s].common && (s.IsFlat() || !c.row().Straight)
}
