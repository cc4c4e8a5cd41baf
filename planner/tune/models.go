package tune

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/tierflow/tierflow/costs/derived"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Models measures no size of any request: it estimates the time of a message in the context of
// each algorithm, and prices all sizes and numbers of nodes by closed forms.
var Models = &Method{
	name:  table.Models,
	about: "runs experiments with six bcast algorithms, and predicts\neach size and number of nodes from models of them;\nonly bcasts among nodes of one rank",
	begin: func(k *knowledge) strategy { return newModels(k) },
	narrow: func(s *Space) {
		s.Shapes = or(s.Shapes, []tasks.Shape{tasks.Flat})
		s.Submodules = or(s.Submodules, []string{submodules.Adapt})
		s.Segments = or(s.Segments, []int64{tasks.Whole})
		s.Inners = or(s.Inners, []int64{0, 8 << 10, 32 << 10})
		s.Numbers = []int{0}
	},
}

// errNotModelled is the answer of Models without a model.
var errNotModelled = errors.New("method models knows bcasts among nodes of one rank, or among the ranks of one node; none is asked for")

// models is the strategy of [Models].
type models struct {
	*knowledge
	found   map[int64]*modelFindings // by the size of pieces
	pieces  []int64                  // with experiments, ascending
	largest int                      // request; -1: there is none
}

// modelFindings is the outcome of the experiments with one size of pieces so far.
type modelFindings struct {
	derived.Parameters
	estimation Estimation
	grounds    grounds
}

var (
	_ choosy     = (*models)(nil)
	_ farsighted = (*models)(nil)
)

func newModels(k *knowledge) *models {
	m := &models{knowledge: k, found: map[int64]*modelFindings{}, largest: -1}
	if !isModelled(k.topology) {
		return m
	}
	for i, r := range k.requests {
		if r.Coll == tasks.Bcast && (m.largest < 0 || r.Bytes() > k.requests[m.largest].Bytes()) {
			m.largest = i
		}
	}
	if m.largest < 0 {
		return m
	}
	most := k.requests[m.largest].Bytes()
	for _, n := range append(slices.Clone(k.space.Inners), k.space.Segments...) {
		if n > 0 && n < tasks.Whole && n < most && m.found[n] == nil {
			m.addExperiments(n, most)
		}
	}
	if len(m.pieces) == 0 {
		m.addExperiments(min(8<<10, max(most, 8)), most)
	}
	slices.Sort(m.pieces)
	return m
}

// addExperiments plans experiments with pieces of n bytes.
func (m *models) addExperiments(n, most int64) {
	m.pieces = append(m.pieces, n)
	m.found[n] = &modelFindings{
		Parameters: derived.Parameters{Algorithms: map[string]derived.Algorithm{}},
		estimation: Estimation{Topology: m.topology, Registry: m.space.Registry, Segment: n, Most: max(most, 2*n), Stop: m.stop},
	}
}

// isModelled reports whether all ranks of a topology are equally far from each other.
func isModelled(t *levels.Topology) bool { return t.Nodes() == 1 || t.Nodes() == t.Size() }

// checkRequests refuses requests without a modelled one.
func (m *models) checkRequests() error {
	if m.largest < 0 {
		return errNotModelled
	}
	return nil
}

// next lists γ first, then the algorithms.
func (m *models) next() (all []work) {
	if m.largest < 0 {
		return nil
	}
	r := m.requests[m.largest]
	for _, n := range m.pieces {
		f := m.found[n]
		begin := work{request: r, plan: tasks.Plan{Segment: n}, kind: Experiments, run: func(ctx context.Context, meter Meter, _ *work) (err error) {
			x, ok := meter.(Experimenter)
			if !ok {
				return errNoExperiments
			}
			f.grounds, err = f.estimation.measureGrounds(ctx, x)
			f.Gamma = f.grounds.gamma
			return err
		}}
		if !m.tried[begin.keyOf()] {
			all = append(all, begin)
			continue
		}
		for _, model := range derived.Models() {
			all = append(all, work{request: r, plan: model.Plan(m.topology, n).Over(tasks.Plan{Segment: n}), kind: Experiments, run: func(ctx context.Context, meter Meter, _ *work) error {
				one, _, err := f.estimation.measureAlgorithm(ctx, meter.(Experimenter), model, &f.grounds)
				f.Algorithms[model.Algorithm] = one
				return err
			}})
		}
	}
	return all
}

// estimate prices a plan by its model.
func (m *models) estimate(i int, p tasks.Plan) (table.Candidate, bool) {
	return m.priceBcast(m.requests[i], p, m.topology.Size())
}

// priceBcast prices a plan of a bcast among so many ranks.
func (m *models) priceBcast(r tasks.Request, p tasks.Plan, ranks int) (c table.Candidate, ok bool) {
	c = table.Candidate{Plan: p.String(), Parsed: p, From: table.FromPredicted}
	if m.largest < 0 || r.Coll != tasks.Bcast || !p.Shape.IsFlat() && p.Shape != tasks.Han {
		return c, false
	}
	k := m.topology.Depth() - 1
	if m.topology.Nodes() == 1 && !p.Shape.IsFlat() {
		k = 0
	}
	choice, ok := p.For(tasks.Kind{Symbol: m.topology.Level(k).Symbol, Op: tasks.Bcast})
	if !ok || choice.Submodule != submodules.Adapt || choice.N != 0 {
		return c, false
	}
	piece := min(p.Segment, r.Bytes())
	if choice.Inner > 0 {
		piece = min(piece, choice.Inner)
	}
	c.NS, ok = m.parametersFor(piece).NS(choice.Algorithm, ranks, r.Bytes(), piece)
	return c, ok && c.NS > 0
}

// parametersFor returns the parameters of the largest pieces up to piece, or else of the smallest.
func (m *models) parametersFor(piece int64) *derived.Parameters {
	at := m.pieces[0]
	for _, n := range m.pieces {
		if n <= piece {
			at = n
		}
	}
	return &m.found[at].Parameters
}

// farNodes times the measured nodes are the most with priced entries.
const farNodes = 16

// entriesElsewhere lists entries for other numbers of nodes, twice as many each.
func (m *models) entriesElsewhere() (all []table.Entry) {
	symbol := string(rune(m.topology.Level(m.topology.Depth() - 1).Symbol))
	size := m.topology.Size()
	if m.topology.Nodes() < 2 {
		return nil
	}
	for ranks := 2; ranks <= farNodes*size; ranks *= 2 {
		for i, r := range m.requests {
			e := table.Entry{Collective: r.Coll.String(), Levels: maps.Clone(m.sizes), Place: m.placeOf(r), Bytes: r.Bytes()}
			e.Levels[symbol] = ranks
			for _, c := range m.candidates[i] {
				if one, ok := m.priceBcast(r, c.Plan, ranks); ok && c.Rejected == "" && ranks != size {
					e.Candidates = append(e.Candidates, one)
				}
			}
			if slices.SortStableFunc(e.Candidates, byTime); len(e.Candidates) > 0 {
				e.Candidates = e.Candidates[:min(keepBest, len(e.Candidates))]
				all = append(all, e)
			}
		}
	}
	return all
}
