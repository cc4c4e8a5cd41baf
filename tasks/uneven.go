package tasks

import (
	"fmt"
	"math/bits"
)

// Uneven returns how far blocks differ: the largest is about so many times the mean, a power of
// two: of 1.5 times to 3 it is 2. If it is 1, or all blocks are equal, it is 0.
func (r Request) Uneven() int {
	if !r.Differ() || r.Count == 0 {
		return 0
	}
	mean := max(r.MeanBytes(), 1)
	ratio := r.Bytes() / mean
	times := 1 << max(0, bits.Len64(uint64(ratio))-1)
	if r.Bytes()-int64(times)*mean >= int64(times)*mean/2 {
		times *= 2
	}
	if times == 1 {
		return 0
	}
	return times
}

// checkUneven returns an error unless some ranks can have blocks whose largest is so many times the mean.
func checkUneven(times, ranks int) error {
	if times < 2 || times >= ranks || times&(times-1) != 0 {
		return fmt.Errorf("a largest block of %d times the mean of %d ranks; allowed are powers of two from 2 on, and below the ranks", times, ranks)
	}
	return nil
}

// MakeUneven lets the blocks of a request differ, those of a rank or of each pair of ranks. Count is their
// mean. The largest is so many times as long, and each further one half of the rest, but no longer; the
// last is the rest. In an exchange each rank gives and gets as much: the most to its next rank, the least
// to itself.
func MakeUneven(r Request, times, ranks int) (Request, error) {
	if !r.Coll.HasCounts() && !r.Coll.HasMatrix() {
		return r, fmt.Errorf("%v has no blocks that differ; %s have", r.Coll, listNames(CollectivesWith(func(c Collective) bool { return c.HasCounts() || c.HasMatrix() })))
	}
	if err := checkUneven(times, ranks); err != nil {
		return r, err
	}
	if r.Count == 0 {
		return r, nil
	}
	sizes := halves(int(r.Count), times, ranks)
	row := func(from int) []int {
		row := make([]int, ranks)
		for i, n := range sizes {
			row[(from+1+i)%ranks] = n
		}
		return row
	}
	var err error
	if r.Coll.HasMatrix() {
		rows := make([][]int, ranks)
		for from := range rows {
			rows[from] = row(from)
		}
		r.Matrix, err = NewMatrix(rows)
	} else {
		r.Counts, err = NewCounts(row(0))
	}
	r.Count = int64(sizes[0])
	return r, err
}

// halves returns n sizes with a mean, the largest first.
func halves(mean, times, n int) []int {
	sizes, most := make([]int, n), mean*times
	sizes[0] = most
	rest := mean*n - most
	for i := range n - 2 {
		sizes[i+1] = min(most, (rest+1)/2)
		rest -= sizes[i+1]
	}
	sizes[n-1] = rest
	return sizes
}
