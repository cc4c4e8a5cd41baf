package choose

import (
	"fmt"
	"iter"
	"slices"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// layouts are those for trials of rules.
var layouts = []string{"1", "2x1", "1x4", "3x1", "8x1", "4x2", "2x4", "4x2/rr", "a:3,b:1", "2x2x2", "16x4"}

// tried is the outcome of a leaf in a trial of rules.
type tried struct {
	fits  int
	unfit string // the first request without a fit, and the reason
}

// CheckRules tries rules on layouts of up to 64 ranks, at sizes around their numbers. No rank can
// compile the plans in broken. Those in partly fit some requests; for the rest other choosers
// decide.
func CheckRules(b *rules.Base, reg submodules.Registry) (broken, partly []rules.Finding) {
	all := map[*rules.Leaf]*tried{}
	for _, l := range b.Leaves() {
		all[l] = &tried{}
	}
	chooser := &Rules{Base: b}
	for q := range drawn(b) {
		q.Registry = reg
		if a, err := chooser.Choose(q); err == nil {
			all[a.(*Followed).leaf].note(a.(*Followed), q)
		}
	}
	for _, l := range b.Leaves() {
		t := all[l]
		if !l.Default && t.fits == 0 && t.unfit == "" {
			t.anywhere(l, b.Collectives(l), reg)
		}
		f := rules.Finding{Line: l.Line, Column: l.Column}
		switch {
		case l.Default || t.unfit == "":
		case t.fits == 0:
			f.Message = "no rank can compile this plan: " + t.unfit
			broken = append(broken, f)
		default:
			f.Message = "this plan doesn't fit everywhere, and others decide where it doesn't: " + t.unfit
			partly = append(partly, f)
		}
	}
	return broken, partly
}

// note counts an answer's fit, or keeps the first misfit; t is nil if no leaf decided.
func (t *tried) note(f *Followed, q *Question) {
	switch {
	case t == nil || f.leaf.Default:
	case f.unfit == nil:
		t.fits++
	case t.unfit == "":
		t.unfit = fmt.Sprintf("%v on %v: %v", q.Request(), q.On, f.unfit)
	}
}

// anywhere tries a leaf without a drawn request: as if its conditions held.
func (t *tried) anywhere(l *rules.Leaf, colls []tasks.Collective, reg submodules.Registry) {
	for _, spec := range layouts {
		on, err := levels.Parse(spec)
		if err != nil {
			continue
		}
		for _, coll := range colls {
			asked := builtin.Ask(request(coll, 1<<20), on)
			base, _ := asked.Choose(l.Sketch())
			_, err := asked.Fits(l.Sketch().Over(base), reg)
			t.note(&Followed{leaf: l, unfit: err}, &Question{Asked: asked})
		}
	}
}

// drawn goes through questions on all layouts.
func drawn(b *rules.Base) iter.Seq[*Question] {
	sizes := []int64{0, 8, 1 << 10, 32 << 10, 1 << 20, 16 << 20}
	for _, coll := range tasks.Requestable() {
		for _, n := range b.Bounds(coll) {
			sizes = append(sizes, n&^7, n/2&^7, n/2&^7+8, n&^7+8)
		}
	}
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	const most = 64
	for len(sizes) > most { // every second one
		for i := range len(sizes) / 2 {
			sizes[i] = sizes[2*i]
		}
		sizes = sizes[:len(sizes)/2]
	}
	return func(yield func(*Question) bool) {
		for _, spec := range layouts {
			on, err := levels.Parse(spec)
			if err != nil {
				continue
			}
			for _, coll := range tasks.Requestable() {
				for _, r := range requests(coll, sizes, levels.Rank(on.Size()-1)) {
					if !yield(&Question{Asked: builtin.Ask(r, on)}) {
						return
					}
				}
			}
		}
	}
}

// requests lists those of a collective for numbers of bytes, and for the middle one with another root.
func requests(coll tasks.Collective, sizes []int64, root levels.Rank) (all []tasks.Request) {
	if !coll.HasData() {
		return []tasks.Request{{Coll: coll}}
	}
	for i, n := range sizes {
		r := request(coll, n)
		all = append(all, r)
		if r.Root = root; coll.IsRooted() && i == len(sizes)/2 {
			all = append(all, r)
		}
	}
	return all
}

// request is one for so many bytes.
func request(coll tasks.Collective, bytes int64) tasks.Request {
	r := tasks.Request{Coll: coll}
	if !coll.HasData() {
		return r
	}
	r.Type, r.Count = tasks.Float64, bytes/8
	if r.Reduces() {
		r.Op = tasks.Sum
	}
	return r
}
