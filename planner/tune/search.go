package tune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/learn"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Search looks for the fastest plans of some requests on one topology. Its
// functions may be nil.
type Search struct {
	Topology *levels.Topology
	Links    string          // between nodes, as the table's places name them; empty: unknown
	Requests []tasks.Request // each collective with each size
	Space    Space
	Method   *Method       // nil: [Exhaustive]
	Races    RaceWhen      // of the tasks methods
	Learn    learn.Options // of method learn
	Stop     stats.Stop    // the same for every measurement
	Table    *table.Table  // known already, from other machines or an interrupted search; it grows
	Keep     int           // candidates of each point besides the best flat one; 0: 3

	// Interrupted is asked while measurements are listed, and before each one, if the
	// search shall end with what it has. All ranks must get the same answer.
	Interrupted func(ctx context.Context) (bool, error)
	// Progress hears before each measurement, and at the end, how many are done
	// of how many.
	Progress func(done, planned int)
	// Doing hears before measurements their kind and number.
	Doing func(kind string, n int)
	// Learning hears before each measurement of method learn about it, with the reason.
	Learning func(text string)
	// Save gets the table from time to time.
	Save func(*table.Table) error

	method    *Method
	knowledge *knowledge
	strategy  strategy
	job       []work // the next measurements
	done      int    // measurements made
}

// ErrInterrupted is the error of Run, besides the table, when it ended early.
var ErrInterrupted = errors.New("interrupted: the table has what was measured until then")

// Run makes the measurements that Table lacks and returns it with the entries from
// them. All ranks call it. Its error wraps [ErrInterrupted] if it was
// interrupted, and then the table is good. A meter that stands for all ranks is
// interrupted by the end of ctx, too, in the middle of a measurement.
func (s *Search) Run(ctx context.Context, m Meter) (*table.Table, error) {
	if err := s.check(ctx, m != nil); err != nil {
		return s.Table, err
	}
	_, alone := m.(sideways)
	if err := s.planWork(func() error { return s.goesOn(ctx, alone) }); err != nil {
		return s.Table, err
	}
	if c, ok := s.strategy.(choosy); ok {
		if err := c.checkRequests(); err != nil {
			return s.Table, err
		}
	}
	return s.Table, s.measureAll(ctx, alone, s.decide, func() (left int, measure func() error) {
		return s.workLeft(), func() error {
			err := s.measureFirst(ctx, m)
			if err == nil && len(s.job) == 0 {
				s.job = s.next()
			}
			return err
		}
	})
}

// measureAll makes measurements until none is left, and decides. It saves the table from time to time.
// next returns how many are left, as far as it is known, and a function to make the first of them. Alone
// the search ends with ctx, too.
func (s *Search) measureAll(ctx context.Context, alone bool, decide func(), next func() (left int, measure func() error)) error {
	for saved := 0; ; {
		left, measure := next()
		s.tell(left)
		if left == 0 {
			decide()
			return nil
		}
		err := s.goesOn(ctx, false)
		if err == nil {
			if err = measure(); err != nil && alone && isEnd(err) {
				err = s.errInterrupted()
			}
		}
		if errors.Is(err, ErrInterrupted) {
			decide()
		}
		if err != nil {
			return err
		}
		if err := s.saveSince(&saved, decide); err != nil {
			return err
		}
	}
}

// check complains of a missing context, meter or topology.
func (s *Search) check(ctx context.Context, metered bool) error {
	switch {
	case ctx == nil:
		return fmt.Errorf("search: %w", errNoContext)
	case !metered:
		return fmt.Errorf("search: %w", errNoMeter)
	case s.Topology == nil || s.Topology.Depth() == 0:
		return fmt.Errorf("search: %w", errNoTopology)
	}
	return nil
}

// saveSince saves the table, once it is decided, if enough was measured since the last time.
func (s *Search) saveSince(saved *int, decide func()) error {
	if s.Save == nil || s.done < *saved+saveEvery {
		return nil
	}
	*saved = s.done
	decide()
	return s.Save(s.Table)
}

// errInterrupted says how far the search came.
func (s *Search) errInterrupted() error {
	return fmt.Errorf("%d of %d measurements: %w", s.done, s.done+s.workLeft(), ErrInterrupted)
}

// goesOn returns an error if the search shall end, or can't ask. Alone it ends with ctx, too.
func (s *Search) goesOn(ctx context.Context, alone bool) error {
	if alone && ctx.Err() != nil {
		return s.errInterrupted()
	}
	if s.Interrupted == nil {
		return nil
	}
	stop, err := s.Interrupted(ctx)
	if err == nil && stop {
		err = s.errInterrupted()
	}
	return err
}

// isEnd reports whether err is from the end of a context.
func isEnd(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// atOnce bounds the measurements made beside each other before a search is asked
// whether to go on.
const atOnce = 64

// measureFirst makes the first measurements of the job: one, or some if the meter can make
// them beside each other. A failed one stays in the job.
func (s *Search) measureFirst(ctx context.Context, m Meter) error {
	n := 1
	side, ok := m.(sideways)
	for ok && n < min(atOnce, len(s.job)) && s.job[n].beside != nil && s.job[n].kind == s.job[0].kind {
		n++
	}
	for i := range n {
		if s.Doing != nil {
			s.Doing(s.job[i].kind, s.job[i].count())
		}
	}
	notes, errs := make([]func(), n), make([]error, n)
	do := func(i int) {
		if w := &s.job[i]; w.beside != nil {
			notes[i], errs[i] = w.beside(ctx, m, w)
		} else {
			errs[i] = w.run(ctx, m, w)
		}
	}
	if n > 1 {
		side.Beside(n, do)
	} else {
		do(0)
	}
	var failed error
	var again []work
	for i, err := range errs {
		w := s.job[i]
		// A lowering refuses a plan on all ranks, before anything runs.
		if err != nil && !errors.Is(err, submodules.ErrUnsupported) {
			again = append(again, w)
			failed = cmp.Or(failed, fmt.Errorf("measure %v with %v: %w", w.request, w.plan, err))
			continue
		}
		if err == nil && notes[i] != nil {
			notes[i]()
		}
		s.done += w.count()
	}
	s.job = append(again, s.job[n:]...)
	return failed
}

// tell tells of the progress.
func (s *Search) tell(left int) {
	if s.Progress != nil {
		s.Progress(s.done, s.done+left)
	}
}

// workLeft returns the number of measurements still to make, as far as it is known.
func (s *Search) workLeft() (n int) {
	for i := range s.job {
		n += s.job[i].count()
	}
	return n
}

// saveEvery measurements are made between two saves of the table: a kill costs
// seconds of measuring.
const saveEvery = 100

// Planned is how many measurements are left to make, and how many configurations the
// method compares, each size for itself. The measurements of the tasks methods depend
// on results: for these Planned counts the first round. It asks Interrupted, and returns an
// error as Run does.
func (s *Search) Planned(ctx context.Context) (measurements, configurations int, err error) {
	if err := s.planWork(func() error { return s.goesOn(ctx, false) }); err != nil {
		return 0, 0, err
	}
	for _, all := range s.knowledge.candidates {
		for _, c := range all {
			configurations += b2i(c.Rejected == "")
		}
	}
	return s.workLeft(), configurations, nil
}

// planWork lists the first measurements. It asks from time to time whether it goes on.
func (s *Search) planWork(goesOn func() error) error {
	if err := s.listWork(goesOn); err != nil {
		return err
	}
	s.strategy = s.method.begin(s.knowledge)
	s.job = s.next()
	return nil
}

// listWork lists the configurations.
func (s *Search) listWork(goesOn func() error) error {
	if s.Table == nil {
		s.Table = &table.Table{Version: table.Version}
	}
	if s.method = s.Method; s.method == nil {
		s.method = Exhaustive
	}
	s.Space.Heuristics = s.method.heuristics
	if s.method.narrow != nil {
		s.method.narrow(&s.Space)
	}
	s.done, s.knowledge = 0, newKnowledge(s)
	return s.knowledge.listConfigurations(goesOn)
}

// next lists the next measurements. First come the needs of the built-in rule's plans: without
// them no entry tells its saving. Then each beginning of the list is a fair sample of
// the rest: a budget should not cut off one kind of plan, nor one of two sizes that tell
// little without each other. Nothing is tried twice.
func (s *Search) next() []work {
	var groups [][]work
	for _, w := range s.strategy.next() {
		key := w.keyOf()
		if s.knowledge.tried[key] {
			continue
		}
		s.knowledge.tried[key] = true
		if last := len(groups) - 1; w.group != "" && last >= 0 && groups[last][0].group == w.group {
			groups[last] = append(groups[last], w)
		} else {
			groups = append(groups, []work{w})
		}
	}
	rng := rand.New(rand.NewPCG(1, uint64(len(groups))))
	rng.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
	slices.SortStableFunc(groups, func(a, b []work) int { return b2i(isUsual(b)) - b2i(isUsual(a)) })
	return slices.Concat(groups...)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func isUsual(group []work) bool {
	return slices.ContainsFunc(group, func(w work) bool { return w.usual })
}
