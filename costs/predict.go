package costs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// ErrUnmeasured is what a prediction wraps that needs a cost the book lacks.
var ErrUnmeasured = errors.New("cost has not been measured")

// The models, as [Prediction.Model] names them.
const (
	StageModel    = "stages"        // fill, stable, drain
	CriticalModel = "critical path" // of single tasks
	PipelineModel = "pipeline"      // segment completions
)

// Prediction is the predicted time of one request with one plan.
type Prediction struct {
	Request  tasks.Request
	Plan     tasks.Plan
	Model    string
	NS       float64 // of the slowest leader
	Leader   int     // that is the slowest: a group of level 0
	Segments int64
	Terms    []Term // of that leader, which add up to NS
}

// Term is one summand: Count times NS.
type Term struct {
	Name  string // a stage or task kind: sbib; of a pipeline: fill, stable, …
	Count int64
	NS    float64 // once
	Key   Key     // of the entry it was taken from
}

// Explain says what the prediction is made of, a line per term, times in
// microseconds.
func (p Prediction) Explain() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v, plan %v\n", p.Request, p.Plan)
	fmt.Fprintf(&b, "  predicted %.1f µs by %s: %d segment%s, slowest is the leader of group %d\n",
		p.NS/1e3, p.Model, p.Segments, plural(p.Segments), p.Leader)
	for _, t := range p.Terms {
		fmt.Fprintf(&b, "  %10.1f µs = %4d × %9.1f  %s\n", float64(t.Count)*t.NS/1e3, t.Count, t.NS/1e3, t.Name)
	}
	return b.String()
}

func plural(n int64) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// Predict prices a request with a plan, from what the book has. Lockstep shapes
// of several phases are priced by stage tasks, dataflow shapes by their pipeline;
// where the book has no pipeline and stages don't overlap (a flat shape, or one
// segment), along the critical path of single tasks. A cost that is missing is
// [ErrUnmeasured], and names its key.
func Predict(r tasks.Request, t *levels.Topology, p tasks.Plan, b *Book) (Prediction, error) {
	return Prediction{}, errors.New("predict")
}

// small is the graph of rank 0 for at most n segments of r.
func small(r tasks.Request, t *levels.Topology, p tasks.Plan, n int64) (*tasks.Graph, error) {
	return nil, errors.New("small")
}

var _ dag.ID
