package costs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Key is everything a measured cost depends on. Keys compare with ==, and print and parse as words:
//
//	shape=han-lockstep task=sbib after=ib levels=i4,s2 fs=64KiB by=ib:adapt/chain,sb:sm
//
// A stage task's key names the stage before in place of the collective: ranks begin a stage as
// skewed as they left the one before (HAN, section III-A). So the irsr of a reduce is the irsr of
// an allreduce, both after sr. But all ranks begin the first ib of a bcast together, so it is not
// the ib after ir. A pipeline's key names the collective.
type Key struct {
	Shape   tasks.Shape
	Task    string // a stage or task kind: ib, sbib; of a pipeline, the collective: bcast
	After   string // the last other stage of the leader before; empty for its first one, and of a pipeline
	Levels  string // ranks per group, from the outermost level: i4,s2 or, unequal, i4,s1-3; a flat shape's whole topology
	By      string // who does the kinds involved: ib:adapt/chain/32KiB,sb:sm, sorted
	Segment int64  // bytes, of each block if there are blocks
	Window  int    // of a pipeline; stages don't depend on it: 0
	Eager   int64  // bytes, of exchanges by plans with eager=, see [tasks.Plan]; 0: none
	Type    string // of reduced elements: f32; empty without a reduction
	Op      string // sum
}

// StageKeys returns the stages of g and their keys in a [Book]. g's request must have a full
// segment. Tasks of a dataflow shape of one segment come one after the other anyway. So the costs
// of stages hold for it too, and its keys are equal.
func StageKeys(g *tasks.Graph) ([]tasks.Stage, []Key, error) {
	stages, err := g.Stages()
	if err != nil {
		return nil, nil, err
	}
	keys := make([]Key, len(stages))
	for i, s := range stages {
		kinds := make([]tasks.Kind, len(s.Tasks))
		for j, id := range s.Tasks {
			kinds[j] = g.Node(id).Kind
		}
		keys[i] = newKey(g, s.Name, kinds)
		if !g.Plan.Shape.IsFlat() {
			keys[i].Shape = tasks.HanLockstep
		}
		switch {
		case i > 0 && keys[i-1].Task == s.Name:
			keys[i].After = keys[i-1].After
		case i > 0:
			keys[i].After = keys[i-1].Task
		}
	}
	return stages, keys, nil
}

// PipelineKey returns the key of a request's pipeline with a plan in a [Book]. All sizes cut into equal
// segments share it. The error is that of [tasks.Expand].
func PipelineKey(r tasks.Request, t *levels.Topology, p tasks.Plan) (Key, error) {
	g, err := tasks.Expand(First(r, p, 1), t, p, 0)
	if err != nil {
		return Key{}, err
	}
	kinds := make([]tasks.Kind, len(g.Phases))
	for i, ph := range g.Phases {
		kinds[i] = ph.Kind
	}
	k := newKey(g, r.Coll.String(), kinds)
	k.Window = p.Window
	return k, nil
}

func newKey(g *tasks.Graph, name string, kinds []tasks.Kind) Key {
	r, p := g.Request, g.Plan
	k := Key{
		Shape: p.Shape, Task: name, Levels: levelsText(g.On, p.Shape),
		Segment: SegmentBytes(r, p), By: byText(p, kinds),
	}
	if slices.ContainsFunc(kinds, func(k tasks.Kind) bool { return k.Op == tasks.Alltoall }) {
		k.Eager = p.Eager
	}
	if r.Reduces() && slices.ContainsFunc(kinds, func(k tasks.Kind) bool { return k.Op.Reduces() }) {
		k.Type, k.Op = r.Type.String(), r.Op.String()
	}
	return k
}

// SegmentBytes is the size of a full segment of r: the plan's, in whole elements,
// or the message if that is less.
func SegmentBytes(r tasks.Request, p tasks.Plan) int64 {
	elems, _ := tasks.Segments(r, p)
	return min(elems*int64(r.Type.Size()), r.Bytes())
}

// Segments is how many segments p cuts r into, however many passes they take.
func Segments(r tasks.Request, p tasks.Plan) int64 {
	_, n := tasks.Segments(r, p)
	return n
}

// First is the request for the first n segments of r, or for r if it has no more.
func First(r tasks.Request, p tasks.Plan, n int64) tasks.Request {
	if elems, all := tasks.Segments(r, p); all > n {
		r.Count = n * elems
	}
	return r
}

func byText(p tasks.Plan, kinds []tasks.Kind) string {
	words := make([]string, 0, len(kinds))
	for _, kind := range kinds {
		c, _ := p.For(kind)
		words = append(words, kind.String()+":"+c.String())
	}
	slices.Sort(words)
	return strings.Join(slices.Compact(words), ",")
}

// levelsText says how large groups are. Trees of a flat shape follow the numbering of ranks across
// nodes, so its costs hold for one layout only.
func levelsText(h *levels.Hierarchy, s tasks.Shape) string {
	if s.IsFlat() {
		return strings.ReplaceAll(h.Topology().String(), " ", "_")
	}
	var words []string
	for k := h.Depth() - 1; k >= 0; k-- {
		least, most := h.Topology().Size(), 0
		for _, g := range h.Groups(k) {
			least, most = min(least, len(g.Ranks)), max(most, len(g.Ranks))
		}
		word := fmt.Sprintf("%c%d", h.Level(k).Symbol, most)
		if least < most {
			word = fmt.Sprintf("%c%d-%d", h.Level(k).Symbol, least, most)
		}
		words = append(words, word)
	}
	return strings.Join(words, ",")
}

// String prints the key as [ParseKey] reads it; what doesn't matter is left out.
func (k Key) String() string {
	words := []string{"shape=" + k.Shape.String(), "task=" + k.Task}
	if k.After != "" {
		words = append(words, "after="+k.After)
	}
	words = append(words, "levels="+k.Levels, "fs="+tasks.FormatBytes(k.Segment))
	if k.Window != 0 {
		words = append(words, fmt.Sprintf("w=%d", k.Window))
	}
	if k.Eager != 0 {
		words = append(words, "eager="+tasks.FormatBytes(k.Eager))
	}
	for _, w := range [][2]string{{"by", k.By}, {"type", k.Type}, {"op", k.Op}} {
		if w[1] != "" {
			words = append(words, w[0]+"="+w[1])
		}
	}
	return strings.Join(words, " ")
}

// ParseKey reads the text of [Key.String].
func ParseKey(s string) (Key, error) {
	var k Key
	seen := map[string]bool{}
	for _, word := range strings.Fields(s) {
		name, value, _ := strings.Cut(word, "=")
		if seen[name] {
			return Key{}, fmt.Errorf("key %q: %s is given twice", s, name)
		}
		seen[name] = true
		if err := k.parseWord(name, value); err != nil {
			return Key{}, fmt.Errorf("key %q: %w", s, err)
		}
	}
	var errs []error
	for _, name := range []string{"shape", "task", "levels", "fs"} {
		if !seen[name] {
			errs = append(errs, fmt.Errorf("%s= is missing", name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return Key{}, fmt.Errorf("key %q: %w", s, err)
	}
	return k, nil
}

func (k *Key) parseWord(name, value string) (err error) {
	if value == "" {
		return fmt.Errorf("%q is not name=value", name)
	}
	switch name {
	case "shape", "w":
		var p tasks.Plan
		if p, err = tasks.ParsePlan(name + "=" + value); err != nil {
			return err
		}
		k.Shape, k.Window = cmp.Or(p.Shape, k.Shape), cmp.Or(p.Window, k.Window)
		if name == "w" && p.Window == 0 {
			return fmt.Errorf("w=%s: a window is a number", value)
		}
	case "eager":
		k.Eager, err = tasks.ParseBytes(value)
	case "fs":
		k.Segment, err = tasks.ParseBytes(value)
	case "task":
		k.Task = value
	case "after":
		k.After = value
	case "levels":
		k.Levels = value
	case "by":
		k.By = value
	case "type":
		k.Type = value
	case "op":
		k.Op = value
	default:
		return fmt.Errorf("unknown word %q; known are shape, task, after, levels, fs, w, eager, by, type and op", name)
	}
	return err
}

// Compare orders keys as tables list them.
func (k Key) Compare(o Key) int {
	return cmp.Or(
		cmp.Compare(k.Shape, o.Shape), cmp.Compare(k.Levels, o.Levels), cmp.Compare(k.By, o.By),
		cmp.Compare(k.Segment, o.Segment), cmp.Compare(k.Window, o.Window), cmp.Compare(k.Eager, o.Eager), cmp.Compare(k.Type, o.Type),
		cmp.Compare(k.Op, o.Op), cmp.Compare(len(k.Task), len(o.Task)), cmp.Compare(k.Task, o.Task), cmp.Compare(k.After, o.After))
}

// MarshalText is String.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText is ParseKey.
func (k *Key) UnmarshalText(text []byte) (err error) {
	*k, err = ParseKey(string(text))
	return err
}
