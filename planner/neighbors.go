package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/tasks"
)

// Neighbors gives send[i] to rank peers[i] and gets recv[i] from it, for all i: the halos of a grid, or the
// edges of a graph. Each rank has a list of its own, in any order; it may be empty. A rank may be its own
// peer, and none is there twice. Blocks have any lengths, and may be empty. Those to receive must not
// overlap with each other, nor with those to send.
//
// The ranks tell each other their lists, on each call. Where one rank names another, the other must name
// it, and expect as many elements as it is given. Otherwise it is an error on all ranks, naming the two. A
// wrong list of one rank is an error on all, too. Each rank keeps the lists of all, 32 bytes for each entry.
// The compiled program is kept for the next call with the same lists on all ranks.
func Neighbors[T any](ctx context.Context, c *Comm, peers []int, send, recv [][]T) error {
	h, r, err := neighborRequest(ctx, c, peers, send, recv)
	if err != nil {
		return err
	}
	h.send.gather()
	if err := c.runNow(ctx, r, asBytes(h.send.all), asBytes(h.recv.all)); err != nil {
		return err
	}
	h.recv.spread()
	return nil
}

// PrepareNeighbors compiles [Neighbors] for many runs. All ranks must make it at the same time: they tell
// each other their lists once.
//
// Blocks side by side in one array, in the order of peers' ranks, are used in their
// place; others are copied, to send before a run and to receive after it. A run allocates
// nothing. It has the steps of MPI_Neighbor_alltoallv_init (MPI 4.0, 8.8), with one edge for
// each pair of ranks.
func PrepareNeighbors[T any](ctx context.Context, c *Comm, peers []int, send, recv [][]T) (*Collective, error) {
	h, r, err := neighborRequest(ctx, c, peers, send, recv)
	if err != nil {
		return nil, err
	}
	col, err := c.collective(ctx, r, asBytes(h.send.all), asBytes(h.recv.all))
	if err != nil {
		return nil, err
	}
	if col.copies = h.send.copied || h.recv.copied; col.copies {
		col.around.before = h.send.gather
		col.around.after = func(err error) {
			if err == nil {
				h.recv.spread()
			}
		}
	}
	return col, nil
}

// halos are a rank's blocks to its neighbours and from them.
type halos[T any] struct{ send, recv row[T] }

// row is blocks in the order of ranks, none of them empty, and an array of all of them.
type row[T any] struct {
	blocks [][]T
	all    []T
	copied bool // all is memory of its own
}

// newRow finds the array of blocks that lie side by side, or makes one.
func newRow[T any](blocks [][]T) row[T] {
	blocks = slices.DeleteFunc(blocks, func(b []T) bool { return len(b) == 0 })
	w, n := row[T]{blocks: blocks}, 0
	for _, b := range blocks {
		n += len(b)
	}
	if n == 0 {
		return w
	}
	if first := blocks[0]; cap(first) >= n {
		w.all = first[:n:n]
		if w.isInPlace() {
			return w
		}
	}
	w.all, w.copied = make([]T, n), true
	return w
}

// isInPlace reports whether each block lies in the array, at its place.
func (w *row[T]) isInPlace() bool {
	at := 0
	for _, b := range w.blocks {
		if &w.all[at] != &b[0] {
			return false
		}
		at += len(b)
	}
	return true
}

// gather copies the blocks to the array.
func (w *row[T]) gather() {
	if !w.copied {
		return
	}
	at := 0
	for _, b := range w.blocks {
		at += copy(w.all[at:], b)
	}
}

// spread copies the array to the blocks.
func (w *row[T]) spread() {
	if !w.copied {
		return
	}
	at := 0
	for _, b := range w.blocks {
		at += copy(b, w.all[at:])
	}
}

// neighborRequest exchanges the lists, and makes the request. A rank with wrong arguments tells the
// others: they would wait for it otherwise.
func neighborRequest[T any](ctx context.Context, c *Comm, peers []int, send, recv [][]T) (h halos[T], r tasks.Request, err error) {
	r = tasks.Request{Coll: tasks.Neighbors}
	if err := c.checkCall(ctx); err != nil {
		return h, r, fmt.Errorf("%v: %w", r.Coll, err)
	}
	_, err = elementOf[T](r.Coll, r.Op)
	wrong := errors.Join(err, checkPeers(peers, len(send), len(recv), c.Size()))
	if wrong == nil {
		wrong = checkApart(send, recv)
	}
	var mine []edge
	if wrong == nil {
		mine = edgesOf(peers, send, recv)
		h = halos[T]{newRow(pick(send, mine)), newRow(pick(recv, mine))}
	}
	if r.Matrix, err = c.settleEdges(ctx, mine, wrong); err != nil {
		return h, r, fmt.Errorf("%v: %w", r.Coll, err)
	}
	r.Count = r.Matrix.Max()
	r, _, _, err = requestOf(c, r, noRoot, h.send.all, h.recv.all)
	return h, r, err
}

// checkPeers returns an error unless there are as many blocks as peers, all of them different
// ranks.
func checkPeers(peers []int, send, recv, ranks int) error {
	if send != len(peers) || recv != len(peers) {
		return fmt.Errorf("%d peers, %d blocks to send and %d to receive; they must be equal", len(peers), send, recv)
	}
	sorted := slices.Sorted(slices.Values(peers))
	for i, p := range sorted {
		switch {
		case p < 0 || p >= ranks:
			return fmt.Errorf("peer %d: ranks are 0 to %d", p, ranks-1)
		case i > 0 && p == sorted[i-1]:
			return fmt.Errorf("peer %d is there twice; one block holds all that it is given", p)
		}
	}
	return nil
}

// checkApart returns an error if a block to receive overlaps with another block.
func checkApart[T any](send, recv [][]T) error {
	for i, b := range recv {
		for j, other := range recv {
			if i < j && overlap(asBytes(b), asBytes(other)) {
				return fmt.Errorf("blocks %d and %d to receive overlap", i, j)
			}
		}
		for j, out := range send {
			if overlap(asBytes(b), asBytes(out)) {
				return fmt.Errorf("block %d to receive and block %d to send overlap", i, j)
			}
		}
	}
	return nil
}

// edge is an entry of a rank's list: a peer and the counts of elements.
type edge struct {
	peer, gives, expects int64
	at                   int // in its list; nobody else needs to know
}

// edgesOf returns a rank's list, ordered by its peers' ranks.
func edgesOf[T any](peers []int, send, recv [][]T) []edge {
	all := make([]edge, len(peers))
	for i, p := range peers {
		all[i] = edge{int64(p), int64(len(send[i])), int64(len(recv[i])), i}
	}
	slices.SortFunc(all, func(a, b edge) int { return cmp.Compare(a.peer, b.peer) })
	return all
}

// pick returns blocks in the order of edges.
func pick[T any](blocks [][]T, edges []edge) [][]T {
	all := make([][]T, len(edges))
	for i, e := range edges {
		all[i] = blocks[e.at]
	}
	return all
}

// settleEdges tells all ranks this one's list, or only that its arguments are wrong. It returns
// the counts of all ranks for each other.
func (b *base) settleEdges(ctx context.Context, mine []edge, wrong error) (m tasks.Matrix, err error) {
	degrees := make([]int64, b.topology.Size())
	degrees[b.comm.Rank()] = int64(len(mine))
	if wrong != nil {
		degrees[b.comm.Rank()] = -1
	}
	err = b.tellTable(ctx, tasks.Request{Count: 1}, degrees)
	if err = cmp.Or(wrong, err); err != nil {
		return m, err
	}
	if rank := slices.Index(degrees, -1); rank >= 0 {
		return m, fmt.Errorf("rank %d has peers or blocks that can't be; its own error says which", rank)
	}
	all, err := b.tellEdges(ctx, mine, degrees)
	if err != nil {
		return m, err
	}
	return agreeOnEdges(all)
}

// tellTable gathers a table on all ranks from each rank's own part.
func (b *base) tellTable(ctx context.Context, r tasks.Request, table []int64) error {
	r.Coll, r.Type, r.InPlace = tasks.Allgather, tasks.Int64, true
	return b.runInternal(ctx, r, peersCall, asBytes(table))
}

// peersCall is for the lists of neighbors.
const peersCall purpose = "the peers of neighbors"

// tellEdges tells all ranks this one's edges, and returns those of all ranks. degrees is their number
// by rank.
func (b *base) tellEdges(ctx context.Context, mine []edge, degrees []int64) (all [][]edge, err error) {
	const fields = 3
	counts, sum, before := make([]int, len(degrees)), 0, 0
	for rank, n := range degrees {
		if rank == int(b.comm.Rank()) {
			before = sum
		}
		counts[rank] = fields * int(n)
		sum += counts[rank]
	}
	all = make([][]edge, len(degrees))
	if sum == 0 {
		return all, nil
	}
	r := tasks.Request{}
	if r.Counts, err = tasks.NewCounts(counts); err != nil {
		return nil, err
	}
	r.Count = r.Counts.Max()
	table := make([]int64, sum)
	for i, e := range mine {
		copy(table[before+fields*i:], []int64{e.peer, e.gives, e.expects})
	}
	if err := b.tellTable(ctx, r, table); err != nil {
		return nil, err
	}
	for rank, n := range degrees {
		for range n {
			all[rank] = append(all[rank], edge{peer: table[0], gives: table[1], expects: table[2]})
			table = table[fields:]
		}
	}
	return all, nil
}

// agreeOnEdges returns the ranks' counts for each other, or an error naming two in
// disagreement: the same on all ranks.
func agreeOnEdges(all [][]edge) (tasks.Matrix, error) {
	var pairs []tasks.Pair
	for rank, edges := range all {
		for _, e := range edges {
			theirs := all[e.peer]
			i, there := slices.BinarySearchFunc(theirs, int64(rank), func(e edge, rank int64) int { return cmp.Compare(e.peer, rank) })
			switch {
			case !there:
				return tasks.Matrix{}, fmt.Errorf("rank %d has peer %d, which doesn't have rank %d as a peer", rank, e.peer, rank)
			case theirs[i].expects != e.gives:
				return tasks.Matrix{}, fmt.Errorf("rank %d gives rank %d %d elements, which expects %d", rank, e.peer, e.gives, theirs[i].expects)
			}
			pairs = append(pairs, tasks.Pair{From: rank, To: int(e.peer), Count: e.gives})
		}
	}
	return tasks.NewPairs(len(all), pairs)
}
