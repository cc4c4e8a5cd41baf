package dag

import (
	"cmp"
	"slices"
)

// Reaches answers for each query whether a path leads from its first node to its
// second; every node reaches itself. It takes O(V+E) time for each 64 distinct
// first nodes and O(V) memory, so ask many questions in one call.
func (f *Frozen) Reaches(queries [][2]ID) []bool {
	answers := make([]bool, len(queries))
	s := f.sweeper()
	open := make([]int32, 0, len(queries)) // queries in need of a look at the edges
	for i, q := range queries {
		answers[i] = q[0] == q[1]
		if s.at[q[0]] < s.at[q[1]] {
			open = append(open, int32(i))
		}
	}
	// First nodes close in the order share sweeps, which are then short: a sweep starts at its
	// first source and ends at its last target.
	slices.SortFunc(open, func(a, b int32) int { return cmp.Compare(s.at[queries[a][0]], s.at[queries[b][0]]) })
	for len(open) > 0 {
		n := 0
		for n < len(open) && s.add(queries[open[n]][0], queries[open[n]][1]) {
			n++
		}
		s.sweep()
		for _, i := range open[:n] {
			answers[i] = s.hasReached(queries[i][0], queries[i][1])
		}
		s.reset()
		open = open[n:]
	}
	return answers
}

// Reduction returns the graph with the fewest edges in which the same nodes
// reach each other (the transitive reduction), as one draws it. It takes
// O(V(V+E)/64) time.
func (f *Frozen) Reduction() *Frozen {
	var kept []Edge
	s := f.sweeper()
	for block := range slices.Chunk(f.order, sweepWidth) {
		for _, id := range block {
			for _, to := range f.Succ(id) {
				s.add(id, to)
			}
		}
		s.sweep()
		for _, id := range block {
			for _, to := range f.Succ(id) {
				if !s.detour(id, to) {
					kept = append(kept, Edge{From: id, To: to})
				}
			}
		}
		s.reset()
	}
	reduced, err := freeze(f.Len(), kept)
	if err != nil {
		panic("dag: part of an acyclic graph has a " + err.Error())
	}
	return reduced
}

const sweepWidth = 64

// sweeper finds what up to 64 sources reach in one pass over the edges.
type sweeper struct {
	f       *Frozen
	at      []int32  // the place of a node in the order
	own     []uint64 // the bit of a source, 0 for other nodes
	mask    []uint64 // the bits of the sources that reach a node; 0 outside lo..hi
	sources []ID
	lo, hi  int32 // first and last place in the order that matter
}

func (f *Frozen) sweeper() *sweeper {
	n := f.Len()
	s := &sweeper{f: f, at: make([]int32, n), own: make([]uint64, n), mask: make([]uint64, n), hi: -1}
	for i, id := range f.order {
		s.at[id] = int32(i)
	}
	s.reset()
	return s
}

// add makes the next sweep tell whether source reaches id, a later node in the order. It reports
// false if the sweep has no room for the source.
func (s *sweeper) add(source, id ID) bool {
	if s.own[source] == 0 {
		if len(s.sources) == sweepWidth {
			return false
		}
		s.own[source] = 1 << len(s.sources)
		s.sources = append(s.sources, source)
	}
	s.lo = min(s.lo, s.at[source])
	s.hi = max(s.hi, s.at[id])
	return true
}

func (s *sweeper) part() []ID { return s.f.order[s.lo:max(s.lo, s.hi+1)] }

func (s *sweeper) sweep() {
	for _, id := range s.part() {
		m := s.own[id]
		for _, p := range s.f.Pred(id) {
			m |= s.mask[p]
		}
		s.mask[id] = m
	}
}

func (s *sweeper) hasReached(source, id ID) bool { return s.mask[id]&s.own[source] != 0 }

// detour reports whether a path of two or more edges leads from source to id.
func (s *sweeper) detour(source, id ID) bool {
	return slices.ContainsFunc(s.f.Pred(id), func(p ID) bool { return p != source && s.hasReached(source, p) })
}

func (s *sweeper) reset() {
	for _, id := range s.part() {
		s.mask[id] = 0
	}
	for _, id := range s.sources {
		s.own[id] = 0
	}
	s.sources = s.sources[:0]
	s.lo, s.hi = int32(s.f.Len()), -1
}
