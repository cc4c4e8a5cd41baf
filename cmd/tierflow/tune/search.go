package tune

import (
	"context"
	"io"
	"time"

	"github.com/tierflow/tierflow/cmd/tierflow/kit"
	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// tuning has the flags of the tune commands.
type tuning struct {
	kit.Problem
	reg                  submodules.Registry
	ops                  string        // --ops: collectives
	min                  string        // --min: smallest size of a ladder
	max                  string        // --max: largest size of a ladder
	method               string        // --method
	races                string        // --races
	machines, nodes, ppn string        // flags of these names; empty: all ranks are the machine
	regime               costs.Regime  // --regime
	budget               time.Duration // --budget, of a whole search; 0: no limit
	time                 time.Duration // --time, of one measurement
	json                 bool          // --json: print JSON
	svg                  string        // --svg: a file's name; empty: no drawing
	output               string        // --output: the table's file
	resume               bool          // --resume: add to that file
	file                 string        // --simulate: a machine's file; empty: nothing is simulated

	// What narrows the search; empty: nothing does.
	shapes, submodules, segments, inners string
	windows, numbers                     []int

	// Read from these flags.
	requests []tasks.Request
	space    tune.Space
	stop     stats.Stop
	when     tune.RaceWhen
}

// runOnJob reads the flags, makes or joins the job, and calls f for each of its ranks
// in this process. Ranks go on when ctx ends: f asks whether it has.
func (u *tuning) runOnJob(ctx context.Context, stdout, stderr io.Writer, f func(ctx context.Context, r *tuneRank) error) error {
	return u.RunOnJob(ctx, stdout, stderr, func(stdout, stderr io.Writer) error {
		if err := u.read(); err != nil {
			return err
		}
		return u.runRanks(ctx, stdout, stderr, f)
	})
}

// runSimulated reads the flags and calls f once, for no rank, with a meter that simulates.
func (u *tuning) runSimulated(ctx context.Context, stdout, stderr io.Writer, f func(ctx context.Context, r *tuneRank) error) error {
	if u.regime != costs.Single {
		return kit.Usagef("--regime %v: simulated calls are %v", u.regime, costs.Single)
	}
	s, err := u.ReadSimulated(u.file)
	if err != nil {
		return err
	}
	u.Job = s
	if err := u.read(); err != nil {
		return err
	}
	return f(context.WithoutCancel(ctx), &tuneRank{
		simulated: s.MachineName(), machine: s.Machine, topology: s.Topology(), meter: tune.NewSimulatedMeter(s.Topology(), s.Machine, u.reg),
		asked: ctx, stdout: stdout, stderr: stderr,
	})
}

// tuneRank is one rank that tunes, or a simulation of all.
type tuneRank struct {
	simulated string           // the machine; empty: there are ranks
	machine   *machine.Machine // nil: there are ranks
	comm      *planner.Comm    // nil if the machine is simulated
	topology  *levels.Topology
	around    []*levels.Topology // machines between this one and others that are tuned for
	meter     tune.Meter
	asked     context.Context // ends when the user wants an end
	spent     spending        // by the last search
	reuse     tune.Reuse      // of the last search
	stdout    io.Writer
	stderr    io.Writer
}

// isFirst reports whether this is rank 0. Rank 0 prints and writes.
func (r *tuneRank) isFirst() bool { return r.comm == nil || r.comm.Rank() == 0 }

// isAny reports whether b holds on any rank.
func (r *tuneRank) isAny(ctx context.Context, b bool) (bool, error) {
	if r.comm == nil {
		return b, nil
	}
	return r.comm.Any(ctx, b)
}

// runRanks calls f for each rank of this process.
func (u *tuning) runRanks(ctx context.Context, stdout, stderr io.Writer, f func(ctx context.Context, r *tuneRank) error) error {
	return kit.RunRanks(context.WithoutCancel(ctx), u.Job, []string{""}, func(inner context.Context, comms []*planner.Comm) error {
		r := &tuneRank{comm: comms[0], topology: comms[0].Topology(), asked: ctx, stdout: stdout, stderr: stderr}
		if !r.isFirst() {
			r.stdout, r.stderr = io.Discard, io.Discard
		}
		var err error
		if r.meter, err = tune.NewMeter(inner, r.comm, u.regime); err != nil {
			return err
		}
		return f(inner, r)
	})
}

// spaceOn is the space to search on a rank's machine.
func (u *tuning) spaceOn(r *tuneRank) tune.Space {
	s := u.space
	s.Machine, s.Around = r.machine, r.around
	return s
}

// runSearch runs one search on one rank. The budget counts from now.
func (u *tuning) runSearch(ctx context.Context, r *tuneRank, m *tune.Method, when tune.RaceWhen, table *table.Table, save func(*table.Table) error) (*table.Table, error) {
	bar := newProgress(r.stderr, contestName(m, when))
	begin := time.Now()
	r.spent = spending{}
	if r.simulated != "" {
		r.spent.clock = r.simulatedTime
	}
	defer r.spent.end()
	s := &tune.Search{
		Topology: r.topology, Links: u.linksOf(r), Requests: u.requests, Space: u.spaceOn(r), Method: m, Races: when, Stop: u.stop, Table: table,
		Progress: bar.show, Doing: r.spent.begin,
		Interrupted: func(ctx context.Context) (bool, error) {
			over := u.budget > 0 && time.Since(begin) > u.budget
			return r.isAny(ctx, r.isFirst() && over || r.asked.Err() != nil)
		},
	}
	if r.isFirst() {
		s.Save = save
	}
	table, err := s.Run(ctx, r.meter)
	r.reuse = s.Reuse()
	bar.finish()
	if table != nil {
		table.Provenance.Seconds = time.Since(begin).Seconds()
	}
	return table, err
}
