package rules

import (
	"math"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/tasks"
)

// Param is a parameter of conditions.
type Param uint8

// The parameters.
const (
	Ranks Param = iota
	Nodes
	PerNode
	Balanced
	Ordered
	Processes
	Bytes
	Total
	Longest
	Blocks
	Count
	Element
	Root
	Commutative
	BuiltIn
	Regular
	Rate
	Latency
	Cores
	Parts
	Free
	TreeForced
	Asked
	Shape
	Inside
	firstFits                                // of the first shape
	maxParam  = firstFits + Param(maxShapes) // maxParam counts them
)

// maxShapes is how many shapes there are, see [tasks.Shapes].
const maxShapes = tasks.FlatSAG

// Unknown is the value of an unknown parameter. Comparisons with it do not hold.
const Unknown = math.MinInt64

// unit is how a parameter's values are written.
type unit uint8

const (
	plain        unit = iota
	inBytes           // 64KiB
	inBits            // bits a second, 10gbit
	nanosec           // 50us
	truth             // a condition: 0 or 1
	ofShape           // the name of a shape
	ofCollective      // the name of a collective
)

// parameter describes a parameter.
type parameter struct {
	name  string
	unit  unit
	doc   string
	since Part // the first part whose rules may ask for it
}

// parameters describes all of them.
var parameters = withFits([maxParam]parameter{
	Ranks:       {"ranks", plain, "ranks of the communicator", 0},
	Nodes:       {"nodes", plain, "nodes that they are on", 0},
	PerNode:     {"pernode", plain, "ranks of the fullest node", 0},
	Balanced:    {"balanced", truth, "all nodes have equally many ranks", 0},
	Ordered:     {"ordered", truth, "ranks are numbered node by node", 0},
	Processes:   {"processes", truth, "ranks are processes, not goroutines of one", 0},
	Bytes:       {"bytes", inBytes, "a rank's buffer, or its block; where blocks differ the mean, rounded up", 0},
	Total:       {"total", inBytes, "a rank's buffer, or all blocks together", 0},
	Longest:     {"longest", inBytes, "a rank's buffer, or the longest block", 0},
	Blocks:      {"blocks", plain, "blocks that a buffer has; 1 without blocks", 0},
	Count:       {"count", plain, "elements of a rank's buffer, or of the longest block", 0},
	Element:     {"element", inBytes, "size of an element; 0 without data", 0},
	Root:        {"root", plain, "number of the root; 0 without one", 0},
	Commutative: {"commutative", truth, "the operation commutes, or there is none", 0},
	BuiltIn:     {"builtin", truth, "the operation is no function of the program, or there is none", 0},
	Regular:     {"regular", truth, "all blocks are equal, or there are none", 0},
	Rate:        {"rate", inBits, "bits a second of the slowest links between nodes, where they are known", 0},
	Latency:     {"latency", nanosec, "latency of the slowest links between nodes, where it is known", 0},
	Cores:       {"cores", plain, "processors of a node, where they are known", 0},
	Parts:       {"parts", plain, "blocks of the longest size that make up the total, rounded up; 1 without blocks", 0},
	Free:        {"free", truth, "no algorithm and no order is forced", 0},
	TreeForced:  {"treeforced", truth, "order=tree is forced", 0},
	Asked:       {"collective", ofCollective, "what is asked for", 0},
	Shape:       {"shape", ofShape, "of the plan", SegmentsPart},
	Inside:      {"inside", truth, "the tasks are inside nodes", TaskPart},
})

// withFits adds a parameter for each shape: whether it fits.
func withFits(all [maxParam]parameter) [maxParam]parameter {
	for _, s := range tasks.Shapes() {
		all[Fits(s)] = parameter{"fits(" + s.String() + ")", truth, "the collective has this shape, and groups of ranks can have it", 0}
	}
	return all
}

// String returns the parameter's name in rules, such as bytes or fits(lanes).
func (p Param) String() string { return parameters[p].name }

// Parameter is a parameter as people are told of it.
type Parameter struct {
	Name, Doc string
	Truth     bool // it is a condition, not a number
}

// Parameters lists the parameters of conditions.
func Parameters() []Parameter {
	all := make([]Parameter, maxParam)
	for p, row := range parameters {
		all[p] = Parameter{row.name, row.doc, row.unit == truth}
	}
	return all
}

// findParam returns the parameter of a name; size is another word for ranks.
func findParam(name string) (Param, bool) {
	if name == "size" {
		return Ranks, true
	}
	for p := range maxParam {
		if parameters[p].name == name {
			return p, true
		}
	}
	return 0, false
}

// withheld are words that people look for, with the reason for no such parameter.
var withheld = map[string]string{
	"inplace": "each rank says for itself whether it works in place, and all must choose the same plan",
	"rank":    "all ranks must choose the same plan",
}

// Source knows the values of parameters.
type Source interface {
	// Value returns a parameter's value: [Unknown], 0 or 1 for conditions, else 0 or more.
	Value(p Param) int64
}

// Params are the values for a decision. Each is asked for once, when it is needed.
// The zero value knows nothing. One goroutine uses it at a time.
type Params struct {
	Coll   tasks.Collective // of [TaskPart] the operation of the tasks
	Part   Part
	From   Source // of values that were not set; nil: they are unknown
	values [maxParam]int64
	have   uint64 // bit p: values[p] is known; there are fewer than 64
}

// Set sets a value.
func (p *Params) Set(q Param, v int64) { p.values[q], p.have = v, p.have|1<<q }

// Get returns a value.
func (p *Params) Get(q Param) int64 {
	if p.have&(1<<q) == 0 {
		p.ask(q)
	}
	return p.values[q]
}

// ask asks for a value.
func (p *Params) ask(q Param) {
	v := int64(Unknown)
	if p.From != nil {
		v = p.From.Value(q)
	}
	p.Set(q, v)
}

// Bool is the value of a condition.
func Bool(holds bool) int64 {
	if holds {
		return 1
	}
	return 0
}

// list joins names for a complaint.
func list(names []string) string {
	return strings.Join(slices.Sorted(slices.Values(names)), ", ")
}
