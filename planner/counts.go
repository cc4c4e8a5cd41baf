package planner

import (
	"context"
	"sync"

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
	run   *executor.Run
	table []int64 // a row for each rank: its bits, elements to each rank, elements from each rank
}

// spareCounts keeps an ended countsCall for the next alltoallv.
type spareCounts struct {
	mu     sync.Mutex
	call   *countsCall // nil: none, or in use
	closed bool        // it keeps none anymore
}

// take takes the kept call, or makes one if there is none or it is in use.
func (s *spareCounts) take(b *base) (*countsCall, error) {
	s.mu.Lock()
	x := s.call
	s.call = nil
	s.mu.Unlock()
	if x != nil {
		return x, nil
	}
	n := b.topology.Size()
	x = &countsCall{table: make([]int64, n*(1+2*n))}
	r := tasks.Request{Coll: tasks.Allgather, Count: int64(1 + 2*n), Type: tasks.Int64, InPlace: true}
	var err error
	x.run, err = b.internal(r, pairCall, asBytes(x.table))
	return x, err
}

// put keeps a call for the next one, unless the communicator is closed.
func (s *spareCounts) put(x *countsCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.call = x
	}
}

// close drops the kept call.
func (s *spareCounts) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.call, s.closed = nil, true
}

// tell sends this rank's message to all ranks, and returns the messages of all.
func (s *spareCounts) tell(ctx context.Context, b *base, mine pairCounts) ([]pairCounts, error) {
	x, err := s.take(b)
	if err != nil {
		return nil, err
	}
	n := b.topology.Size()
	length := 1 + 2*n
	own := x.table[int(b.comm.Rank())*length:][:length]
	clear(own)
	mine.write(own)
	if err := x.run.Do(ctx); err != nil {
		return nil, err
	}
	defer s.put(x)
	all := make([]pairCounts, n)
	for rank := range all {
		all[rank] = readPairs(x.table[rank*length:][:length], n)
	}
	return all, nil
}
