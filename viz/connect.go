package viz

import (
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// ConnectTasks draws an edge from a task to the same one of another rank that takes its data, by a message
// or out of exposed memory. The programs are those that the drawn tasks are lowered to.
func (d *Drawing) ConnectTasks(programs []*submodules.Program) {
	at := map[taskOf]int{}
	for i := range d.Nodes {
		at[taskOf{d.Nodes[i].Rank, d.Nodes[i].Name}] = i
	}
	seen := map[[2]int]bool{}
	for _, q := range programs {
		if d.isOver(0) {
			return
		}
		brings := bringsData(q)
		for _, p := range programs {
			eachPair(p, q, func(send, recv dag.ID) {
				from, isDrawn := at[taskOf{p.Rank, p.Task(p.Step(send)).String()}]
				to, isToo := at[taskOf{q.Rank, q.Task(q.Step(recv)).String()}]
				if isDrawn && isToo && brings[recv] && !seen[[2]int{from, to}] {
					seen[[2]int{from, to}] = true
					d.Edges = append(d.Edges, Edge{From: from, To: to, Kind: Message})
				}
			})
		}
	}
	d.sortEdges()
}

// taskOf names a task of a rank.
type taskOf struct {
	rank levels.Rank
	name string
}

// eachPair calls do with what p says to q: a send and its recv, a notify and its await.
func eachPair(p, q *submodules.Program, do func(from, to dag.ID)) {
	out, in := p.PeerIndex(q.Rank), q.PeerIndex(p.Rank)
	if out < 0 || in < 0 {
		return
	}
	heard := q.Peers[in].In
	for n, id := range p.Peers[out].Out {
		if n == len(heard) {
			return
		}
		do(id, heard[n])
	}
}

// bringsData tells of each step whether it is a recv, or an await of memory that another
// step reads.
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
