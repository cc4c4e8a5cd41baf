package tasks

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sort"
)

// Pair is the block from one rank to another.
type Pair struct {
	From, To int
	Count    int64 // elements
}

// newPairTable lays out the pairs of so many ranks.
func newPairTable(ranks int, pairs []Pair) (pairTable, error) {
	lines := make([][]entry, 2*max(ranks, 0)) // the blocks from each rank, then those to each
	for _, p := range pairs {
		if p.From < 0 || p.From >= ranks || p.To < 0 || p.To >= ranks || p.Count < 0 {
			return "", fmt.Errorf("count %d from rank %d to rank %d: counts are not negative, and ranks are 0 to %d", p.Count, p.From, p.To, ranks-1)
		}
		if p.Count > 0 {
			lines[p.From] = append(lines[p.From], entry{int64(p.To), p.Count})
			lines[ranks+p.To] = append(lines[ranks+p.To], entry{int64(p.From), p.Count})
		}
	}
	head, body := binary.LittleEndian.AppendUint64(nil, uint64(ranks)), []byte(nil)
	for i, line := range lines {
		head = binary.LittleEndian.AppendUint64(head, uint64(len(body)/entryBytes))
		var err error
		if body, err = appendLine(body, line); err != nil {
			return "", fmt.Errorf("counts of rank %d: %w", i%ranks, err)
		}
	}
	head = binary.LittleEndian.AppendUint64(head, uint64(len(body)/entryBytes))
	return pairTable(append(head, body...)), nil
}

// entry is a rank and the elements of its block; in a table with the sum of those before.
type entry struct{ rank, count int64 }

const entryBytes = 16

// appendLine adds the entries of a rank, with the sum up to each.
func appendLine(body []byte, line []entry) ([]byte, error) {
	slices.SortFunc(line, func(a, b entry) int { return int(a.rank - b.rank) })
	sum := int64(0)
	for i, e := range line {
		switch {
		case i > 0 && e.rank == line[i-1].rank:
			return nil, fmt.Errorf("rank %d is there twice", e.rank)
		case e.count > math.MaxInt64-sum:
			return nil, fmt.Errorf("with rank %d they add up to 2^63 or more", e.rank)
		}
		sum += e.count
		body = binary.LittleEndian.AppendUint64(body, uint64(e.rank))
		body = binary.LittleEndian.AppendUint64(body, uint64(sum))
	}
	return body, nil
}

// pairTable is the pairs of ranks with a block, in words of 8 bytes, little-endian: the number n
// of ranks; the beginning of each of 2n lines, in entries, and the end of the last one; the
// entries of all lines, each a rank and the sum up to it. Line r has the blocks from rank r,
// line n+r those to it.
type pairTable string

// at is a word.
func (t pairTable) at(i int) int64 {
	return int64(binary.LittleEndian.Uint64([]byte(t[8*i : 8*i+8])))
}

// line returns the words of a line's first entry and of the next line's.
func (t pairTable) line(i int) (lo, hi int) {
	first := 2 + 2*int(t.at(0)) // word of the first entry of all
	return first + 2*int(t.at(1+i)), first + 2*int(t.at(2+i))
}

// sum is a line's elements up to a rank, included.
func (t pairTable) sum(line, rank int) int64 {
	lo, hi := t.line(line)
	n := sort.Search((hi-lo)/2, func(i int) bool { return t.at(lo+2*i) > int64(rank) })
	if n == 0 {
		return 0
	}
	return t.at(lo + 2*n - 1)
}

// most is the largest count.
func (t pairTable) most() (most int64) {
	for line := range t.at(0) {
		before := int64(0)
		for at, hi := t.line(int(line)); at < hi; at += 2 {
			sum := t.at(at + 1)
			most, before = max(most, sum-before), sum
		}
	}
	return most
}

// giversMost returns the most ranks with a block for one rank.
func (t pairTable) giversMost() (most int) {
	n := int(t.at(0))
	for taker := range n {
		lo, hi := t.line(n + taker)
		most = max(most, (hi-lo)/2)
	}
	return most
}

// alike reports whether two lines have the same entries.
func (t pairTable) alike(a, b int) bool {
	fromA, toA := t.line(a)
	fromB, toB := t.line(b)
	return t[8*fromA:8*toA] == t[8*fromB:8*toB]
}
