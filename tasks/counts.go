package tasks

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"strings"
)

// Counts are the elements of each rank's block if blocks differ, in the order of ranks. They are
// comparable and immutable; the zero value stands for blocks of equal size.
type Counts struct {
	ends string // for each rank, where its block ends: 8 bytes, little-endian
}

// NewCounts makes counts of a list. A negative count is an error, and so is a sum of more than
// 2^63−1.
func NewCounts(counts []int) (Counts, error) {
	ends := make([]byte, 0, 8*len(counts))
	sum := int64(0)
	for rank, n := range counts {
		if n < 0 || int64(n) > math.MaxInt64-sum {
			return Counts{}, fmt.Errorf("count %d of rank %d: counts are not negative and add up to less than 2^63", n, rank)
		}
		sum += int64(n)
		ends = binary.LittleEndian.AppendUint64(ends, uint64(sum))
	}
	return Counts{string(ends)}, nil
}

// Len is the number of ranks, 0 for the zero value.
func (c Counts) Len() int { return len(c.ends) / 8 }

// Before is the elements of all blocks before the i-th, for i up to Len.
func (c Counts) Before(i int) int64 {
	if i == 0 {
		return 0
	}
	return int64(binary.LittleEndian.Uint64([]byte(c.ends[8*i-8 : 8*i])))
}

// At is the elements of the i-th block.
func (c Counts) At(i int) int64 { return c.Before(i+1) - c.Before(i) }

// Sum is the elements of all blocks.
func (c Counts) Sum() int64 { return c.Before(c.Len()) }

// Max is the elements of the largest block.
func (c Counts) Max() (n int64) {
	for i := range c.Len() {
		n = max(n, c.At(i))
	}
	return n
}

// String lists the counts. Of a long list it prints the beginning, the number and a hash to tell
// lists apart.
func (c Counts) String() string {
	const most = 16
	var b strings.Builder
	for i := range min(c.Len(), most) {
		if i > 0 {
			b.WriteByte('+')
		}
		fmt.Fprint(&b, c.At(i))
	}
	if c.Len() > most {
		h := fnv.New32a()
		h.Write([]byte(c.ends))
		fmt.Fprintf(&b, "+… (%d blocks, %08x)", c.Len(), h.Sum32())
	}
	return b.String()
}
