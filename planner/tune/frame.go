package tune

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/tasks"
)

// frame is the plans of a collective that agree in shape and segment size. Of
// these, tasks methods measure a base and those that differ from it in one factor:
// the algorithms of a level, or the window. Any other is put together from them, here
// for two levels:
//
//	time(a, b)  =  time(a, base)  +  time(base, b)  −  time(base, base)
//
// The difference of the last two is what a task of b costs more than one of the base.
// That is exact where tasks follow each other, as those of one segment do: the time
// of sb doesn't depend on the algorithm of ib. Where they overlap, the sum is too
// large for two that are both slower than the base, and may be wrong otherwise. The
// plan that looks best by it is measured before it is chosen.
type frame struct {
	coll    tasks.Collective
	shape   tasks.Shape
	segment int64
	plans   []tasks.Plan
	members []tasks.Plan            // that are measured
	base    tasks.Plan              // one of them
	parts   map[string][]tasks.Plan // of the others, by their text: members that have one factor of theirs
}

// factors are the words of a plan beside those of its frame: the window, then the
// algorithms of each level.
func factors(p tasks.Plan) []string {
	words := []string{"w=" + strconv.Itoa(p.Window)}
	symbol := byte(0)
	for _, key := range p.Keys() { // sorted, so level by level
		c, _ := p.Choice(key)
		word := key + "=" + c.String()
		if key[0] == symbol {
			words[len(words)-1] += "," + word
			continue
		}
		words, symbol = append(words, word), key[0]
	}
	return words
}

// newFrames sorts the candidates of a search into frames, by segment size, and
// enters them in of, by planKey.
func newFrames(k *knowledge, of map[string]*frame) (all []*frame) {
	by := map[string]*frame{}
	for i, r := range k.requests {
		for _, c := range k.candidates[i] {
			if c.Rejected != "" || c.Added || of[planKey(r, c.Plan)] != nil {
				continue
			}
			key := fmt.Sprint(r.Coll, c.Plan.Shape, c.Plan.Segment, c.Plan.Order)
			f := by[key]
			if f == nil {
				f = &frame{coll: r.Coll, shape: c.Plan.Shape, segment: c.Plan.Segment}
				by[key] = f
				all = append(all, f)
			}
			f.plans = append(f.plans, c.Plan)
			of[planKey(r, c.Plan)] = f
		}
	}
	slices.SortStableFunc(all, func(a, b *frame) int { return cmp.Compare(a.segment, b.segment) })
	for _, f := range all {
		f.found(k)
	}
	return all
}

// found chooses the base: a plan that serves many sizes, and of these the one
// nearest to the built-in rule's for the largest. The other members follow.
func (f *frame) found(k *knowledge) {
	serves := func(p tasks.Plan) []int { return k.where[planKey(tasks.Request{Coll: f.coll}, p)] }
	f.base = f.plans[0]
	for _, p := range f.plans {
		if len(serves(p)) > len(serves(f.base)) {
			f.base = p
		}
	}
	most := serves(f.base)
	forced := k.space
	forced.Plan.Shape = f.shape
	want := factors(forced.Rule(k.requests[most[len(most)-1]], k.topology))
	likeness := 0
	for _, p := range f.plans {
		if n := len(want) - differences(factors(p), want); len(serves(p)) == len(most) && n > likeness {
			f.base, likeness = p, n
		}
	}
	f.split()
}

// split tells members from plans that are put together of members.
func (f *frame) split() {
	base := factors(f.base)
	by := map[string]tasks.Plan{}
	for _, p := range f.plans {
		by[strings.Join(factors(p), " ")] = p
	}
	f.parts = map[string][]tasks.Plan{}
	for _, p := range f.plans {
		own := factors(p)
		var parts []tasks.Plan
		for k := range own {
			one := slices.Clone(base)
			if k < len(base) && own[k] != base[k] {
				one[k] = own[k]
				if q, ok := by[strings.Join(one, " ")]; ok {
					parts = append(parts, q)
				}
			}
		}
		if n := differences(own, base); n > 1 && len(parts) == n {
			f.parts[p.String()] = parts
		} else {
			f.members = append(f.members, p)
		}
	}
}

// differences counts the words that two plans of a frame don't share.
func differences(a, b []string) int {
	n := max(len(a), len(b))
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			n--
		}
	}
	return n
}
