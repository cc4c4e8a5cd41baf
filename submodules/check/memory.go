package check

import (
	"fmt"
	"slices"
	"sort"

	"github.com/tierflow/tierflow/levels"
)

// value is the symbolic content of bytes: the data of some ranks, combined in
// this order, from an offset in their buffers.
type value struct {
	ranks []levels.Rank
	off   int64
	by    int // the writing step, or caller
}

// caller stands for a step in data of the collective's caller.
const caller = -1

// piece is a value in a range of a region.
type piece struct {
	lo, hi int64
	value
}

// memory is the content of one region, as disjoint pieces by offset.
type memory struct{ pieces []piece }

// from is the index of the first piece ending behind lo.
func (m *memory) from(lo int64) int {
	return sort.Search(len(m.pieces), func(i int) bool { return m.pieces[i].hi > lo })
}

// read returns the content of [lo, hi), or an error if some was never written.
func (m *memory) read(lo, hi int64) ([]piece, error) {
	if lo == hi {
		return nil, nil
	}
	var out []piece
	at := lo
	for i := m.from(lo); i < len(m.pieces) && m.pieces[i].lo < hi; i++ {
		p := m.pieces[i]
		if p.lo > at {
			break
		}
		out = append(out, p.cut(max(p.lo, lo), min(p.hi, hi)))
		at = min(p.hi, hi)
	}
	if at < hi {
		return nil, fmt.Errorf("reads bytes %d to %d, of which byte %d holds nothing", lo, hi, at)
	}
	return out, nil
}

func (p piece) cut(lo, hi int64) piece {
	p.off += lo - p.lo
	p.lo, p.hi = lo, hi
	return p
}

// write puts pieces, given relative to 0, at offset lo.
func (m *memory) write(lo int64, content []piece) {
	if len(content) == 0 {
		return
	}
	hi := lo + content[len(content)-1].hi
	from := m.from(lo)
	to := from
	var put []piece
	for ; to < len(m.pieces) && m.pieces[to].lo < hi; to++ {
		if p := m.pieces[to]; p.lo < lo {
			put = append(put, p.cut(p.lo, lo))
		}
	}
	for _, p := range content {
		p.lo, p.hi = p.lo+lo, p.hi+lo
		put = append(put, p)
	}
	if to > from {
		if p := m.pieces[to-1]; p.hi > hi {
			put = append(put, p.cut(hi, p.hi))
		}
	}
	m.pieces = slices.Replace(m.pieces, from, to, put...)
}

// relative shifts pieces to an origin at lo.
func relative(pieces []piece, lo int64) []piece {
	for i := range pieces {
		pieces[i].lo -= lo
		pieces[i].hi -= lo
	}
	return pieces
}

// combine is a ⊕ b, piece by piece. Both must be data from the same offset, and
// no rank's may be in both.
func combine(a, b []piece) ([]piece, error) {
	var out []piece
	for len(a) > 0 && len(b) > 0 {
		hi := min(a[0].hi, b[0].hi)
		x, y := a[0].cut(a[0].lo, hi), b[0].cut(b[0].lo, hi)
		if x.off != y.off {
			return nil, fmt.Errorf("combines bytes from offset %d with bytes from offset %d", x.off, y.off)
		}
		for _, r := range y.ranks {
			if slices.Contains(x.ranks, r) {
				return nil, fmt.Errorf("combines the data of rank %d twice", r)
			}
		}
		x.ranks = slices.Concat(x.ranks, y.ranks)
		out = append(out, x)
		a, b = advance(a, hi), advance(b, hi)
	}
	return out, nil
}

// advance drops the bytes below lo.
func advance(p []piece, lo int64) []piece {
	if p[0].hi <= lo {
		return p[1:]
	}
	return append([]piece{p[0].cut(lo, p[0].hi)}, p[1:]...)
}
