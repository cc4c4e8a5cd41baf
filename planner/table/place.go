package table

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Place is the conditions of a measured time, beside the collective, the sizes of levels, the bytes and
// the plan.
type Place struct {
	Layout string `json:"layout"`          // how ranks are numbered over nodes: [LayoutOf]
	Ranks  string `json:"ranks"`           // [Processes] or [Goroutines]
	Type   string `json:"type,omitempty"`  // element type of a reduction; empty: nothing is reduced
	Op     string `json:"op,omitempty"`    // class of its operation: [BuiltIn] or [User]; empty as Type
	Links  string `json:"links,omitempty"` // between nodes, with their rate if it is known; empty: unknown
	// Uneven is the largest block by the mean one, of blocks with different sizes:
	// [tasks.Request.Uneven]. 0: blocks are about equal, or there are none.
	Uneven int `json:"uneven,omitempty"`
}

// Kinds of ranks.
const (
	Processes  = "processes"
	Goroutines = "goroutines"
)

// The classes of operations. A caller's own takes a call for each element.
const (
	BuiltIn = "built-in"
	User    = "user"
)

// SharedMemory is [Place.Links] of goroutine ranks without emulated links.
const SharedMemory = "no link is emulated: all ranks share memory"

// PlaceOf returns the place of a request on a topology. links names the links between nodes;
// empty: unknown.
func PlaceOf(r tasks.Request, t *levels.Topology, links string) Place {
	p := Place{Layout: LayoutOf(t), Ranks: Processes, Links: links, Uneven: r.Uneven()}
	if t.IsOneProcess() {
		p.Ranks = Goroutines
	}
	if r.Reduces() {
		p.Type, p.Op = r.Type.String(), BuiltIn
		if r.Op.ID() == tasks.OpUser {
			p.Op = User
		}
	}
	return p
}

// The layouts of machines of any size.
const (
	Block = "block" // groups of equal size, each a run of ranks: 4x2
	Dealt = "dealt" // nodes of equal size, the ranks dealt round robin: 4x2/rr
)

// LayoutOf returns [Block] or [Dealt], or else a word for exactly this layout with its unequal
// groups or its order.
func LayoutOf(t *levels.Topology) string {
	h := t.Hierarchy(0)
	equal := hasEqualGroups(h)
	switch {
	case equal && h.Ordered():
		return Block
	case equal && isDealt(t):
		return Dealt
	}
	word := "mixed"
	if !equal {
		word = "unequal"
	}
	digest := fnv.New32a()
	for r := range levels.Rank(t.Size()) {
		for k := range t.Depth() {
			fmt.Fprintf(digest, "%d,", t.Domain(r, k))
		}
	}
	return fmt.Sprintf("%s-%08x", word, digest.Sum32())
}

func hasEqualGroups(h *levels.Hierarchy) bool {
	for k := range h.Depth() {
		for _, g := range h.Groups(k) {
			if len(g.Ranks) != h.Widest(k) {
				return false
			}
		}
	}
	return true
}

// isDealt reports whether neighbours in rank are on neighbouring nodes, without levels
// inside these.
func isDealt(t *levels.Topology) bool {
	if t.Depth() > 2 {
		return false
	}
	for r := range levels.Rank(t.Size()) {
		if t.Node(r) != int32(int(r)%t.Nodes()) {
			return false
		}
	}
	return true
}

// blocks says how far blocks differ.
func (p Place) blocks() string {
	if p.Uneven == 0 {
		return "equal blocks"
	}
	return fmt.Sprintf("the largest block %d times the mean", p.Uneven)
}

// String lists the known parts: block, goroutines, f32, built-in.
func (p Place) String() string {
	words := []string{p.Layout, p.Ranks}
	for _, w := range []string{p.Type, p.Op, p.Links} {
		if w != "" {
			words = append(words, w)
		}
	}
	if p.Uneven > 0 {
		words = append(words, p.blocks())
	}
	return strings.Join(words, ", ")
}

// Compare orders places by their words.
func (p Place) Compare(o Place) int {
	return cmp.Or(cmp.Compare(p.Layout, o.Layout), cmp.Compare(p.Ranks, o.Ranks), cmp.Compare(p.Type, o.Type),
		cmp.Compare(p.Op, o.Op), cmp.Compare(p.Links, o.Links), cmp.Compare(p.Uneven, o.Uneven))
}

// differences lists the parts of p that differ from here. Links count where both are known.
func (p Place) differences(here Place) (all []string) {
	for _, w := range [][2]string{{p.Layout, here.Layout}, {p.Ranks, here.Ranks}, {p.Type, here.Type}, {p.Op, here.Op}, {p.blocks(), here.blocks()}} {
		if w[0] != w[1] {
			all = append(all, fmt.Sprintf("%s, here %s", w[0], w[1]))
		}
	}
	if p.Links != here.Links && p.Links != "" && here.Links != "" {
		all = append(all, fmt.Sprintf("%s, here %s", p.Links, here.Links))
	}
	return all
}

// check returns the fault of a place from a file; empty: none.
func (p Place) check(coll tasks.Collective) string {
	known := p.Layout == Block || p.Layout == Dealt || strings.HasPrefix(p.Layout, "mixed-") || strings.HasPrefix(p.Layout, "unequal-")
	reduces := tasks.Request{Coll: coll}.Reduces()
	switch {
	case !known:
		return fmt.Sprintf("layout %q; known are %s, %s, and mixed- or unequal- with a digest", p.Layout, Block, Dealt)
	case p.Ranks != Processes && p.Ranks != Goroutines:
		return fmt.Sprintf("ranks %q; known are %s, %s", p.Ranks, Processes, Goroutines)
	case reduces && p.Op != BuiltIn && p.Op != User:
		return fmt.Sprintf("op %q of %v; known are %s, %s", p.Op, coll, BuiltIn, User)
	case reduces && p.Type == "":
		return fmt.Sprintf("no type of %v, which reduces", coll)
	case p.Uneven != 0 && !coll.HasCounts() && !coll.HasMatrix():
		return fmt.Sprintf("uneven %d of %v, which has no blocks that differ", p.Uneven, coll)
	case p.Uneven != 0 && (p.Uneven < 2 || p.Uneven&(p.Uneven-1) != 0):
		return fmt.Sprintf("uneven %d; it is a power of two from 2 on, or 0", p.Uneven)
	case !reduces && (p.Type != "" || p.Op != ""):
		return fmt.Sprintf("type %q, op %q of %v, which reduces nothing", p.Type, p.Op, coll)
	}
	return ""
}
