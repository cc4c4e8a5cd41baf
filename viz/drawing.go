package viz

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Drawing is a graph made ready to be written: nodes by rank, in their canonical
// order, and edges between them. [Tasks] and [Steps] make it.
type Drawing struct {
	Title []string       // lines
	Ranks []Place        // in the order they were given
	Tiers []levels.Level // from the inside out
	Nodes []Node         // rank after rank
	Edges []Edge         // by To, then From, then Kind

	opt Options // it is drawn with
}

// Place is a rank and where it lives: the names of its domains, outermost first.
type Place struct {
	Rank levels.Rank
	Name string // node1/numa2
}

// String is rank 3, node1/numa2.
func (p Place) String() string {
	if p.Name == "" {
		return fmt.Sprintf("rank %d", p.Rank)
	}
	return fmt.Sprintf("rank %d, %s", p.Rank, p.Name)
}

// Node is a task or a step.
type Node struct {
	Rank    levels.Rank
	Name    string // unique in its rank: ib#3 of a task, 12 of a step
	Label   string // ib#3, or ib#3 send r0>r4 64KiB
	Level   byte   // its symbol
	Segment int
	Detail  string // its memory and its peers
	// IsCritical says that the node is on the path of [Drawing.MarkPath].
	IsCritical bool
}

// ID is the node's name among all ranks: r0.ib#3.
func (n *Node) ID() string { return fmt.Sprintf("r%d.%s", n.Rank, n.Name) }

// Edge says that a node waits for another. From and To are indexes into
// [Drawing.Nodes].
type Edge struct {
	From, To int
	Kind     EdgeKind
	Stages   int // of the pipeline that a data edge spans; 0 of other kinds
	// IsCritical says that the path of [Drawing.MarkPath] goes this way.
	IsCritical bool
}

// EdgeKind says why. The zero value is invalid.
type EdgeKind uint8

// The kinds of edges: the first four between tasks of one rank, the fifth
// between steps of one rank, the next two between two ranks.
const (
	_       EdgeKind = iota
	Data             // uses the earlier task's result
	Slot             // reuses memory of the earlier task
	Order            // the next segment of the same kind; dataflow shapes don't wait for it
	Stage            // belongs to the next stage of a lockstep shape
	After            // runs after the earlier step
	Message          // from a send to its recv, or from a task to one that takes data from it
	Notice           // from a notify to its await
	Path             // the critical path goes this way, though none of them waits for the other: a processor was busy
	maxEdge
)

var edgeNames = [maxEdge]string{Data: "data", Slot: "slot", Order: "order", Stage: "stage", After: "after", Message: "message", Notice: "notice", Path: "path"}

// String is the kind's name.
func (k EdgeKind) String() string {
	if k == 0 || k >= maxEdge {
		return fmt.Sprintf("EdgeKind(%d)", uint8(k))
	}
	return edgeNames[k]
}

// Options choose the part to be drawn. The zero value draws everything.
type Options struct {
	// Reduce leaves out the edges inside a rank that other edges imply.
	Reduce bool
	// From and To limit the drawing to the segments From ≤ n < To; a To of 0 means up to the
	// last. Edges to other segments are left out.
	From, To int
	// Check is asked from time to time. Its error ends [Steps] and [Tasks], and is theirs. The
	// writing of the drawing stops then. nil: nobody is asked.
	Check func() error
}

// ask asks Check.
func (o Options) ask() error {
	if o.Check == nil {
		return nil
	}
	return o.Check()
}

// askEvery is how many nodes or edges are written before Check is asked again.
const askEvery = 1 << 12

// isOver reports whether nobody wants the rest of the output, the i-th part of it next.
func (d *Drawing) isOver(i int) bool { return i%askEvery == 0 && d.opt.ask() != nil }

func (o Options) check() error {
	if o.From < 0 || o.To < 0 || o.To > 0 && o.To <= o.From {
		return fmt.Errorf("segments %d to %d: From is 0 or more, To is 0 for all that follow or more than From", o.From, o.To)
	}
	return nil
}

// Shows reports whether a segment is drawn.
func (o Options) Shows(segment int) bool { return segment >= o.From && (o.To == 0 || segment < o.To) }

// errNothing is returned when there is no graph to take a title from.
var errNothing = errors.New("nothing to draw: no rank's graph was given")

// index is the place of a rank among the drawn ones, -1 if it is none of them.
func (d *Drawing) index(r levels.Rank) int {
	return slices.IndexFunc(d.Ranks, func(p Place) bool { return p.Rank == r })
}

// newDrawing begins the drawing of a request, of which first is one rank's graph.
func newDrawing(first *tasks.Graph, opt Options) (*Drawing, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	return &Drawing{Title: title(first), Tiers: tiers(first.On), opt: opt}, nil
}

// place appends a graph's rank with its domains, unless nobody wants the drawing any more.
func (d *Drawing) place(g *tasks.Graph) error {
	if err := d.opt.ask(); err != nil {
		return err
	}
	r, t := g.Rank, g.On.Topology()
	if d.index(r) >= 0 {
		return fmt.Errorf("rank %d is given twice", r)
	}
	var names []string
	for k := t.Depth() - 2; k >= 0; k-- {
		names = append(names, t.DomainName(r, k))
	}
	d.Ranks = append(d.Ranks, Place{r, strings.Join(names, "/")})
	return nil
}

// nodeName is a node's name and its rank.
type nodeName struct {
	rank levels.Rank
	name string
}

// nodesByName returns the indexes of all nodes.
func (d *Drawing) nodesByName() map[nodeName]int {
	at := make(map[nodeName]int, len(d.Nodes))
	for i := range d.Nodes {
		at[nodeName{d.Nodes[i].Rank, d.Nodes[i].Name}] = i
	}
	return at
}

// of returns the nodes of one rank and the index of the first.
func (d *Drawing) of(r levels.Rank) (nodes []Node, first int) {
	for first < len(d.Nodes) && d.Nodes[first].Rank != r {
		first++
	}
	end := first
	for end < len(d.Nodes) && d.Nodes[end].Rank == r {
		end++
	}
	return d.Nodes[first:end], first
}
