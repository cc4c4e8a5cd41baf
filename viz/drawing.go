package viz

import (
	"errors"
	"fmt"

	"github.com/tierflow/tierflow/levels"
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
	Detail  string // on which memory, and with whom
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
	Data             // uses what the earlier task left
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

// Options choose what is drawn. The zero value draws everything.
type Options struct {
	// Reduce leaves out the edges inside a rank that other edges imply.
	Reduce bool
	// From and To limit the drawing to the segments From ≤ n < To; a To of 0
	// means up to the last. Edges to what is left out are left out.
	From, To int
	// Check is asked from time to time. Its error ends [Steps] and [Tasks], and is theirs.
	// What writes the drawing stops then. nil: nobody is asked.
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

// isOver reports whether nobody wants the rest of what is written, i-th of it next.
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

// place appends a rank and remembers where it lives.
func (d *Drawing) place(r levels.Rank, t *levels.Topology) error {
	for _, p := range d.Ranks {
		if p.Rank == r {
			return fmt.Errorf("rank %d is given twice", r)
		}
	}
	name := ""
	for k := t.Depth() - 2; k >= 0; k-- {
		if name != "" {
			name += "/"
		}
		name += t.DomainName(r, k)
	}
	d.Ranks = append(d.Ranks, Place{r, name})
	return nil
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
