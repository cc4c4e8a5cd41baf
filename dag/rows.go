package dag

import "slices"

// rows is an adjacency list in two arrays (compressed sparse rows): the
// neighbours of node i are ids[start[i]:start[i+1]].
type rows struct {
	start []int32 // one more than there are nodes
	ids   []ID
}

func (r rows) len() int { return len(r.start) - 1 }

func (r rows) at(id ID) []ID {
	lo, hi := r.start[id], r.start[id+1]
	return r.ids[lo:hi:hi]
}

func (r rows) has(row, id ID) bool {
	_, ok := slices.BinarySearch(r.at(row), id)
	return ok
}

// sources groups the From ends of edges by their To ends, in no useful order.
func sources(n int, edges []Edge) rows {
	c := newCounting(n)
	for i := range edges {
		c.count(edges[i].To)
	}
	c.place(len(edges))
	for i := range edges {
		c.add(edges[i].To, edges[i].From)
	}
	return c.rows()
}

// transpose turns every edge round. Its rows are ascending, even if r's aren't.
func (r rows) transpose() rows {
	c := newCounting(r.len())
	for _, id := range r.ids {
		c.count(id)
	}
	c.place(len(r.ids))
	for i := range ID(r.len()) {
		for _, id := range r.at(i) {
			c.add(id, i)
		}
	}
	return c.rows()
}

// merge removes repeated ids from ascending rows, in place.
func (r rows) merge() rows {
	n, w := r.len(), int32(0)
	lo := r.start[0]
	for i := range n {
		hi := r.start[i+1]
		r.start[i] = w
		for k := lo; k < hi; k++ {
			if k == lo || r.ids[k] != r.ids[k-1] {
				r.ids[w] = r.ids[k]
				w++
			}
		}
		lo = hi
	}
	r.start[n] = w
	r.ids = r.ids[:w:w]
	return r
}

// counting is a counting sort of ids into rows: count all, place, add all.
type counting struct {
	// next[i+2] counts row i. place makes next[i+1] the place of its next id; in the end row i
	// ends there. So next is the start array of the result, without a second array of cursors.
	next []int32
	ids  []ID
}

func newCounting(n int) counting { return counting{next: make([]int32, n+2)} }

func (c *counting) count(row ID) { c.next[row+2]++ }

func (c *counting) place(total int) {
	for i := 1; i < len(c.next); i++ {
		c.next[i] += c.next[i-1]
	}
	c.ids = make([]ID, total)
}

func (c *counting) add(row, id ID) {
	at := &c.next[row+1]
	c.ids[*at] = id
	*at++
}

func (c *counting) rows() rows { return rows{start: c.next[:len(c.next)-1], ids: c.ids} }
