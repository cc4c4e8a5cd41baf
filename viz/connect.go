package viz

import (
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// ConnectTasks draws an edge from a task to the same one of another rank that takes its data, by
// a message or out of exposed memory. The programs are those of the drawn tasks.
func (d *Drawing) ConnectTasks(programs []*submodules.Program) {
	at := d.nodesByName()
	seen := map[[2]int]bool{}
	for _, q := range programs {
		if d.isOver(0) {
			return
		}
		brings := bringsData(q)
		for _, p := range programs {
			eachPair(p, q, func(send, recv dag.ID) {
				from, fromDrawn := at[nodeName{p.Rank, p.Task(p.Step(send)).String()}]
				to, toDrawn := at[nodeName{q.Rank, q.Task(q.Step(recv)).String()}]
				if fromDrawn && toDrawn && brings[recv] && !seen[[2]int{from, to}] {
					seen[[2]int{from, to}] = true
					d.Edges = append(d.Edges, Edge{From: from, To: to, Kind: Message})
				}
			})
		}
	}
	d.sortEdges()
}

// eachPair calls do with both ends of each message from p to q: a send and its recv, a notify
// and its await.
func eachPair(p, q *submodules.Program, do func(from, to dag.ID)) {
	out, in := p.PeerIndex(q.Rank), q.PeerIndex(p.Rank)
	if out < 0 || in < 0 {
		return
	}
	incoming := q.Peers[in].In
	for n, id := range p.Peers[out].Out {
		if n == len(incoming) {
			return
		}
		do(id, incoming[n])
	}
}

// bringsData tells of each step whether it is a recv, or an await of memory that another step
// reads.
func bringsData(p *submodules.Program) []bool {
	all := make([]bool, p.Len())
	for id := range all {
		s := p.Step(dag.ID(id))
		all[id] = all[id] || s.Kind == submodules.RecvStep
		for _, from := range []tasks.Span{s.A, s.B} {
			if from.Region == tasks.Peer {
				all[from.Ref] = true
			}
		}
	}
	return all
}
