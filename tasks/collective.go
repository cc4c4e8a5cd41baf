package tasks

import (
	"fmt"
	"slices"
	"strings"
)

// Collective names an operation: of a whole communicator in a [Request], of
// one group on one segment in a [Task]. The zero value is invalid.
type Collective uint8

// The collectives.
const (
	_ Collective = iota
	Bcast
	Reduce
	Allreduce
	Allgather
	Gather
	Scatter
	ReduceScatter
	Alltoall
	Barrier
	Scan
	Exscan
	Prefix // a task only: what comes before a group goes before what its ranks have
	Neighbors
)

// Row returns what tells the collective from the others; the zero row if it is none.
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

// Scans reports whether each rank gets what the ranks before it, or up to it, put in.
// Such an operation keeps the order of ranks whichever of them leads.
func (c Collective) Scans() bool {
	return c.row().From == PrefixThrough || c.row().From == PrefixBelow
}

// IsRooted reports whether the collective has a root, whose role differs from that of
// the other ranks.
func (c Collective) IsRooted() bool {
	return c.row().Input.Holders == TheRoot || c.row().Output.Holders == TheRoot
}

// HasData reports whether the collective moves elements of a type.
func (c Collective) HasData() bool { return c.row().Output.Content != Nothing }

// HasBlocks reports whether a buffer holds a block of each rank.
func (c Collective) HasBlocks() bool { return c.row().takesBlocks() || c.row().givesBlocks() }

// Exchanges reports whether each rank has a block of its own for every rank that it gives
// something: blocks have two ends.
func (c Collective) Exchanges() bool { return c.row().takesBlocks() && c.row().givesBlocks() }

// HasCounts reports whether blocks may differ, see [Counts].
func (c Collective) HasCounts() bool { return c.row().Counts }

// HasMatrix reports whether blocks may differ for each pair of ranks, see [Matrix].
func (c Collective) HasMatrix() bool { return c.row().Matrix }

// HasInPlace reports whether a rank may work in place, or with two buffers.
func (c Collective) HasInPlace() bool {
	return c.row().Placement == InRecv || c.row().Placement == InSend
}

// Scatters reports whether each rank gets a part of what goes in.
func (c Collective) Scatters() bool { return c.row().takesBlocks() }

// Gathers reports whether ranks get the parts that others put in.
func (c Collective) Gathers() bool { return c.row().givesBlocks() }

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

// Requestable lists the collectives that a name, a count and a root ask for: those of
// [Expand] without exchanges with peers, for which each rank has a list of its own.
func Requestable() []Collective {
	return CollectivesWith(func(c Collective) bool { return c.isRequestable() && !c.row().Straight })
}

// CollectivesWith lists the collectives that a predicate holds for.
func CollectivesWith(has func(Collective) bool) []Collective {
	return slices.DeleteFunc(Collectives(), func(c Collective) bool { return !has(c) })
}

// Collectives lists all of them, those that are only tasks too.
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

// Kind is what tasks of one level and one operation have in common: the ib of
// ib#3.
type Kind struct {
	Symbol byte // the level's
	Op     Collective
}

// String is the paper's name of the kind: sr, ir, ib, sb.
func (k Kind) String() string {
	if k.Op == 0 || int(k.Op) >= len(rows) {
		return string(k.Symbol) + "?"
	}
	return string(k.Symbol) + k.Op.row().Suffix
}

// parseKind is the inverse of [Kind.String].
func parseKind(s string) (Kind, bool) {
	for c := Collective(1); int(c) < len(rows); c++ {
		if suffix := c.row().Suffix; suffix != "" && len(s) == 1+len(suffix) && isLetter(s[0]) && s[1:] == suffix {
			return Kind{s[0], c}, true
		}
	}
	return Kind{}, false
}
