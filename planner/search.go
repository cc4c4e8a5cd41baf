package planner

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
	"github.com/tierflow/tierflow/levels"
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
	Tasks                   // each configuration is run once, and all sizes are predicted from that
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

// Meter measures. Every rank calls it with the same arguments in the same order,
// and all get the same results. *[measure.Bench] is one.
type Meter interface {
	Collective(ctx context.Context, r tasks.Request, p tasks.Plan, stop costs.Stop) (measure.Timing, error)
	Pipeline(ctx context.Context, r tasks.Request, p tasks.Plan, stop costs.Stop) (costs.Pipeline, error)
	Stages(ctx context.Context, r tasks.Request, p tasks.Plan, stop costs.Stop, book *costs.Book) ([]costs.Series, error)
}

var _ Meter = (*measure.Bench)(nil)

// Measurement is a collective that was measured with a plan.
type Measurement struct {
	Collective string  `json:"collective"`
	Levels     Sizes   `json:"levels"`
	Bytes      int64   `json:"bytes"`
	Plan       string  `json:"plan"`
	NS         float64 `json:"ns"` // median over samples of the slowest rank's time
	Low        float64 `json:"low_ns"`
	High       float64 `json:"high_ns"`
	Samples    int     `json:"samples"`
}

// measurement checks a measurement that was read.
func (p *tableReader) measurement(m *Measurement, at int64) bool {
	before := len(p.errs)
	p.point(m.Collective, m.Levels, m.Bytes, at)
	p.plan(m.Plan, at)
	if err := checkTimes(m.NS, m.Low, m.High); err != nil {
		p.add(at, "plan %q: %w", m.Plan, err)
	}
	return len(p.errs) == before
}

// NewMeasurement sums up what a meter returned.
func NewMeasurement(r tasks.Request, t *levels.Topology, p tasks.Plan, timing measure.Timing) Measurement {
	m := Measurement{
		Collective: r.Coll.String(), Levels: SizesOf(t), Bytes: r.Bytes(), Plan: p.String(),
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
	Stop     costs.Stop // the same for every measurement
	Table    *Table     // what is known already, of other machines or of an interrupted search; it is added to
	Keep     int        // candidates of each point besides the best flat one; 0: 3

	// Interrupted is asked before each measurement if the search shall end with
	// what it has. All ranks must get the same answer.
	Interrupted func(ctx context.Context) (bool, error)
	// Progress hears before each measurement, and at the end, how many are done
	// of how many.
	Progress func(done, planned int)
	// Save gets the table from time to time.
	Save func(*Table) error

	sizes      Sizes
	job        []work
	done       int
	candidates [][]Configuration      // by request
	where      map[string][]int       // requests that have a plan, by planKey, the smallest first
	known      map[string]Measurement // of this machine, by pointKey
}

// work is one measurement to make.
type work struct {
	request tasks.Request
	plan    tasks.Plan
	run     func(ctx context.Context, m Meter, w *work) error
}

// ErrInterrupted is what Run returns, besides the table, when it ended early.
var ErrInterrupted = errors.New("interrupted: the table has what was measured until then")

// Run measures what Table doesn't have yet and returns it with the entries that
// follow. All ranks call it. Its error wraps [ErrInterrupted] if that was the
// reason to end, and then the table is good.
func (s *Search) Run(ctx context.Context, m Meter) (*Table, error) {
	s.plan()
	s.done = 0
	var ended error
	for i := range s.job {
		if s.Progress != nil {
			s.Progress(i, len(s.job))
		}
		if s.Interrupted != nil {
			stop, err := s.Interrupted(ctx)
			if err != nil {
				return s.Table, err
			}
			if stop {
				ended = fmt.Errorf("%d of %d measurements: %w", i, len(s.job), ErrInterrupted)
				break
			}
		}
		w := &s.job[i]
		err := w.run(ctx, m, w)
		// What a lowering refuses, it refuses on all ranks before anything runs.
		if err != nil && !errors.Is(err, submodules.ErrUnsupported) {
			return s.Table, fmt.Errorf("measure %v with %v: %w", w.request, w.plan, err)
		}
		s.done++
		if s.Save != nil && s.done%saveEvery == 0 {
			s.decide()
			if err := s.Save(s.Table); err != nil {
				return s.Table, err
			}
		}
	}
	if s.Progress != nil {
		s.Progress(s.done, len(s.job))
	}
	s.decide()
	return s.Table, ended
}

// saveEvery is after how many measurements the table is saved: what is lost by a
// kill is seconds of measuring.
const saveEvery = 100

// Planned is how many measurements are left to make, and how many configurations
// the method compares, each size for itself.
func (s *Search) Planned() (measurements, configurations int) {
	s.plan()
	for _, all := range s.candidates {
		for _, c := range all {
			configurations += b2i(c.Rejected == "")
		}
	}
	return len(s.job), configurations
}

// plan lists what is to be measured, in an order that leaves any beginning a fair
// sample of the whole: what a budget cuts off should not be one kind of plan.
func (s *Search) plan() {
	if s.Table == nil {
		s.Table = &Table{Version: TableVersion}
	}
	s.sizes = SizesOf(s.Topology)
	s.Space.Heuristics = s.Method.heuristics()
	s.recall()
	s.survey()
	s.job = nil
	seen := map[string]bool{}
	for i, all := range s.candidates {
		for _, c := range all {
			if c.Rejected != "" {
				continue
			}
			w, ok := s.work(i, c.Plan)
			key := pointKey(w.request, w.plan)
			if !ok || seen[key] || s.has(w) {
				continue
			}
			seen[key] = true
			s.job = append(s.job, w)
		}
	}
	rng := rand.New(rand.NewPCG(1, uint64(len(s.job))))
	rng.Shuffle(len(s.job), func(i, j int) { s.job[i], s.job[j] = s.job[j], s.job[i] })
}

func planKey(r tasks.Request, p tasks.Plan) string { return r.Coll.String() + " " + p.String() }

func pointKey(r tasks.Request, p tasks.Plan) string {
	return fmt.Sprintf("%v %d %v", r.Coll, r.Bytes(), p)
}

// recall indexes what the table has measured on this machine.
func (s *Search) recall() {
	s.known = map[string]Measurement{}
	for _, m := range s.Table.Measured {
		if compareSizes(m.Levels, s.sizes) == 0 {
			s.known[fmt.Sprintf("%s %d %s", m.Collective, m.Bytes, m.Plan)] = m
		}
	}
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

// work says what must be measured to know a plan's time for request i; ok is false
// if nothing must. The tasks methods measure what is cut into segments once, for
// the largest message, and what isn't with every third size.
func (s *Search) work(i int, p tasks.Plan) (w work, ok bool) {
	r := s.Requests[i]
	if !s.Method.tasks() {
		return work{r, p, s.collective}, true
	}
	all := s.where[planKey(r, p)]
	if p.Segment >= r.Bytes() {
		at := slices.Index(all, i)
		return work{r, p, s.collective}, at%wholeStep == 0 || at == len(all)-1
	}
	run := s.pipeline
	if p.Shape == tasks.HanLockstep {
		run = s.stages
	}
	return work{s.Requests[all[len(all)-1]], p, run}, true
}

// wholeStep is how many sizes further a plan of one segment is measured again.
const wholeStep = 3

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
	one := NewMeasurement(w.request, s.Topology, w.plan, timing)
	s.Table.Measured = append(s.Table.Measured, one)
	s.known[pointKey(w.request, w.plan)] = one
	return nil
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
	s.Table.book().AddPipeline(key, p)
	return nil
}

func (s *Search) stages(ctx context.Context, m Meter, w *work) error {
	_, err := m.Stages(ctx, w.request, w.plan, s.Stop, s.Table.book())
	return err
}

// has reports whether the table knows already what w would measure.
func (s *Search) has(w work) bool {
	if !s.Method.tasks() || w.plan.Segment >= w.request.Bytes() {
		_, ok := s.known[pointKey(w.request, w.plan)]
		return ok
	}
	_, err := costs.Predict(w.request, s.Topology, w.plan, s.Table.book())
	return err == nil
}
