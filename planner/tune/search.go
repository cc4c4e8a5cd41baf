package tune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/measure"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Method is a way to find out how long plans take. All methods write the same
// kind of table.
type Method uint8

// The methods, as HAN compares them (section III-C, figures 8 and 9).
const (
	_                Method = iota
	Exhaustive              // every configuration is run with every size
	ExhaustivePruned        // the same, less what heuristics leave out
	Tasks                   // some are run once, the others and all sizes are predicted from that, and the best run again
	TasksPruned             // the same, less what heuristics leave out
	maxMethod
)

var methodNames = [maxMethod]string{
	Exhaustive: "exhaustive", ExhaustivePruned: "exhaustive+heuristics", Tasks: "tasks", TasksPruned: "tasks+heuristics",
}

// String is the method's name in tables and flags.
func (m Method) String() string {
	if m == 0 || m >= maxMethod {
		return fmt.Sprintf("Method(%d)", uint8(m))
	}
	return methodNames[m]
}

// Methods lists the methods.
func Methods() []Method { return []Method{Exhaustive, ExhaustivePruned, Tasks, TasksPruned} }

// ParseMethod finds a method by its name.
func ParseMethod(s string) (Method, error) {
	for _, m := range Methods() {
		if m.String() == s {
			return m, nil
		}
	}
	return 0, fmt.Errorf("unknown method %q; known are %v", s, Methods())
}

func (m Method) tasks() bool      { return m == Tasks || m == TasksPruned }
func (m Method) heuristics() bool { return m == ExhaustivePruned || m == TasksPruned }

// NewMeasurement sums up what a meter returned.
func NewMeasurement(r tasks.Request, t *levels.Topology, p tasks.Plan, timing measure.Timing) table.Measurement {
	m := table.Measurement{
		Collective: r.Coll.String(), Levels: table.SizesOf(t), Bytes: r.Bytes(), Plan: p.String(),
		Samples: len(timing.Series),
	}
	m.NS, m.Low, m.High = medianInterval(timing.Series)
	return m
}

// Intervals says what the intervals of a table are.
const Intervals = "95% interval of the median, by order statistics"

// medianInterval is the median and its 95% interval: that between two of the
// samples in order, which few outliers don't move.
func medianInterval(samples []float64) (median, low, high float64) {
	if len(samples) == 0 {
		return 0, 0, 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	n := float64(len(sorted))
	off := int(0.98 * math.Sqrt(n)) // 1.96 standard deviations of a binomial of half
	middle := len(sorted) / 2
	return costs.Median(sorted), sorted[max(0, middle-off-1+len(sorted)%2)], sorted[min(len(sorted)-1, middle+off)]
}

// Search looks for the fastest plans of some requests on one topology. Its
// functions may be nil.
type Search struct {
	Topology *levels.Topology
	Requests []tasks.Request // each collective with each size
	Space    Space
	Method   Method
	Stop     stats.Stop   // the same for every measurement
	Table    *table.Table // what is known already, of other machines or of an interrupted search; it is added to
	Keep     int          // candidates of each point besides the best flat one; 0: 3

	// Interrupted is asked before each measurement if the search shall end with
	// what it has. All ranks must get the same answer.
	Interrupted func(ctx context.Context) (bool, error)
	// Progress hears before each measurement, and at the end, how many are done
	// of how many.
	Progress func(done, planned int)
	// Doing hears before measurements of what kind they are, and how many.
	Doing func(kind string, n int)
	// Save gets the table from time to time.
	Save func(*table.Table) error

	sizes      table.Sizes
	job        []work // what is to be measured next
	done       int
	tried      map[string]bool              // work, by key
	candidates [][]Configuration            // by request
	where      map[string][]int             // requests that have a plan, by planKey, the smallest first
	known      map[string]table.Measurement // of this machine, by pointKey
	refused    map[string]bool              // what can't be lowered, by pointKey
	probes     *probes                      // of the tasks methods
}

// work is measurements to make together.
type work struct {
	request tasks.Request
	plan    tasks.Plan
	rivals  []tasks.Plan // that take turns with plan
	kind    string
	run     func(ctx context.Context, m Meter, w *work) error
}

// The kinds of measurements, as [Search.Doing] hears of them.
const (
	Collectives = "whole collectives"
	Pipelines   = "pipelines"
	Stages      = "stages"
	Races       = "races"
)

// key names w among all work.
func (w *work) key() string { return fmt.Sprint(pointKey(w.request, w.plan), w.rivals) }

// count is how many measurements w makes.
func (w *work) count() int { return 1 + len(w.rivals) }

// ErrInterrupted is what Run returns, besides the table, when it ended early.
var ErrInterrupted = errors.New("interrupted: the table has what was measured until then")

// Run measures what Table doesn't have yet and returns it with the entries that
// follow. All ranks call it. Its error wraps [ErrInterrupted] if that was the
// reason to end, and then the table is good.
func (s *Search) Run(ctx context.Context, m Meter) (*table.Table, error) {
	switch {
	case ctx == nil:
		return s.Table, fmt.Errorf("search: %w", errNoContext)
	case m == nil:
		return s.Table, fmt.Errorf("search: %w", errNoMeter)
	case s.Topology == nil || s.Topology.Depth() == 0:
		return s.Table, fmt.Errorf("search: %w", errNoTopology)
	}
	s.plan()
	for saved := 0; len(s.job) > 0; {
		s.tell()
		if s.Interrupted != nil {
			stop, err := s.Interrupted(ctx)
			if err != nil {
				return s.Table, err
			}
			if stop {
				s.decide()
				return s.Table, fmt.Errorf("%d of %d measurements: %w", s.done, s.done+s.left(), ErrInterrupted)
			}
		}
		w := &s.job[0]
		if s.Doing != nil {
			s.Doing(w.kind, w.count())
		}
		err := w.run(ctx, m, w)
		// What a lowering refuses, it refuses on all ranks before anything runs.
		if err != nil && !errors.Is(err, submodules.ErrUnsupported) {
			return s.Table, fmt.Errorf("measure %v with %v: %w", w.request, w.plan, err)
		}
		s.done += w.count()
		if s.job = s.job[1:]; len(s.job) == 0 {
			s.job = s.next()
		}
		if s.Save != nil && s.done >= saved+saveEvery {
			saved = s.done
			s.decide()
			if err := s.Save(s.Table); err != nil {
				return s.Table, err
			}
		}
	}
	s.tell()
	s.decide()
	return s.Table, nil
}

func (s *Search) tell() {
	if s.Progress != nil {
		s.Progress(s.done, s.done+s.left())
	}
}

// left is how many measurements are still to make, as far as that is known.
func (s *Search) left() (n int) {
	for i := range s.job {
		n += s.job[i].count()
	}
	if s.probes != nil && n > 0 && s.job[0].rivals == nil {
		n += 2 * len(s.Requests) // a choice and the rule's plan
	}
	return n
}

// saveEvery is after how many measurements the table is saved: what is lost by a
// kill is seconds of measuring.
const saveEvery = 100

// Planned is how many measurements are left to make, and how many configurations
// the method compares, each size for itself. What the tasks methods measure depends
// on what they see: of their measurements it is those that come first.
func (s *Search) Planned() (measurements, configurations int) {
	s.plan()
	for _, all := range s.candidates {
		for _, c := range all {
			configurations += b2i(c.Rejected == "")
		}
	}
	return s.left(), configurations
}

// plan finds out what there is to measure first.
func (s *Search) plan() {
	if s.Table == nil {
		s.Table = &table.Table{Version: table.Version}
	}
	s.sizes = table.SizesOf(s.Topology)
	s.Space.Heuristics = s.Method.heuristics()
	s.done, s.tried, s.refused = 0, map[string]bool{}, map[string]bool{}
	s.known = recall(s.Table, s.sizes)
	s.survey()
	if s.probes = nil; s.Method.tasks() {
		s.probes = newProbes(s)
	}
	s.job = s.next()
}

// next lists what is to be measured next, in an order that leaves any beginning a
// fair sample of the whole: what a budget cuts off should not be one kind of plan.
// Nothing is tried twice.
func (s *Search) next() (job []work) {
	all := s.everything
	if s.probes != nil {
		all = s.probes.next
	}
	for _, w := range all() {
		if key := w.key(); !s.tried[key] {
			s.tried[key] = true
			job = append(job, w)
		}
	}
	rng := rand.New(rand.NewPCG(1, uint64(len(job))))
	rng.Shuffle(len(job), func(i, j int) { job[i], job[j] = job[j], job[i] })
	return job
}

// everything is each configuration with each size.
func (s *Search) everything() (all []work) {
	for i, r := range s.Requests {
		for _, c := range s.candidates[i] {
			if _, ok := s.known[pointKey(r, c.Plan)]; !ok && c.Rejected == "" {
				all = append(all, work{request: r, plan: c.Plan, run: s.collective, kind: Collectives})
			}
		}
	}
	return all
}

func planKey(r tasks.Request, p tasks.Plan) string { return r.Coll.String() + " " + p.String() }

func pointKey(r tasks.Request, p tasks.Plan) string {
	return fmt.Sprintf("%v %d %v", r.Coll, r.Bytes(), p)
}

// recall indexes what a table has measured on a machine, by pointKey.
func recall(t *table.Table, sizes table.Sizes) map[string]table.Measurement {
	known := map[string]table.Measurement{}
	for _, m := range t.Measured {
		if m.Levels.Compare(sizes) == 0 {
			known[fmt.Sprintf("%s %d %s", m.Collective, m.Bytes, m.Plan)] = m
		}
	}
	return known
}

// survey lists the configurations of all requests.
func (s *Search) survey() {
	s.candidates, s.where = make([][]Configuration, len(s.Requests)), map[string][]int{}
	for i, r := range s.Requests {
		s.candidates[i] = s.Space.Configurations(r, s.Topology)
		for _, c := range s.candidates[i] {
			if c.Rejected == "" {
				key := planKey(r, c.Plan)
				s.where[key] = append(s.where[key], i)
			}
		}
	}
	for _, all := range s.where {
		slices.SortFunc(all, func(i, j int) int { return cmp.Compare(s.Requests[i].Count, s.Requests[j].Count) })
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (s *Search) collective(ctx context.Context, m Meter, w *work) error {
	timing, err := m.Collective(ctx, w.request, w.plan, s.Stop)
	if err != nil {
		return err
	}
	s.note(w.request, w.plan, timing.Series, 0)
	return nil
}

// note keeps a measurement, in place of one that is there of the same.
func (s *Search) note(r tasks.Request, p tasks.Plan, series []float64, turns int) {
	one := NewMeasurement(r, s.Topology, p, measure.Timing{Series: series})
	one.Turns = turns
	s.Table.Measured = append(s.Table.Measured, one)
	s.known[pointKey(r, p)] = one
}

func (s *Search) pipeline(ctx context.Context, m Meter, w *work) error {
	key, err := costs.PipelineKey(w.request, s.Topology, w.plan)
	if err != nil {
		return err
	}
	p, err := m.Pipeline(ctx, w.request, w.plan, s.Stop)
	if err != nil {
		return err
	}
	s.Table.Book().AddPipeline(key, p)
	return nil
}

func (s *Search) stages(ctx context.Context, m Meter, w *work) error {
	_, err := m.Stages(ctx, w.request, w.plan, s.Stop, s.Table.Book())
	return err
}
