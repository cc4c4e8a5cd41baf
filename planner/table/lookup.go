package table

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// How far from its measurements a table is believed.
const (
	farLevel = 4  // times as many ranks in a level, or as few
	farBytes = 16 // times as many bytes; fewer are always near: latency stays
)

// Estimate is a plan and its time by a table.
type Estimate struct {
	Plan tasks.Plan
	NS   float64
	From string // measured, predicted, interpolated, extrapolated, elsewhere or carried over
	// Predicted means that the time, or one of those behind it, was not measured.
	Predicted bool
}

// Neighbour is an entry behind an answer.
type Neighbour struct {
	Entry  *Entry
	Weight float64 // of 1 in all
}

// Answer is a table's answer to a request.
type Answer struct {
	Estimates  []Estimate // the fastest first
	Neighbours []Neighbour
	Elsewhere  string // how the place of the neighbours differs from here; empty: it doesn't
	Carried    Sizes  // of the only machine near, of other sizes than this one; nil: it is this one, or there are several
	Why        string // why there are no estimates; empty if there are
}

// Find looks a request up. Between measured points times are interpolated, those
// of each plan for itself: linearly in the bytes, then linearly in the ranks of a
// level between the nearest machines on both sides, or in its rounds. An algorithm for powers of two is not
// interpolated from these alone to other numbers of ranks. Sums of products are written
// so that no processor may fuse them: all ranks must come to the same answer.
//
// links names the links between nodes, see [Place.Links]. A table may know only other
// places than that of r on the topology. Its answer is then all from elsewhere, from the
// most similar place. Plans that ignore nodes are left out then if the layout differs:
// their times say nothing about another one. reg knows the algorithms of the plans.
//
// If only one machine is near, in one direction, its times are given as they are: see [Answer.Carried].
func (t *Table) Find(r tasks.Request, on *levels.Topology, links string, reg submodules.Registry) (a Answer) {
	point := PointOf(r, on, links)
	want, here, bytes := point.Levels, point.Place, point.Bytes
	machines, why := t.near(&point)
	if why != "" {
		return Answer{Why: why}
	}
	a.Elsewhere = strings.Join(machines[0].place.differences(here), "; ")
	if len(machines) == 1 && machines[0].sizes.Compare(want) != 0 {
		a.Carried = machines[0].sizes
	}
	type weighed struct {
		times []float64 // by machine
		count int       // of those with it
		one   Estimate
	}
	plans := map[string]*weighed{}
	weights := weigh(machines, want, nil)
	for i, m := range machines {
		here, neighbours, why := m.at(bytes)
		if why != "" {
			return Answer{Why: why}
		}
		for _, n := range neighbours {
			a.Neighbours = append(a.Neighbours, Neighbour{n.Entry, n.Weight * weights[i]})
		}
		for text, e := range here {
			w := plans[text]
			if w == nil {
				w = &weighed{one: e, times: make([]float64, len(machines))}
				plans[text] = w
			}
			w.times[i] = e.NS
			w.count++
			w.one.Predicted = w.one.Predicted || e.Predicted
		}
	}
	for _, text := range sortedKeys(plans) {
		w := plans[text]
		if w.count < len(machines) || foldsFirst(w.one.Plan, machines, want, reg) {
			continue // unknown on one side, or between them
		}
		if w.count > 1 {
			w.one.From = FromInterpolated
		}
		w.one.NS = 0
		for i, part := range weigh(machines, want, func(level string) bool { return byRounds(w.one.Plan, level, reg) }) {
			w.one.NS += float64(part * w.times[i])
		}
		a.Estimates = append(a.Estimates, w.one)
	}
	if len(a.Estimates) == 0 { // the machines have no plan in common: the nearest one's serve
		nearest, _, _ := machines[0].at(bytes)
		for _, text := range sortedKeys(nearest) {
			e := nearest[text]
			e.From = FromExtrapolated
			a.Estimates = append(a.Estimates, e)
		}
	}
	if a.Carried != nil {
		for i := range a.Estimates {
			a.Estimates[i].From = FromCarried
		}
	}
	if a.Elsewhere != "" {
		a.moveHere(machines[0].place.Layout == here.Layout)
	}
	slices.SortStableFunc(a.Estimates, func(a, b Estimate) int { return cmp.Compare(a.NS, b.NS) })
	return a
}

// moveHere keeps those of another place's estimates that may hold here.
func (a *Answer) moveHere(sameLayout bool) {
	a.Estimates = slices.DeleteFunc(a.Estimates, func(e Estimate) bool { return !sameLayout && e.Plan.Shape.IsFlat() })
	if len(a.Estimates) == 0 {
		a.Why = "its plans ignore nodes and are from elsewhere: " + a.Elsewhere
	}
	for i := range a.Estimates {
		a.Estimates[i].From = FromElsewhere
	}
}

// machine is the entries of a collective for one machine and place, by bytes.
type machine struct {
	sizes   Sizes
	place   Place
	entries []*Entry
}

// machines lists those of a collective, and of what was tried only the point itself. Entries are in the order of
// Sort.
func (t *Table) machines(point *Entry) (all []machine, tried bool) {
	for i := range t.Entries {
		e := &t.Entries[i]
		if e.Collective != point.Collective {
			continue
		}
		if e.Tried && !e.isOf(point) {
			tried = true
			continue
		}
		if n := len(all); n == 0 || all[n-1].sizes.Compare(e.Levels) != 0 || all[n-1].place != e.Place {
			all = append(all, machine{sizes: e.Levels, place: e.Place})
		}
		last := &all[len(all)-1]
		last.entries = append(last.entries, e)
	}
	return all, tried
}

// near finds the machines that lie around that of a point, the nearest first: itself, or the
// nearest in each direction. All are of one place: the point's, or the one most like it.
func (t *Table) near(point *Entry) (around []machine, why string) {
	coll, want := point.Collective, point.Levels
	all, tried := t.machines(point)
	switch {
	case len(all) == 0 && tried:
		return nil, "this size was not tried"
	case len(all) == 0:
		return nil, fmt.Sprintf("it has no entry for %v", coll)
	}
	same := slices.DeleteFunc(slices.Clone(all), func(m machine) bool {
		return !slices.Equal(sortedKeys(m.sizes), sortedKeys(want))
	})
	if len(same) == 0 {
		return nil, fmt.Sprintf("its machines for %v have other levels than %v", coll, want)
	}
	same = slices.DeleteFunc(same, func(m machine) bool { return ratio(m.sizes, want) > farLevel })
	if len(same) == 0 {
		return nil, fmt.Sprintf("%v is over %d times larger or smaller than its machines for %v", want, farLevel, coll)
	}
	place := mostAlike(same, point.Place)
	best := map[string]machine{} // by direction
	for _, m := range same {
		if m.place != place {
			continue
		}
		d := direction(m.sizes, want)
		if old, ok := best[d]; !ok || distance(m.sizes, want) < distance(old.sizes, want) {
			best[d] = m
		}
	}
	if exact, ok := best[direction(want, want)]; ok {
		return []machine{exact}, ""
	}
	alike := 0
	for d := range best {
		alike = max(alike, strings.Count(d, "1"))
	}
	for _, d := range sortedKeys(best) {
		// Machines equal in a level tell more than others.
		if strings.Count(d, "1") == alike {
			around = append(around, best[d])
		}
	}
	slices.SortStableFunc(around, func(a, b machine) int {
		return cmp.Compare(distance(a.sizes, want), distance(b.sizes, want))
	})
	return around, ""
}

// mostAlike returns the place of some machines that has the fewest differences from here.
// A layout counts most. Among places with as many differences the nearest one in Uneven comes first.
func mostAlike(some []machine, here Place) Place {
	rank := func(p Place) int {
		n := len(p.differences(here))
		if p.Layout != here.Layout {
			n += 10
		}
		return n
	}
	off := func(p Place) int {
		n := bits.Len(uint(p.Uneven)) - bits.Len(uint(here.Uneven))
		return max(n, -n)
	}
	return slices.MinFunc(some, func(a, b machine) int {
		return cmp.Or(rank(a.place)-rank(b.place), off(a.place)-off(b.place), a.place.Compare(b.place))
	}).place
}

// direction tells on which side of want a machine lies, level by level.
func direction(have, want Sizes) string {
	d := make([]byte, 0, len(want))
	for _, k := range sortedKeys(want) {
		d = append(d, byte('1'+cmp.Compare(have[k], want[k])))
	}
	return string(d)
}

// ratio is the largest factor between two machines in one level.
func ratio(a, b Sizes) float64 {
	most := 1.0
	for k := range b {
		x, y := float64(a[k]), float64(b[k])
		most = max(most, x/y, y/x)
	}
	return most
}

// distance adds up how far a machine is from want, level by level in parts of
// want's size.
func distance(have, want Sizes) float64 { return distanceByRounds(have, want, nil) }

// weigh gives machines weights of 1 in all: linear interpolation between two, and
// less for those further away of more. A plan may go by rounds in some levels, see
// [byRounds]: those are told apart by their rounds then. nil: all go by ranks.
func weigh(machines []machine, want Sizes, byRounds func(level string) bool) []float64 {
	weights := make([]float64, len(machines))
	sum := 0.0
	for i, m := range machines {
		if d := distanceByRounds(m.sizes, want, byRounds); d > 0 {
			weights[i] = 1 / d
			sum += weights[i]
			continue
		}
		clear(weights) // this one has as many rounds
		weights[i] = 1
		return weights
	}
	for i := range weights {
		weights[i] /= sum
	}
	return weights
}

// distanceByRounds is [distance], for a plan that goes by rounds in some levels.
func distanceByRounds(have, want Sizes, byRounds func(level string) bool) float64 {
	sum := 0.0
	for _, k := range sortedKeys(want) {
		x, y := have[k], want[k]
		if byRounds != nil && byRounds(k) {
			x, y = rounds(x), max(rounds(y), 1)
		}
		sum += math.Abs(float64(x-y)) / float64(y)
	}
	return sum
}

// at returns the time of each plan at a size, by the plan's text.
func (m machine) at(bytes int64) (all map[string]Estimate, from []Neighbour, why string) {
	i, exact := slices.BinarySearchFunc(m.entries, bytes, func(e *Entry, n int64) int { return cmp.Compare(e.Bytes, n) })
	last := m.entries[len(m.entries)-1]
	all = map[string]Estimate{}
	switch {
	case exact || i == 0:
		e := m.entries[min(i, len(m.entries)-1)]
		for _, c := range e.Candidates {
			all[c.Plan] = Estimate{c.Parsed, c.NS, origin(c.From, exact), c.isPredicted()}
		}
		return all, []Neighbour{{e, 1}}, ""
	case i == len(m.entries):
		if last.Bytes == 0 || bytes/farBytes > last.Bytes {
			return nil, nil, fmt.Sprintf("%s is over %d times more than the %s it was measured up to",
				tasks.FormatBytes(bytes), farBytes, tasks.FormatBytes(last.Bytes))
		}
		for _, c := range last.Candidates {
			all[c.Plan] = Estimate{c.Parsed, c.NS * float64(bytes) / float64(last.Bytes), origin(c.From, false), c.isPredicted()}
		}
		return all, []Neighbour{{last, 1}}, ""
	}
	return interpolate(m.entries[i-1], m.entries[i], bytes)
}

func origin(from string, exact bool) string {
	if exact {
		return from
	}
	return FromExtrapolated
}

// interpolate interpolates linearly: latency plus bytes by bandwidth is a line.
func interpolate(low, high *Entry, bytes int64) (map[string]Estimate, []Neighbour, string) {
	part := float64(bytes-low.Bytes) / float64(high.Bytes-low.Bytes)
	all := map[string]Estimate{}
	for _, e := range []*Entry{low, high} {
		for _, c := range e.Candidates {
			p := Canonical(c.Parsed, e.Place.largest(bytes))
			a, b := low.find(p), high.find(p)
			if a != nil && b != nil {
				ns := float64((1-part)*a.NS) + float64(part*b.NS)
				all[p.String()] = Estimate{p, ns, FromInterpolated, a.isPredicted() || b.isPredicted()}
			}
		}
	}
	from := []Neighbour{{low, 1 - part}, {high, part}}
	if len(all) > 0 {
		return all, from, ""
	}
	nearest := low
	if part > 0.5 {
		nearest = high
	}
	for _, c := range nearest.Candidates { // the sizes have no plan in common
		all[c.Plan] = Estimate{c.Parsed, c.NS, FromExtrapolated, c.isPredicted()}
	}
	return all, from, ""
}

// find returns the candidate that does what a plan does at an entry's size; nil: there is none.
func (e *Entry) find(p tasks.Plan) *Candidate {
	text := Canonical(p, e.Largest()).String()
	for i := range e.Candidates {
		if e.Candidates[i].Plan == text {
			return &e.Candidates[i]
		}
	}
	return nil
}

func (c *Candidate) isPredicted() bool { return c.From == FromPredicted }

// Canonical is the one of all plans that do the same with a message of so many
// bytes, those of the largest block: one segment has no window and no stages to wait for, an
// inner segment as large as the segment cuts nothing, and a threshold no smaller than the largest
// block lets all messages leave at once.
func Canonical(p tasks.Plan, bytes int64) tasks.Plan {
	if p.Eager > 0 && p.Eager >= bytes {
		p.Eager = tasks.Whole
	}
	if p.Segment >= bytes {
		p.Segment, p.Window = tasks.Whole, 1
		if p.Shape == tasks.HanLockstep {
			p.Shape = tasks.Han
		}
	}
	for _, key := range p.Keys() {
		if c, _ := p.Choice(key); c.Inner > 0 && c.Inner >= min(p.Segment, bytes) {
			c.Inner = 0
			p = p.Set(key, c)
		}
	}
	return p
}
