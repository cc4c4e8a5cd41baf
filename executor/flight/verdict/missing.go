package verdict

import (
	"maps"
	"slices"

	"github.com/tierflow/tierflow/executor/flight"
)

// Missing returns the ranks that have not come to a collective of a communicator, without those that wait, perhaps
// through further ones, for others of them: these explain the rest. A rank in an operation is
// among them, though it has come, if one that has not come waits for it. States are as for [Diagnose], ascending in the result.
func Missing(states []flight.State, comm uint64, seq uint32) (all []flight.State) {
	j := newJob(states, Options{})
	j.findSpots()
	var missing []int
	may := map[int]bool{}
	for i := range j.all {
		s := &j.all[i]
		come, known := s.HasCome(comm, seq)
		if known && !come {
			missing = append(missing, s.Rank)
		}
		may[s.Rank] = known && !come || s.Doing == flight.Computing
	}
	for _, r := range j.causes(missing, may) {
		all = append(all, *j.by[r])
	}
	return all
}

// causes returns those of some ranks that explain the waits of the others, ascending: ranks whose programs wait for no
// other one. Waits are followed through ranks that may be causes. In a circle nobody explains the others, and all are.
func (j *job) causes(ranks []int, may map[int]bool) []int {
	left := map[int]bool{}
	behind := map[int][]int{} // by rank, those that wait for it
	var free []int
	for todo := slices.Clone(ranks); len(todo) > 0; todo = todo[1:] {
		r := todo[0]
		if left[r] {
			continue
		}
		left[r] = true
		held := false
		for keeper := range j.keepers(j.by[r]) {
			if keeper != r && may[keeper] {
				behind[keeper], held = append(behind[keeper], r), true
				todo = append(todo, keeper)
			}
		}
		if !held {
			free = append(free, r)
		}
	}
	for ; len(free) > 0; free = free[1:] {
		for _, r := range behind[free[0]] {
			if left[r] {
				delete(left, r)
				free = append(free, r)
			}
		}
	}
	return slices.Sorted(maps.Keys(left))
}

// keepers returns the ranks that a rank's program waits for: they have not come to its calls, or to those that hold
// these up, or are in an operation.
func (j *job) keepers(s *flight.State) map[int]bool {
	keepers := map[int]bool{}
	seen := map[int]bool{} // spots
	var todo []int
	add := func(spot int) {
		if !seen[spot] {
			seen[spot] = true
			todo = append(todo, spot)
		}
	}
	for k := range s.Open {
		if at, held := j.at[&s.Open[k]]; held && s.Open[k].Awaited {
			add(at)
		}
	}
	for ; len(todo) > 0; todo = todo[1:] {
		for _, h := range j.spots[todo[0]].holds {
			switch h.why {
			case notCome, inOperation:
				keepers[h.peer.Rank] = true
			case inCall:
				add(h.spot)
			}
		}
	}
	return keepers
}
