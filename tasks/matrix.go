package tasks

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"unique"
)

// MaxMatrix is the most ranks of a [Matrix] by [NewMatrix]: it has a count for each pair of
// them, on all ranks.
const MaxMatrix = 1024

// Matrix is the elements from each rank to each other one, if they differ. Matrices made by one
// function are comparable, at the cost of a pointer. They are immutable; the zero value stands
// for blocks of equal size.
type Matrix struct {
	sums unique.Handle[string] // two tables of sums, see NewMatrix and NewPairs
	few  bool                  // by NewPairs
}

// NewMatrix makes a matrix of counts: element j of row i is from rank i to rank j. Rows must be
// as many as columns, and at most [MaxMatrix]. A negative count is an error, and so is a sum of
// more than 2^63−1 for a rank.
//
// It holds for each pair, row by row, the sum of the giver's blocks for the ranks up to the
// taker; and then, column by column, the sum of the taker's blocks from the ranks up to the
// giver: 8 bytes each, little-endian.
func NewMatrix(counts [][]int) (Matrix, error) {
	n := len(counts)
	if n < 1 || n > MaxMatrix {
		return Matrix{}, fmt.Errorf("counts for %d ranks: allowed are 1 to %d ranks", n, MaxMatrix)
	}
	table := make([]byte, 0, 16*n*n)
	for from, row := range counts {
		if len(row) != n {
			return Matrix{}, fmt.Errorf("rank %d has %d counts for %d ranks", from, len(row), n)
		}
		sum := int64(0)
		for to, c := range row {
			if c < 0 || int64(c) > math.MaxInt64-sum {
				return Matrix{}, fmt.Errorf("count %d from rank %d to rank %d: counts are not negative and add up to less than 2^63", c, from, to)
			}
			sum += int64(c)
			table = binary.LittleEndian.AppendUint64(table, uint64(sum))
		}
	}
	for to := range n {
		sum := int64(0)
		for from, row := range counts {
			c := row[to]
			if int64(c) > math.MaxInt64-sum {
				return Matrix{}, fmt.Errorf("count %d from rank %d to rank %d: what a rank gets adds up to less than 2^63", c, from, to)
			}
			sum += int64(c)
			table = binary.LittleEndian.AppendUint64(table, uint64(sum))
		}
	}
	return Matrix{sums: unique.Make(string(table))}, nil
}

// NewPairs makes a matrix for so many ranks, at least 1, most of them with nothing for each
// other: it takes memory for the pairs only, and for any number of ranks. Pairs come in any
// order, each at most once; those of no elements are left out. An unknown rank, a negative
// count, or a sum of more than 2^63−1 for a rank, is an error.
func NewPairs(ranks int, pairs []Pair) (Matrix, error) {
	table, err := newPairTable(ranks, pairs)
	if err != nil {
		return Matrix{}, err
	}
	return Matrix{unique.Make(string(table)), true}, nil
}

// IsZero reports whether m is the zero value.
func (m Matrix) IsZero() bool { return m == Matrix{} }

// Len is the number of ranks, 0 for the zero value.
func (m Matrix) Len() int {
	if m.IsZero() {
		return 0
	}
	if m.few {
		return int(pairTable(m.sums.Value()).at(0))
	}
	return int(math.Sqrt(float64(len(m.sums.Value()) / 16)))
}

// sum is an entry of the tables; those before the first of a line are 0.
func (m Matrix) sum(table string, n, line, i int) int64 {
	if m.few {
		return pairTable(table).sum(line, i)
	}
	if i < 0 {
		return 0
	}
	at := 8 * (line*n + i)
	return int64(binary.LittleEndian.Uint64([]byte(table[at : at+8])))
}

// At is the elements from one rank to another.
func (m Matrix) At(from, to int) int64 {
	table, n := m.sums.Value(), m.Len()
	return m.sum(table, n, from, to) - m.sum(table, n, from, to-1)
}

// Given is the elements from a rank to the ranks below another.
func (m Matrix) Given(from, to int) int64 { return m.sum(m.sums.Value(), m.Len(), from, to-1) }

// Gotten is the elements for a rank from the ranks below another.
func (m Matrix) Gotten(to, from int) int64 {
	n := m.Len()
	return m.sum(m.sums.Value(), n, n+to, from-1)
}

// Gives is the elements from a rank to all ranks.
func (m Matrix) Gives(rank int) int64 { return m.Given(rank, m.Len()) }

// Gets is the elements for a rank from all ranks.
func (m Matrix) Gets(rank int) int64 { return m.Gotten(rank, m.Len()) }

// Max is the elements of the largest block.
func (m Matrix) Max() (most int64) {
	if m.few {
		return pairTable(m.sums.Value()).most()
	}
	for from := range m.Len() {
		for to := range m.Len() {
			most = max(most, m.At(from, to))
		}
	}
	return most
}

// GiversMost is the most ranks with a block for one rank. In [NewMatrix]'s it is all others.
func (m Matrix) GiversMost() int {
	if m.few {
		return pairTable(m.sums.Value()).giversMost()
	}
	return m.Len() - 1
}

// Busiest is the elements given or gotten by the rank with most of either.
func (m Matrix) Busiest() (most int64) {
	for rank := range m.Len() {
		most = max(most, m.Gives(rank), m.Gets(rank))
	}
	return most
}

// IsEven reports whether a rank gives each rank as much as it gets from it: then it can work in
// place.
func (m Matrix) IsEven(rank int) bool {
	if m.few {
		return pairTable(m.sums.Value()).alike(rank, m.Len()+rank)
	}
	for other := range m.Len() {
		if m.At(rank, other) != m.At(other, rank) {
			return false
		}
	}
	return true
}

// String prints the ranks, the sum and a hash to tell matrices apart: 4x4 (20, 5a3f01c7).
func (m Matrix) String() string {
	sum := uint64(0)
	for rank := range m.Len() {
		sum += uint64(m.Gives(rank))
	}
	h := fnv.New32a()
	if !m.IsZero() {
		h.Write([]byte(m.sums.Value()))
	}
	return fmt.Sprintf("%dx%d (%d, %08x)", m.Len(), m.Len(), sum, h.Sum32())
}

// Rows returns the counts, as [NewMatrix] takes them.
func (m Matrix) Rows() [][]int {
	rows := make([][]int, m.Len())
	for from := range rows {
		rows[from] = make([]int, m.Len())
		for to := range rows {
			rows[from][to] = int(m.At(from, to))
		}
	}
	return rows
}
