package tasks

import (
	"slices"

	"github.com/tierflow/tierflow/levels"
)

// layPairs lays out a store from a number of bytes on.
func (x *exchange) layPairs(outer, inner []levels.Rank, byTaker bool, from int64) pairStore {
	k := pairStore{outer, inner, byTaker, make([]int64, 0, len(outer)*len(inner)+1)}
	for _, a := range outer {
		for _, b := range inner {
			giver, taker := a, b
			if byTaker {
				giver, taker = b, a
			}
			_, _, n := x.Request.Between(giver, taker)
			k.starts = append(k.starts, from)
			from += min(n, x.elems*int64(x.Request.Type.Size()))
		}
	}
	k.starts = append(k.starts, from)
	return k
}

// end is the end of the store.
func (k *pairStore) end() int64 { return k.starts[len(k.starts)-1] }

// at is the beginning of the block from one rank to another.
func (k *pairStore) at(from, to levels.Rank) int64 {
	if k.byTaker {
		from, to = to, from
	}
	i, _ := slices.BinarySearch(k.outer, from)
	j, _ := slices.BinarySearch(k.inner, to)
	return k.starts[i*len(k.inner)+j]
}

// pairIn is the place of a segment's part of the block from one rank to another in a store.
func (x *exchange) pairIn(t *Task, st store, from, to levels.Rank) Span {
	input, result, n := x.Request.Between(from, to)
	size := int64(x.Request.Type.Size())
	begin := int64(t.Segment) * x.elems * size
	s := st.span(max(0, min(x.elems*size, n-begin)))
	switch st.holds {
	case inputPairs:
		s.Off += input
	case resultPairs:
		s.Off += result
	case givenPairs:
		s.Off += x.given.at(from, to)
	case gottenPairs:
		s.Off += x.gotten.at(from, to)
	case lanePairs:
		if to == x.Rank {
			s.Region, s.Off = Recv, begin+result
			return s
		}
		s.Off += x.given.at(from, to)
	}
	return s
}
