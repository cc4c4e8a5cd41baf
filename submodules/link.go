package submodules

import (
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
)

// Link returns the rank that a step speaks with, -1 for none, and the number of the edge between
// the two. outgoing is of the end that speaks. With [Program.Describe] and [Program.Next] it
// makes a program a trace.Linked.
func (p *Program) Link(step int32) (peer levels.Rank, edge int32, outgoing bool) {
	s := p.Step(dag.ID(step))
	if s.Peer < 0 || !s.Kind.Outgoing() && !s.Kind.Incoming() {
		return -1, 0, false
	}
	return p.Peers[s.Peer].Rank, s.Edge, s.Kind.Outgoing()
}

// Next lists the successors of a step.
func (p *Program) Next(step int32) []int32 {
	var all []int32
	for _, id := range p.Succ(dag.ID(step)) {
		all = append(all, int32(id))
	}
	return all
}
