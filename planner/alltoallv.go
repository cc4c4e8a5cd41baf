package planner

import (
	"context"
	"errors"
	"fmt"

	"github.com/tierflow/tierflow/tasks"
)

// Alltoallv is [Alltoall] of blocks that differ for each pair of ranks: this rank gives
// rank i the next sendCounts[i] elements of send and gets the next recvCounts[i] elements
// of recv from it, in the order of ranks. 0 is allowed. In place a rank must give each rank
// as many elements as it gets from it.
//
// All ranks must make it at the same time: they tell each other their counts. What rank i
// says that it gives rank j must be what rank j expects; otherwise making it is an error on
// all ranks, which names the two. So are counts or buffers of one rank that can't be. It
// takes at most [tasks.MaxMatrix] ranks.
func Alltoallv[T any](ctx context.Context, c *Comm, send []T, sendCounts []int, recv []T, recvCounts []int) (*Collective, error) {
	r, from, to, err := paired(ctx, c, send, sendCounts, recv, recvCounts)
	if err != nil {
		return nil, err
	}
	return c.collective(r, from, to)
}

// AlltoallMatrix is [Alltoallv] where every rank knows what all ranks give each other: it
// tells nobody. All ranks give the same matrix.
func AlltoallMatrix[T any](c *Comm, send, recv []T, counts tasks.Matrix) (*Collective, error) {
	return typed(c, tasks.Request{Coll: tasks.Alltoall, Matrix: counts, Count: counts.Max()}, noRoot, send, recv)
}

// AlltoallvNow is [Alltoallv] and a run in one call. What it compiles is kept for the next
// call with the same counts on all ranks; these are exchanged each time.
func AlltoallvNow[T any](ctx context.Context, c *Comm, send []T, sendCounts []int, recv []T, recvCounts []int) error {
	r, from, to, err := paired(ctx, c, send, sendCounts, recv, recvCounts)
	if err != nil {
		return err
	}
	return c.now(ctx, r, from, to)
}

// paired exchanges counts, and makes the request. A rank whose arguments are wrong tells the
// others, who would wait for it otherwise.
func paired[T any](ctx context.Context, c *Comm, send []T, sendCounts []int, recv []T, recvCounts []int) (r tasks.Request, from, to []byte, err error) {
	r = tasks.Request{Coll: tasks.Alltoall}
	if err := c.usable(ctx); err != nil {
		return r, nil, nil, fmt.Errorf("alltoallv: %w", err)
	}
	from, to = asBytes(send), asBytes(recv)
	same := len(from) > 0 && len(to) > 0 && &from[0] == &to[0]
	wrong := errors.Join(checkCounts("send", len(send), sendCounts, c.Size()), checkCounts("receive", len(recv), recvCounts, c.Size()))
	if !same && overlap(from, to) {
		wrong = errors.Join(wrong, errOverlap)
	}
	if r, err = settlePairs[T](ctx, c, pairCounts{send: sendCounts, recv: recvCounts, inPlace: same}, wrong); err != nil {
		return r, nil, nil, fmt.Errorf("alltoallv: %w", err)
	}
	return untype(c, r, noRoot, send, recv)
}

// settlePairs tells all ranks this one's counts, or that it has none for what is wrong, and
// returns the request that all of them make.
func settlePairs[T any](ctx context.Context, c *Comm, mine pairCounts, wrong error) (r tasks.Request, err error) {
	r = tasks.Request{Coll: tasks.Alltoall}
	if c.Size() > tasks.MaxMatrix {
		return r, fmt.Errorf("%d ranks; allowed are %d", c.Size(), tasks.MaxMatrix)
	}
	_, err = elementOf[T](r.Coll)
	wrong = errors.Join(err, wrong)
	mine.wrong = wrong != nil
	all, err := c.tellCounts(ctx, mine)
	if wrong != nil {
		err = wrong
	}
	if err == nil {
		r.Matrix, err = agreeOnPairs(all)
	}
	r.Count = r.Matrix.Max()
	return r, err
}

// checkCounts returns an error unless counts are one for each rank and those of a buffer.
func checkCounts(what string, elements int, counts []int, ranks int) error {
	if len(counts) != ranks {
		return fmt.Errorf("%d counts to %s, for %d ranks", len(counts), what, ranks)
	}
	sum := 0
	for rank, n := range counts {
		if n < 0 || n > elements-sum {
			return fmt.Errorf("counts %v to %s: with that of rank %d they are more than the %d elements there are, or it is negative", counts, what, rank, elements)
		}
		sum += n
	}
	if sum != elements {
		return fmt.Errorf("counts %v to %s: they add up to %d, and there are %d elements", counts, what, sum, elements)
	}
	return nil
}

// pairCounts is what a rank says in an alltoallv before it is made.
type pairCounts struct {
	send, recv []int // recv is nil if open
	wrong      bool  // it has no counts that could be, and an error of its own
	inPlace    bool
	open       bool // it takes what it is given
}

// Bits of the first number that a rank says.
const (
	sayWrong = 1 << iota
	sayInPlace
	sayOpen
)

// borrowCounts takes the call that is kept, or makes one if there is none or it is in use.
func (c *Comm) borrowCounts() (*countsCall, error) {
	c.mu.Lock()
	x := c.counts
	c.counts = nil
	c.mu.Unlock()
	if x != nil {
		return x, nil
	}
	n := c.Size()
	x = &countsCall{table: make([]int64, n*(1+2*n))}
	r := tasks.Request{Coll: tasks.Allgather, Count: int64(1 + 2*n), Type: tasks.Int64, InPlace: true}
	var err error
	x.col, err = c.internal(r, pairCall, asBytes(x.table))
	return x, err
}

// returnCounts keeps a call for the next one, unless the communicator is closed.
func (c *Comm) returnCounts(x *countsCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cache != nil {
		c.counts = x
	}
}

// tellCounts tells all ranks what this one says, and returns what they do.
func (c *Comm) tellCounts(ctx context.Context, mine pairCounts) ([]pairCounts, error) {
	x, err := c.borrowCounts()
	if err != nil {
		return nil, err
	}
	n := c.Size()
	length := 1 + 2*n
	own := x.table[c.Rank()*length:][:length]
	clear(own)
	mine.write(own)
	if err := x.col.Run(ctx); err != nil {
		return nil, err
	}
	defer c.returnCounts(x)
	all := make([]pairCounts, n)
	for rank := range all {
		all[rank] = readPairs(x.table[rank*length:][:length], n)
	}
	return all, nil
}

// write puts what a rank says into its row, which is zero.
func (p *pairCounts) write(row []int64) {
	switch {
	case p.wrong:
		row[0] = sayWrong
		return
	case p.open:
		row[0] = sayOpen
	case p.inPlace:
		row[0] = sayInPlace
	}
	for i, n := range p.send {
		row[1+i] = int64(n)
	}
	for i, n := range p.recv {
		row[1+len(p.send)+i] = int64(n)
	}
}

// readPairs returns what a rank of so many has put into its row.
func readPairs(row []int64, ranks int) pairCounts {
	p := pairCounts{wrong: row[0]&sayWrong != 0, inPlace: row[0]&sayInPlace != 0, open: row[0]&sayOpen != 0}
	for i := range ranks {
		p.send, p.recv = append(p.send, int(row[1+i])), append(p.recv, int(row[1+ranks+i]))
	}
	return p
}

// agreeOnPairs returns the matrix of what ranks give each other, or what is wrong with it:
// the same on all ranks.
func agreeOnPairs(all []pairCounts) (tasks.Matrix, error) {
	rows := make([][]int, len(all))
	for rank, said := range all {
		if said.wrong {
			return tasks.Matrix{}, fmt.Errorf("rank %d has counts or buffers that can't be; its own error says which", rank)
		}
		rows[rank] = said.send
	}
	for from := range all {
		for to := range all {
			if gives, expects := all[from].send[to], all[to].recv[from]; !all[to].open && gives != expects {
				return tasks.Matrix{}, fmt.Errorf("rank %d gives rank %d %d elements, which expects %d", from, to, gives, expects)
			}
		}
	}
	for rank, said := range all {
		for other := range all {
			if gives, gets := said.send[other], said.recv[other]; said.inPlace && gives != gets {
				return tasks.Matrix{}, fmt.Errorf("rank %d works in place; it gives rank %d %d elements and gets %d, which must be equal", rank, other, gives, gets)
			}
		}
	}
	return tasks.NewMatrix(rows)
}
