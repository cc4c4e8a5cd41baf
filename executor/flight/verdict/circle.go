package verdict

import (
	"slices"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
)

// Circle returns ranks in a circle, each of which keeps the one before waiting, in a call of its own that it
// can't leave; nil if there are none. A rank that may get on in some call counts as free, so does one that has
// stood still for less than least. Ranks of one collective that wait for each other are no circle: what holds
// up one of them is elsewhere.
func Circle(states []flight.State, least time.Duration) (circle []flight.State) {
	j := newJob(states, Options{Least: circlePart * least})
	j.findSpots()
	for _, rank := range j.circle() {
		circle = append(circle, *j.by[rank])
	}
	return circle
}

// circle returns the ranks of the shortest circle of waits, the lowest one first.
func (j *job) circle() (ranks []int) {
	dead := j.findDead(j.Least / circlePart)
	knots := j.findKnots(dead)
	for i := range j.spots {
		if !dead[i] {
			continue
		}
		j.next(i, dead, func(to int, away bool) {
			if !away || knots[i] != knots[to] {
				return
			}
			if way := j.wayTo(to, i, dead); ranks == nil || len(way) < len(ranks) {
				ranks = way
			}
		})
		if len(ranks) > 0 { // the first in order, so all see the same
			return ranks
		}
	}
	return nil
}

// findKnots numbers the dead spots: two have the same number if each holds up the other, perhaps through
// further ones. Those of lower numbers don't wait for higher ones.
func (j *job) findKnots(dead []bool) []int {
	f := finder{j: j, dead: dead, seen: make([]int, len(j.spots)), knot: make([]int, len(j.spots))}
	for i := range j.spots {
		if dead[i] && f.seen[i] == 0 {
			f.visit(i)
		}
	}
	return f.knot
}

// finder finds knots as Tarjan does.
type finder struct {
	j     *job
	dead  []bool
	seen  []int // by spot, from 1; 0: not yet
	knot  []int // by spot, from 1; 0: not yet
	stack []int
	count int
	knots int
}

// visit returns the earliest open spot that can be reached.
func (f *finder) visit(i int) int {
	f.count++
	f.seen[i] = f.count
	low := f.count
	f.stack = append(f.stack, i)
	f.j.next(i, f.dead, func(to int, _ bool) {
		if f.seen[to] == 0 {
			low = min(low, f.visit(to))
		} else if f.knot[to] == 0 {
			low = min(low, f.seen[to])
		}
	})
	if low < f.seen[i] {
		return low
	}
	f.knots++
	at := slices.Index(f.stack, i)
	for _, member := range f.stack[at:] {
		f.knot[member] = f.knots
	}
	f.stack = f.stack[:at]
	return low
}

// wayTo returns the ranks along the shortest way between two spots whose programs have not come to where they
// are awaited, those of both ends included, the lowest one first. A way through a call that any rank could
// end has all ranks of it.
func (j *job) wayTo(from, to int, dead []bool) (ranks []int) {
	type step struct {
		before int
		away   bool
	}
	came := map[int]step{from: {-1, true}}
	for todo := []int{from}; len(todo) > 0; todo = todo[1:] {
		if _, done := came[to]; done {
			break
		}
		j.next(todo[0], dead, func(next int, away bool) {
			if _, known := came[next]; !known {
				came[next] = step{todo[0], away}
				todo = append(todo, next)
			}
		})
	}
	anyOf := false
	for at := to; at >= 0; at = came[at].before {
		s := &j.spots[at]
		anyOf = anyOf || s.call.Any
		if came[at].away {
			ranks = append(ranks, s.s.Rank)
		}
	}
	if anyOf {
		return j.standing(dead)
	}
	slices.Reverse(ranks)
	low := slices.Index(ranks, slices.Min(ranks))
	return slices.Concat(ranks[low:], ranks[:low])
}

// standing returns the ranks whose programs are dead.
func (j *job) standing(dead []bool) (ranks []int) {
	for i := range j.all {
		if j.isDead(&j.all[i], dead) {
			ranks = append(ranks, j.all[i].Rank)
		}
	}
	return ranks
}
