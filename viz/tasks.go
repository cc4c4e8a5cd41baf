package viz

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Tasks draws the task graphs of some ranks of one request. Tasks of one name in the same group are one
// task. [Drawing.ConnectTasks] connects those that exchange data. The error names a fault of opt, or a
// rank given twice.
func Tasks(graphs []*tasks.Graph, opt Options) (*Drawing, error) {
	if len(graphs) == 0 {
		return nil, errNothing
	}
	d, err := newDrawing(graphs[0], opt)
	if err != nil {
		return nil, err
	}
	for _, g := range graphs {
		if err := d.place(g); err != nil {
			return nil, err
		}
		if err := d.addTasks(g, opt); err != nil {
			return nil, fmt.Errorf("rank %d: %w", g.Rank, err)
		}
	}
	d.sortEdges()
	return d, nil
}

func title(g *tasks.Graph) []string {
	return []string{fmt.Sprintf("%v on %v", g.Request, g.On.Topology()), g.Plan.String()}
}

func tiers(h *levels.Hierarchy) []levels.Level {
	all := make([]levels.Level, h.Depth())
	for k := range all {
		all[k] = h.Level(k)
	}
	return all
}

func (d *Drawing) addTasks(g *tasks.Graph, opt Options) error {
	keep, err := taskEdges(g, opt.Reduce)
	if err != nil {
		return err
	}
	at := make([]int, g.Len()) // node of a task, or -1
	for id := range at {
		t := g.Node(dag.ID(id))
		at[id] = -1
		if opt.Shows(int(t.Segment)) {
			at[id] = len(d.Nodes)
			d.Nodes = append(d.Nodes, Node{
				Rank: g.Rank, Name: t.String(), Label: t.String(), Level: t.Kind.Symbol, Segment: int(t.Segment),
				Detail: fmt.Sprintf("%s %v > %v", people(t.Group), t.Src, t.Dst),
			})
		}
	}
	for _, e := range g.Edges() {
		if at[e.From] < 0 || at[e.To] < 0 || !keep(e) {
			continue
		}
		edge := Edge{From: at[e.From], To: at[e.To], Kind: taskEdgeKinds[e.Kind]}
		if edge.Kind == Data {
			edge.Stages = int(g.Node(e.To).Phase - g.Node(e.From).Phase)
		}
		d.Edges = append(d.Edges, edge)
	}
	return nil
}

var taskEdgeKinds = map[dag.EdgeKind]EdgeKind{tasks.DataEdge: Data, tasks.SlotEdge: Slot, tasks.OrderEdge: Order, tasks.StageEdge: Stage}

// taskEdges tells the edges to draw. Order edges must not make others superfluous, for dataflow
// shapes don't wait for them: another edge is dropped only because of others of the remaining
// kinds.
func taskEdges(g *tasks.Graph, reduce bool) (keep func(dag.Edge) bool, err error) {
	if !reduce {
		return func(dag.Edge) bool { return true }, nil
	}
	all, err := g.Freeze(nil)
	if err != nil {
		return nil, err
	}
	waited, err := g.Freeze(func(e dag.Edge) bool { return e.Kind != tasks.OrderEdge })
	if err != nil {
		return nil, err
	}
	all, waited = all.Reduction(), waited.Reduction()
	return func(e dag.Edge) bool {
		if e.Kind == tasks.OrderEdge {
			return all.Has(e.From, e.To)
		}
		return waited.Has(e.From, e.To)
	}, nil
}

// people lists a group's ranks, its leader marked: r0* r2 r4.
func people(g *levels.Group) string {
	const most = 8
	var b strings.Builder
	for i, r := range g.Ranks {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(g.Ranks)-most)
			break
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "r%d", r)
		if i == g.Leader {
			b.WriteByte('*')
		}
	}
	return b.String()
}

func (d *Drawing) sortEdges() {
	slices.SortFunc(d.Edges, func(a, b Edge) int {
		return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From), cmp.Compare(a.Kind, b.Kind))
	})
}
