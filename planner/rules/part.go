package rules

import "github.com/tierflow/tierflow/tasks"

// Part is a part of plans with rules of its own.
type Part uint8

// The parts, in the order of their decisions.
const (
	WholePlan    Part = iota // all words of a plan, as far as a rule has them
	ShapePart                // its shape
	SegmentsPart             // the size of segments, and the window
	TaskPart                 // the submodule and the algorithm of an operation's tasks
	maxPart
)

// parts has the names of rules for parts, and the words of their plans.
var parts = [maxPart]struct {
	name  string
	words []string
}{
	ShapePart:    {"shape", []string{"shape"}},
	SegmentsPart: {"segments", []string{"fs", "w"}},
	TaskPart:     {"task", []string{"by"}},
}

// String returns the word before the collectives of a rule.
func (p Part) String() string {
	if p >= maxPart {
		return ""
	}
	return parts[p].name
}

// collectives lists those with rules for the part: some operations are only tasks.
func (p Part) collectives() []tasks.Collective {
	if p == WholePlan {
		return tasks.Requestable()
	}
	return tasks.Collectives()
}

// findPart returns the part of a name.
func findPart(name string) (Part, bool) {
	for p := ShapePart; p < maxPart; p++ {
		if parts[p].name == name {
			return p, true
		}
	}
	return 0, false
}

// Fits returns the parameter for a shape: whether the collective has it, and the groups of ranks can
// have it. In rules it is fits(lanes).
func Fits(s tasks.Shape) Param { return firstFits + Param(s) - 1 }

// IsFits returns the shape of a parameter from [Fits].
func (p Param) IsFits() (s tasks.Shape, is bool) {
	return tasks.Shape(p-firstFits) + 1, p >= firstFits && p < maxParam
}

// namedValues are the values of a parameter with names in place of numbers.
func namedValues(u unit) (names []string) {
	switch u {
	case ofShape:
		for _, s := range tasks.Shapes() {
			names = append(names, s.String())
		}
	case ofCollective:
		for _, c := range tasks.Collectives() {
			names = append(names, c.String())
		}
	}
	return names
}
