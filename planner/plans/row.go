package plans

import (
	"fmt"
	"strings"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// question is a request on a topology, with its rivals so far.
type question struct {
	asked   *builtin.Asked
	request tasks.Request
	on      *levels.Topology
	insides []tasks.Plan // choices for the inside of nodes; an empty one if nodes have one rank
	top     string       // symbol of the outermost level
	nodes   int
	bytes   int64 // of a rank's buffer, or of all blocks together
	blocks  int64 // number of blocks that make up bytes; 1: it has none
	all     []tasks.Plan
}

// Windows of rivals, in segments: as the rule has them.
const (
	linkWindow = 8
	ringWindow = 3
)

// stanza is rows with the same segments. Each segment smaller than the message goes through all rows.
type stanza struct {
	segments []int64
	rows     []row
}

// row is plans of one shape, one for each of its choices between nodes.
type row struct {
	shape   tasks.Shape
	window  int
	choices []tasks.Plan         // for a level i; nil: [entry.schedules]
	when    []condition          // all of them must hold
	ring    func(c *entry) int64 // length of the plan's segment, bytes; nil: the stanza's
}

// condition reports whether a row has plans for a segment.
type condition func(c *entry) bool

// entry is a row with a segment, for a question.
type entry struct {
	*question
	shape   tasks.Shape
	ranks   int // in the group of the algorithm between nodes: all of a flat shape, else one of each node
	segment int64
}

// of makes a row. Its choices are words such as adapt/binomial//4, or is=nbc/binomial,iag=adapt/ring for
// two kinds of tasks.
func of(shape tasks.Shape, window int, words string, when ...condition) row {
	r := row{shape: shape, window: window, when: when}
	for _, word := range strings.Fields(words) {
		if !strings.Contains(word, "=") {
			word = "i=" + word
		}
		p, err := tasks.ParsePlan(word)
		if err != nil {
			panic(fmt.Sprintf("plans: competitor %q: %v", word, err))
		}
		r.choices = append(r.choices, p)
	}
	return r
}

// ofRing makes a row of a ring. Its plans cut the message so that each part of the ring has a segment.
func ofRing(shape tasks.Shape, ring func(c *entry) int64, when condition) row {
	r := of(shape, ringWindow, "adapt/ring", when)
	r.ring = ring
	return r
}

// ringOfNodes and ringOfRanks return the length of all parts of a ring, bytes.
func ringOfNodes(c *entry) int64 { return c.segment * int64(c.nodes) }
func ringOfRanks(c *entry) int64 { return c.segment * int64(c.on.Size()) }

// blockSizes are inner segments of round-optimal schedules, bytes.
var blockSizes = []int64{2 << 10, 5 << 10, 10 << 10, builtin.Packed(16 << 10), builtin.Packed(32 << 10), builtin.Packed(64 << 10), builtin.Packed(128 << 10)}

// schedules lists round-optimal schedules for a segment, with the segment as one block first.
func (c *entry) schedules() []tasks.Plan {
	one := tasks.Choice{Submodule: submodules.Circulant, Algorithm: submodules.Blocks}
	all := []tasks.Plan{tasks.Plan{}.Set("i", one)}
	for _, one.Inner = range blockSizes {
		if one.Inner < min(c.segment, c.bytes) {
			all = append(all, tasks.Plan{}.Set("i", one))
		}
	}
	return all
}
