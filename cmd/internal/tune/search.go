package tune

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/learn"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Tuning has the flags of the tune commands.
type Tuning struct {
	kit.Problem
	Registry             submodules.Registry
	ops                  string        // --ops: collectives
	min                  string        // --min: smallest size of a ladder
	max                  string        // --max: largest size of a ladder
	method               string        // --method
	races                string        // --races
	learn                string        // --learn: words
	why                  bool          // --why
	alone                bool          // --alone
	machines, nodes, ppn string        // flags of these names; empty: all ranks are the machine
	Regime               costs.Regime  // --regime
	Budget               time.Duration // --budget, of a whole search; 0: no limit
	Time                 time.Duration // --time, of one measurement
	JSON                 bool          // --json: print JSON
	SVG                  string        // --svg: a file's name; empty: no drawing
	output               string        // --output: the table's file
	keeps                bool          // later jobs find it there
	resume               bool          // --resume: add to that file
	profile              string        // --profile: a profile's file; empty: none
	breakEven            bool          // --break-even
	File                 string        // --simulate: a machine's file; empty: nothing is simulated

	// What narrows the search; empty: nothing does.
	shapes, submodules, segments, inners string
	windows, numbers                     []int
	uneven                               int // --uneven: the largest of different blocks by their mean; 0: they are equal

	// Read from these flags.
	Requests []tasks.Request
	calls    *callProfile // nil: there is no profile
	Space    tune.Space
	Stop     stats.Stop
	when     tune.RaceWhen
	Learn    learn.Options
}

// runOnJob reads the flags, makes or joins the job, and calls f for each of its ranks in this
// process. Ranks go on when ctx ends: f asks for its end, and all agree.
func (u *Tuning) runOnJob(ctx context.Context, stdout, stderr io.Writer, f func(ctx context.Context, r *Rank) error) error {
	return u.RunOnJob(ctx, stdout, stderr, func(stdout, stderr io.Writer) error {
		if err := u.read(); err != nil {
			return err
		}
		return u.RunRanks(ctx, stdout, stderr, f)
	})
}

// runSimulated reads the flags and calls f once, for no rank, with a simulating meter, until ctx
// ends.
func (u *Tuning) runSimulated(ctx context.Context, stdout, stderr io.Writer, f func(ctx context.Context, r *Rank) error) error {
	if u.Regime != costs.Single {
		return kit.Usagef("--regime %v: simulated calls are %v", u.Regime, costs.Single)
	}
	s, err := u.ReadSimulated(u.File)
	if err != nil {
		return err
	}
	if err := u.read(); err != nil {
		return err
	}
	need, err := u.SimulatedNeed(ctx, s.Topology(), u.Requests)
	if err != nil {
		return err
	}
	return f(ctx, &Rank{
		need: need, Simulated: s.MachineName(), machine: s.Machine, Topology: s.Topology(), Meter: tune.NewSimulatedMeter(s.Topology(), s.Machine, u.Registry),
		Asked: ctx, Stdout: stdout, Stderr: stderr,
	})
}

// Rank is one tuning rank, or a simulation of all.
type Rank struct {
	Simulated string           // the machine; empty: there are ranks
	machine   *machine.Machine // nil: there are ranks
	Comm      *planner.Comm    // nil if the machine is simulated
	Topology  *levels.Topology
	around    []*levels.Topology // machines between this one and others to tune for
	Meter     tune.Meter
	parts     *tune.SimulatedParts // nil: there are ranks, or no parts of them
	need      string               // a line about the largest simulation; empty: there are ranks
	Asked     context.Context      // ends when the user wants an end
	Spent     spending             // by the last search
	Reuse     tune.Reuse           // of the last search
	together  float64              // measurements made at one time, on average; 0: one after the other
	Stdout    io.Writer
	Stderr    io.Writer
}

// IsFirst reports whether this is rank 0. Rank 0 prints and writes.
func (r *Rank) IsFirst() bool { return r.Comm == nil || r.Comm.Rank() == 0 }

// IsAny reports whether b holds on any rank.
func (r *Rank) IsAny(ctx context.Context, b bool) (bool, error) {
	if r.Comm == nil {
		return b, nil
	}
	return r.Comm.Any(ctx, b)
}

// RunRanks calls f for each rank of this process.
func (u *Tuning) RunRanks(ctx context.Context, stdout, stderr io.Writer, f func(ctx context.Context, r *Rank) error) error {
	return kit.RunRanks(context.WithoutCancel(ctx), u.Job, []string{""}, func(inner context.Context, comms []*planner.Comm) error {
		r := &Rank{Comm: comms[0], Topology: comms[0].Topology(), Asked: ctx, Stdout: stdout, Stderr: stderr}
		if !r.IsFirst() {
			r.Stdout, r.Stderr = io.Discard, io.Discard
		}
		var err error
		if r.Meter, err = tune.NewMeter(inner, r.Comm, u.Regime); err != nil {
			return err
		}
		return f(inner, r)
	})
}

// SpaceOn is the space to search on a rank's machine.
func (u *Tuning) SpaceOn(r *Rank) tune.Space {
	s := u.Space
	s.Machine, s.Around = r.machine, r.around
	return s
}

// RunSearch runs one search on one rank. The budget counts from now. In a simulation, without
// ranks to agree with, it ends a measurement, too.
func (u *Tuning) RunSearch(ctx context.Context, r *Rank, m *tune.Method, when tune.RaceWhen, known *table.Table, save func(*table.Table) error) (*table.Table, error) {
	return u.search(ctx, r, m, when, known, save, func(ctx context.Context, s *tune.Search) (*table.Table, error) {
		made, err := s.Run(ctx, r.Meter)
		r.Reuse = s.Reuse()
		return made, err
	})
}

// search prepares a search on one rank and lets run make it.
func (u *Tuning) search(ctx context.Context, r *Rank, m *tune.Method, when tune.RaceWhen, known *table.Table, save func(*table.Table) error,
	run func(ctx context.Context, s *tune.Search) (*table.Table, error),
) (*table.Table, error) {
	bar := kit.NewProgress(r.Stderr, ContestName(m, when), r.need)
	defer bar.Finish()
	begin := time.Now()
	r.Spent = spending{}
	if r.Simulated != "" {
		r.Spent.clock = r.SimulatedTime
		if u.Budget > 0 {
			within, cancel := context.WithDeadline(ctx, begin.Add(u.Budget))
			defer cancel()
			ctx = within
		}
	}
	defer r.Spent.end()
	s := &tune.Search{
		Topology: r.Topology, Links: u.LinksOf(r), Requests: u.Requests, Space: u.SpaceOn(r), Method: m, Races: when, Learn: u.Learn, Stop: u.Stop, Table: known,
		Progress: func(done, planned int) { bar.Show(int64(done), int64(planned)) }, Doing: r.Spent.begin,
		Interrupted: func(ctx context.Context) (bool, error) {
			bar.Show(0, 0)
			over := u.Budget > 0 && time.Since(begin) > u.Budget
			return r.IsAny(ctx, r.IsFirst() && over || r.Asked.Err() != nil)
		},
	}
	if r.IsFirst() {
		s.Save = save
	}
	if u.why && r.IsFirst() {
		s.Learning = func(text string) { fmt.Fprintln(r.Stderr, text) }
	}
	made, err := run(ctx, s)
	if made != nil {
		made.Provenance.Seconds = time.Since(begin).Seconds()
	}
	return made, err
}

// ContestName returns the method's name, with a word if races are not as usual.
func ContestName(m *tune.Method, when tune.RaceWhen) string {
	if when == tune.RacesNever {
		return m.String() + " (predicted)"
	}
	return m.String()
}
