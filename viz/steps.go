package viz

import (
	"fmt"
	"strconv"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Steps draws the programs of some ranks of one request. Sends are connected to their recvs and notifies
// to their awaits where both ends are drawn; ends that don't match are for package check to find, here
// they stay unconnected. The error names a fault of opt, or a rank given twice.
func Steps(programs []*submodules.Program, opt Options) (*Drawing, error) {
	if len(programs) == 0 {
		return nil, errNothing
	}
	d, err := newDrawing(programs[0].Tasks, opt)
	if err != nil {
		return nil, err
	}
	s := stepDrawer{Drawing: d}
	for _, p := range programs {
		if err := s.place(p.Tasks); err != nil {
			return nil, err
		}
		s.addSteps(p)
	}
	for i, p := range programs {
		if err := opt.ask(); err != nil {
			return nil, err
		}
		for _, q := range programs {
			s.connect(i, p, q)
		}
	}
	s.sortEdges()
	return s.Drawing, nil
}

type stepDrawer struct {
	*Drawing
	at [][]int // per program, node of a step, or -1
}

func (s *stepDrawer) addSteps(p *submodules.Program) {
	at := make([]int, p.Len())
	for id := range at {
		step := p.Step(dag.ID(id))
		at[id] = -1
		if segment := int(p.Task(step).Segment); s.opt.Shows(segment) {
			at[id] = len(s.Nodes)
			s.Nodes = append(s.Nodes, Node{
				Rank: p.Rank, Name: strconv.Itoa(id), Label: p.Label(step), Level: p.Task(step).Kind.Symbol,
				Segment: segment, Detail: memory(step),
			})
		}
	}
	edges := p.Frozen
	if s.opt.Reduce {
		edges = edges.Reduction()
	}
	for id := range at {
		for _, next := range edges.Succ(dag.ID(id)) {
			s.edge(at[id], at[next], After)
		}
	}
	s.at = append(s.at, at)
}

func (s *stepDrawer) edge(from, to int, k EdgeKind) {
	if from >= 0 && to >= 0 {
		s.Edges = append(s.Edges, Edge{From: from, To: to, Kind: k})
	}
}

// connect draws what p, the i-th program, says to q.
func (s *stepDrawer) connect(i int, p, q *submodules.Program) {
	j := s.index(q.Rank)
	eachPair(p, q, func(from, to dag.ID) {
		k := Message
		if p.Step(from).Kind == submodules.NotifyStep {
			k = Notice
		}
		s.edge(s.at[i][from], s.at[j][to], k)
	})
}

// memory says what a step reads and writes.
func memory(s *submodules.Step) string {
	switch {
	case s.Kind == submodules.ReduceStep:
		return fmt.Sprintf("%v = %v + %v", s.Dst, s.A, s.B)
	case s.Kind == submodules.CopyStep:
		return fmt.Sprintf("%v = %v", s.Dst, s.A)
	case s.Dst != tasks.Span{}:
		return s.Dst.String()
	case s.A != tasks.Span{}:
		return s.A.String()
	}
	return ""
}
