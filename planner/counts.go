package planner

import (
	"context"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/tasks"
)

// pairCounts is a rank's message to all others before an alltoallv.
type pairCounts struct {
	send, recv []int // recv is nil if open
	wrong      bool  // its arguments are wrong; its own error has the details
	inPlace    bool
	open       bool // it takes any counts
}

// Bits of the first number of a rank's message.
const (
	sayWrong = 1 << iota
	sayInPlace
	sayOpen
)

// write puts a rank's message into its row. The row is zero before.
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

// readPairs returns the message in the row of one of so many ranks.
func readPairs(row []int64, ranks int) pairCounts {
	p := pairCounts{wrong: row[0]&sayWrong != 0, inPlace: row[0]&sayInPlace != 0, open: row[0]&sayOpen != 0}
	for i := range ranks {
		p.send, p.recv = append(p.send, int(row[1+i])), append(p.recv, int(row[1+ranks+i]))
	}
	return p
}

// countsCall is an allgather of the ranks' counts.
type countsCall struct {
	run     *executor.Run
	table   []int64 // a row for each rank: its bits, elements to each rank, elements from each rank
	inStore place
}

func (x *countsCall) place() *place    { return &x.inStore }
func (x *countsCall) footprint() int64 { return x.run.Footprint() + 8*int64(len(x.table)) }

// countsCall compiles one.
func (b *base) countsCall(r tasks.Request) (*countsCall, error) {
	n := b.topology.Size()
	x := &countsCall{table: make([]int64, n*(1+2*n))}
	var err error
	x.run, err = b.internal(r, pairCall, asBytes(x.table))
	return x, err
}

// tellPairs tells this rank's message to all ranks, and returns the messages of all.
func (c *Comm) tellPairs(ctx context.Context, mine pairCounts) ([]pairCounts, error) {
	n := c.topology.Size()
	length := 1 + 2*n
	r := tasks.Request{Coll: tasks.Allgather, Count: int64(length), Type: tasks.Int64, InPlace: true}
	borrowed, err := c.store.borrow(use{pairCall, r}, func() (program, error) { return c.countsCall(r) })
	if err != nil {
		return nil, err
	}
	x := borrowed.(*countsCall)
	own := x.table[int(c.comm.Rank())*length:][:length]
	clear(own)
	mine.write(own)
	if err := x.run.Do(ctx); err != nil {
		return nil, err
	}
	defer c.store.giveBack(x)
	all := make([]pairCounts, n)
	for rank := range all {
		all[rank] = readPairs(x.table[rank*length:][:length], n)
	}
	return all, nil
}
