package trials

import (
	"context"
	"math"

	meter "github.com/tierflow/tierflow/costs/measure"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/tasks"
)

// passageMeter measures collectives and single messages.
type passageMeter interface {
	tune.Meter
	Passage(ctx context.Context, from, to levels.Rank, n int64, stop stats.Stop) (meter.Passage, error)
}

var (
	_ passageMeter = (*meter.Bench)(nil)
	_ passageMeter = (*meter.Simulated)(nil)
)

// sendFraction is the share of a message's time in which its sender is busy with it, as
// "MPI collectives in MPICH2" assumes.
const sendFraction = 1.0 / 3

// shareModel is the model of that paper: times of messages of a size between two nodes
// and between two ranks of one.
type shareModel struct {
	between, within meter.Passage
	nodes, ranks    int // nodes, and ranks of the largest node
}

// newShareModel measures messages of n bytes.
func newShareModel(ctx context.Context, m passageMeter, t *levels.Topology, n int64, stop stats.Stop) (s shareModel, err error) {
	s.nodes = t.Nodes()
	count, first, second := make([]int, s.nodes), make([]levels.Rank, s.nodes), make([]levels.Rank, s.nodes)
	largest := int32(0)
	for r := range levels.Rank(t.Size()) {
		node := t.Node(r)
		switch count[node]++; count[node] {
		case 1:
			first[node] = r
		case 2:
			second[node] = r
		}
		if count[node] > count[largest] {
			largest = node
		}
	}
	s.ranks, n = count[largest], max(n, 1)
	if s.nodes > 1 {
		if s.between, err = m.Passage(ctx, first[0], first[1], n, stop); err != nil {
			return s, err
		}
	}
	if s.ranks > 1 {
		s.within, err = m.Passage(ctx, first[largest], second[largest], n, stop)
	}
	return s, err
}

// times returns a collective's time by the model, and its part inside nodes, ns.
// A message by itself goes along trees; cut into segments, which follow each other, it
// takes as long as its bytes take on each link. A result for all ranks goes to the leaders
// and back: twice that; of a scan twice inside nodes. The model has no others: 0.
func (s shareModel) times(coll tasks.Collective, isCut bool) (total, inside float64) {
	between := (1 + sendFraction) * math.Log2(float64(s.nodes)) * s.between.Alone
	inside = math.Log2(float64(s.ranks)) * s.within.Alone
	if isCut {
		between, inside = s.between.Stream, s.within.Stream
	}
	switch coll {
	case tasks.Bcast, tasks.Reduce:
	case tasks.Scan, tasks.Exscan:
		inside *= 2
	case tasks.Allreduce, tasks.Barrier:
		between, inside = 2*between, 2*inside
	default:
		return 0, 0
	}
	return between + inside, inside
}
