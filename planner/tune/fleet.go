package tune

import (
	"context"
	"errors"
	"slices"

	"github.com/tierflow/tierflow/planner/table"
)

// Fleet searches by method [Learn] for several machines that are parts of one. A measurement
// on one machine counts for others too, and machines in different racks are measured at one time.
type Fleet struct {
	Search // of all ranks: Topology is theirs, Method is not asked for

	Machines []Machine
	Alone    bool // one machine at a time

	learned *learning
	members []*member
	held    *job // it did not fit beside the last ones
	turn    int  // turns of lessons
	batches int  // measured so far
}

// member is a machine of a fleet, and its search.
type member struct {
	Machine
	*Search
}

// Batches returns how many times something was measured: on one machine, or on several at one time.
func (f *Fleet) Batches() int { return f.batches }

// Run makes the measurements that Table lacks and returns it with the entries from them, as [Search.Run]
// does.
func (f *Fleet) Run(ctx context.Context, m PartMeter) (*table.Table, error) {
	if err := f.check(ctx, m != nil); err != nil {
		return f.Table, err
	}
	_, alone := m.(sideways)
	if err := f.begin(ctx, alone); err != nil {
		return f.Table, err
	}
	places := NewSlots(f.Topology)
	return f.Table, f.measureAll(ctx, alone, f.decide, func() (left int, measure func() error) {
		jobs, parts := f.batch(places)
		return len(jobs), func() error { return f.measure(ctx, m, jobs, parts) }
	})
}

// begin lists the configurations of each machine. Alone it ends with ctx, too.
func (f *Fleet) begin(ctx context.Context, alone bool) error {
	if f.Table == nil {
		f.Table = &table.Table{Version: table.Version}
	}
	f.Method, f.done, f.batches, f.held, f.members = Learn, 0, 0, nil, nil
	var all []*knowledge
	for _, m := range f.Machines {
		on, err := m.On(f.Topology)
		if err != nil {
			return err
		}
		one := f.Search
		one.Topology, one.Space.Around, one.Table = on, m.Around, f.Table
		if err := one.listWork(func() error { return f.goesOn(ctx, alone) }); err != nil {
			return err
		}
		all = append(all, one.knowledge)
		f.members = append(f.members, &member{m, &one})
	}
	if len(all) == 0 {
		return errors.New("search: no machines; allowed are one or more")
	}
	f.learned = newLearning(all...)
	if err := f.learned.checkRequests(); err != nil {
		return err
	}
	for _, one := range f.members {
		one.strategy = &learningOn{learning: f.learned, on: one.knowledge}
	}
	return nil
}

// batch returns the next measurements at one time: all that fit beside each other, in the order of
// the learners' questions.
func (f *Fleet) batch(places *Slots) (jobs []job, parts []Part) {
	places.Clear()
	for {
		if f.held == nil {
			if f.held = f.take(); f.held == nil {
				return jobs, parts
			}
		}
		ranks := places.Place(f.memberOf(f.held).Machine)
		if ranks == nil {
			return jobs, parts
		}
		parts = append(parts, Part{ranks, f.held.request, f.held.plan})
		jobs, f.held = append(jobs, *f.held), nil
		if f.Alone {
			return jobs, parts
		}
	}
}

// take returns the next job of the lessons in turns; nil: there is none.
func (f *Fleet) take() *job {
	for range f.learned.lessons {
		one := f.learned.lessons[f.turn%len(f.learned.lessons)]
		f.turn++
		if j, ok := f.learned.take(one); ok {
			return &j
		}
	}
	return nil
}

// memberOf returns the machine of a job.
func (f *Fleet) memberOf(j *job) *member {
	return f.members[slices.IndexFunc(f.members, func(m *member) bool { return m.knowledge == j.of })]
}

// measure makes the measurements of a batch, and tells the learners.
func (f *Fleet) measure(ctx context.Context, m PartMeter, jobs []job, parts []Part) error {
	if f.Doing != nil {
		f.Doing(Collectives, len(jobs))
	}
	results, err := m.Parts(ctx, parts, f.Stop)
	if err != nil {
		return err
	}
	for i, r := range results {
		if !r.Refused {
			jobs[i].of.noteMeasured(jobs[i].request, jobs[i].plan, r.Timing.Series, 0, r.Timing.Spent)
		}
	}
	f.done, f.batches = f.done+len(jobs), f.batches+1
	f.learned.hear(jobs)
	return nil
}

// decide writes the entries of all machines. In a second turn each has the times of good plans
// from others.
func (f *Fleet) decide() {
	rejected := table.Counts{}
	for _, m := range f.members {
		m.Search.decide()
		for reason, n := range f.Table.Provenance.Rejected {
			rejected[reason] += n
		}
	}
	for _, m := range f.members {
		m.Search.decide()
	}
	p := &f.Table.Provenance
	p.Rejected, p.Configurations, p.Planned = rejected, f.done, f.done
}
