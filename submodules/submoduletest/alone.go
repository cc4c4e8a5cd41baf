package submoduletest

import (
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// fromShapes tells whether there are shapes that make tasks of an operation.
func fromShapes(op tasks.Collective) bool { return op != tasks.Allreduce }

// compile makes the program of one rank.
func (u underTest) compile(r tasks.Request, h *levels.Hierarchy, p tasks.Plan, rank levels.Rank, reg submodules.Registry) (*submodules.Program, error) {
	if fromShapes(u.op) {
		return submodules.CompileFor(r, h, p, rank, reg)
	}
	return submodules.Compile(Alone(u.op, r, h, p, rank), h.Topology().Size(), reg)
}

// Alone is one rank's task graph with nothing but tasks of one operation, a task
// per segment of the request, in its group at the lowest level of h: for tests of
// operations that no shape asks for, and of one task by itself.
func Alone(op tasks.Collective, r tasks.Request, h *levels.Hierarchy, p tasks.Plan, rank levels.Rank) *tasks.Graph {
	kind := tasks.Kind{Symbol: h.Level(0).Symbol, Op: op}
	g := &tasks.Graph{Request: r, Plan: p, On: h, Rank: rank, Phases: []tasks.Phase{{Kind: kind}}}
	size, bytes := int64(r.Type.Size()), r.Bytes()
	segment := max(size, p.Segment/max(size, 1)*size)
	for off := int64(0); off < bytes || off == 0 && r.Coll == tasks.Barrier; off += max(segment, 1) {
		dst := tasks.Span{Region: tasks.Recv, Off: off, Len: min(segment, bytes-off)}
		src := dst
		if r.Reduces() && !r.InPlace {
			src.Region = tasks.Send
		}
		id := g.Add(tasks.Task{Kind: kind, Segment: int32(g.Segments), Group: h.Group(rank, 0), Src: src, Dst: dst})
		if g.Segments++; g.Segments > p.Window {
			g.Connect(id-dag.ID(p.Window), id, tasks.SlotEdge)
		}
	}
	return g
}
