package goal

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
)

// ErrUnsaid is wrapped by errors about steps without words in GOAL.
var ErrUnsaid = errors.New("GOAL has messages and computations only")

// FromPrograms returns the schedule of programs, by rank: all of one request. Copies and
// reductions take as long as on the machine.
func FromPrograms(all []submodules.Compiled, m *machine.Machine) (*Schedule, error) {
	s := &Schedule{Ranks: make([][]Op, len(all))}
	for rank := range all {
		w := writer{machine: m, size: len(all), tags: map[lane]int64{}}
		for range all[rank].Passes {
			if err := w.add(all[rank].Whole); err != nil {
				return nil, err
			}
		}
		if err := w.add(all[rank].Rest); err != nil {
			return nil, err
		}
		s.Ranks[rank] = w.ops
	}
	return s, nil
}

// writer makes one rank's ops.
type writer struct {
	machine *machine.Machine
	size    int // ranks
	ops     []Op
	gate    []int32        // waited for by the first ops of the next pass
	tags    map[lane]int64 // next tag
}

// lane is the messages to a rank, or those from it.
type lane struct {
	peer levels.Rank
	out  bool
}

// mostOps bounds a rank's ops: a request of many passes would fill the memory.
const mostOps = 1 << 22

// add adds a program's steps behind those there are.
func (w *writer) add(p *submodules.Program) error {
	if p == nil || p.Len() == 0 {
		return nil
	}
	if len(w.ops)+p.Len() > mostOps {
		return fmt.Errorf("%v: over %d steps on rank %d", p.Request, mostOps, p.Rank)
	}
	place := make([]int32, p.Len()) // by step, of its op
	before := make([][]int32, p.Len())
	var last []int32
	for _, id := range p.Order() {
		op, err := w.op(p, id)
		if err != nil {
			return err
		}
		op.After = before[id]
		if len(op.After) == 0 {
			op.After = w.gate
		}
		slices.Sort(op.After)
		place[id] = int32(len(w.ops))
		w.ops = append(w.ops, op)
		next := p.Succ(id)
		for _, n := range next {
			before[n] = append(before[n], place[id])
		}
		if len(next) == 0 {
			last = append(last, place[id])
		}
	}
	for peer := range p.Peers {
		at := &p.Peers[peer]
		w.tags[lane{at.Rank, true}] += int64(len(at.Out))
		w.tags[lane{at.Rank, false}] += int64(len(at.In))
	}
	w.gate = []int32{int32(len(w.ops))} // one op in place of ends × beginnings
	w.ops = append(w.ops, Op{Kind: Calc, After: last})
	return nil
}

// op returns a step's op, without its order.
func (w *writer) op(p *submodules.Program, id dag.ID) (Op, error) {
	s := p.Step(id)
	switch s.Kind {
	case submodules.SendStep:
		peer := p.Peers[s.Peer].Rank
		return Op{Kind: Send, Size: s.Len(), Peer: peer, Tag: w.tags[lane{peer, true}] + int64(s.Edge)}, nil
	case submodules.RecvStep:
		peer := p.Peers[s.Peer].Rank
		return Op{Kind: Recv, Size: s.Len(), Peer: peer, Tag: w.tags[lane{peer, false}] + int64(s.Edge)}, nil
	case submodules.CopyStep:
		return Op{Kind: Calc, Size: int64(math.Round(w.machine.Step + float64(s.Len())*w.machine.CopyByte))}, nil
	case submodules.ReduceStep:
		return Op{Kind: Calc, Size: int64(math.Round(w.machine.Step + float64(s.Len())*w.machine.ReduceByte))}, nil
	case submodules.JoinStep:
		return Op{Kind: Calc}, nil
	}
	return Op{}, fmt.Errorf("%s: %w", p.Label(s), ErrUnsaid)
}
