package planner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/internal/feedback"
	"github.com/tierflow/tierflow/tasks"
)

// Tuning lists the candidates of a [Tuner]: numbers of a named value, or plans. All ranks give the same.
type Tuning struct {
	// Value names a value of the communicator's rules, such as small of $small = 32KiB.
	Value string
	// Numbers are tried for Value, beside its present one: 0 and more.
	Numbers []int64
	// Plans, without Value, are tried beside the plans chosen anyway. Each is as
	// [Options.Plan] has it: alltoall:eager=64KiB, bcast:fs=1MiB or i=adapt/binomial. Parts left
	// open are chosen as ever, and plans forced by Options.Plan stay.
	Plans []string
	// Every is how many calls there are from one trial to the next, 2 or more. They become more,
	// up to 64 times as many, while nothing faster is found. 0: 5.
	Every int
	// Of are existing collectives of the communicator, for the calls to run. They change
	// their plans with the candidates. Other existing ones don't.
	Of []*Collective
}

// Tuner tunes a communicator while a program runs. Every few calls it tries another candidate,
// a plan or a value of the rules, and keeps it if it is faster than the calls before each trial, in
// the median and by more than chance. Ranks agree on the time of a trial, the slowest rank's, in one
// allreduce of 56 bytes. A nil Tuner runs calls and tunes nothing.
type Tuner struct {
	c      *Comm
	what   string // a value's name with $, or "plans"
	search *feedback.Search
	of     []*Collective
	frames []*frame // one for each candidate
	agree  *executor.Run
	clock  func() time.Duration // since the tuner was made
}

// frame keeps a communicator's decisions and compiled calls under a candidate.
type frame struct {
	forced tasks.Forced
	origin string
	value  int64
	memo   *memo // nil: it is not in use
	kept   kept
	known  map[tasks.Request]*choose.Decision
	of     []Collective // of [Tuning.Of]: their decisions and programs
}

const usualTrials = 5 // calls from one trial to the next

// Tune prepares tuning. Nothing is sent, and nothing tried outside of [Tuner.Run].
func (c *Comm) Tune(o Tuning) (*Tuner, error) {
	if err := c.checkMade(); err != nil {
		return nil, fmt.Errorf("tune: %w", err)
	}
	if o.Every == 0 {
		o.Every = usualTrials
	}
	begun := time.Now()
	t := &Tuner{c: c, of: slices.Clone(o.Of), clock: func() time.Duration { return time.Since(begun) }}
	names, holds, err := t.addCandidates(o)
	if err = errors.Join(feedback.CheckEvery(o.Every), t.checkOwners(), err); err != nil {
		return nil, fmt.Errorf("tune: %w", err)
	}
	t.search = feedback.New(names, holds, o.Every)
	why := purpose(fmt.Sprintf("a trial of %s, %d candidates, every %d calls", t.what, len(names), o.Every))
	r := tasks.Request{Coll: tasks.Allreduce, Count: int64(len(t.search.Said)), Type: tasks.Int64, Op: tasks.Max, InPlace: true}
	if t.agree, err = c.internal(r, why, asBytes(t.search.Said)); err != nil {
		return nil, fmt.Errorf("tune: %w", err)
	}
	c.note = func() string { return t.what + ": " + t.search.Line() }
	return t, nil
}

// checkOwners returns an error unless all collectives are the communicator's.
func (t *Tuner) checkOwners() error {
	for _, col := range t.of {
		if col == nil || col.comm != t.c {
			return errors.New("a collective of another communicator, or none")
		}
	}
	return nil
}

// addCandidates makes a frame for each candidate, and returns their names and the index of the present
// one.
func (t *Tuner) addCandidates(o Tuning) (names []string, holds int, err error) {
	switch {
	case (o.Value == "") == (len(o.Plans) == 0):
		return nil, 0, fmt.Errorf("value %q and plans %q; it takes one of both", o.Value, o.Plans)
	case o.Value != "":
		t.what = "$" + o.Value
		return t.addNumbers(o)
	}
	t.what = "plans"
	names, err = t.addPlans(o.Plans)
	return names, 0, err
}

// addNumbers is addCandidates of a value's numbers.
func (t *Tuner) addNumbers(o Tuning) (names []string, holds int, err error) {
	now, err := t.c.Value(o.Value)
	if err != nil {
		return nil, 0, err
	}
	all := o.Numbers
	if !slices.Contains(all, now) {
		all = append([]int64{now}, all...)
	}
	if len(all) == 1 {
		return nil, 0, fmt.Errorf("numbers %v; it takes some beside what $%s is, %d", o.Numbers, o.Value, now)
	}
	for _, n := range all {
		if n < 0 {
			return nil, 0, fmt.Errorf("%d for $%s; allowed are 0 and more", n, o.Value)
		}
		names = append(names, strconv.FormatInt(n, 10))
		t.frames = append(t.frames, &frame{forced: t.c.forced, origin: t.c.origin, value: n})
	}
	return names, slices.Index(all, now), nil
}

// addPlans is addCandidates of plans. The first candidate is no change.
func (t *Tuner) addPlans(plans []string) (names []string, err error) {
	names = []string{"what is chosen"}
	t.frames = []*frame{{forced: t.c.forced, origin: t.c.origin}}
	for _, text := range plans {
		by := "a tuner"
		mine, err := choose.ParseForced(text, by, t.c.registry)
		if err != nil {
			return nil, err
		}
		if t.c.origin != "" && len(t.c.forced) > 0 {
			by += " and " + t.c.origin
		}
		names = append(names, text)
		t.frames = append(t.frames, &frame{forced: append(mine, t.c.forced...), origin: by}) // the last ones win
	}
	return names, nil
}

// Run runs a call of the program, and returns its error. All ranks make the calls in the same order
// and number: a call may be a collective's Run, one-shot calls, or a step of several. No other call on
// the communicator runs meanwhile. Every few times it is a trial. If the call fails on a rank it is no
// trial on any; a broken communicator is broken on all. Between
// trials Run allocates nothing and sends nothing.
func (t *Tuner) Run(ctx context.Context, call func(context.Context) error) error {
	switch {
	case ctx == nil:
		return errNoContext
	case call == nil:
		return errNoFunction
	case t == nil:
		return call(ctx)
	}
	i, turn := t.search.Next()
	switch turn {
	case feedback.First:
		return t.begin(ctx, i, call)
	case feedback.Trial:
		return t.try(ctx, i, call)
	}
	if t.search.Frozen() {
		return call(ctx)
	}
	start := t.clock()
	err := call(ctx)
	t.search.Note(int64(t.clock() - start))
	return err
}

// begin prepares a candidate on all ranks and runs a call by it, or by the present one if a
// rank can't.
func (t *Tuner) begin(ctx context.Context, i int, call func(context.Context) error) error {
	old := t.search.Holds()
	failed := t.prepare(i, old)
	t.search.Say(0, failed != nil)
	if err := t.agree.Do(ctx); err != nil {
		return fmt.Errorf("agree on a trial of %s: %w", t.what, err)
	}
	if !t.search.Ready() {
		t.frames[i].drop()
		return call(ctx)
	}
	t.enter(old, i)
	defer t.enter(i, old)
	return call(ctx)
}

// try runs a call by a candidate, and decides with all ranks whether to keep it.
func (t *Tuner) try(ctx context.Context, i int, call func(context.Context) error) error {
	old := t.search.Holds()
	t.enter(old, i)
	start := t.clock()
	err := call(ctx)
	t.search.Say(int64(t.clock()-start), err != nil)
	// Others wait for this rank even if its call has failed.
	if failed := t.agree.Do(ctx); err != nil || failed != nil {
		t.enter(i, old)
		if err == nil {
			err = fmt.Errorf("agree on a trial of %s: %w", t.what, failed)
		}
		if failed == nil {
			t.search.Judge()
			t.frames[i].drop()
		}
		return err
	}
	switch t.search.Judge() {
	case feedback.Keep:
		t.frames[old].drop()
	case feedback.Drop:
		t.enter(i, old)
		t.frames[i].drop()
	default:
		t.enter(i, old)
	}
	return nil
}

// prepare makes a candidate's frame, with the collectives compiled anew.
func (t *Tuner) prepare(i, old int) error {
	f := t.frames[i]
	f.memo, f.kept, f.known = &memo{}, newKept(), nil
	f.of = make([]Collective, len(t.of))
	t.swap(f, t.frames[old])
	defer t.swap(t.frames[old], f)
	for k, col := range t.of {
		d, err := t.c.decide(&col.request, &t.c.base)
		if err != nil {
			return err
		}
		next, err := t.c.prepareBy(d, col.request, userCall, col.send, col.recv)
		if err != nil {
			return err
		}
		f.of[k].adopt(next)
	}
	return nil
}

// adopt takes over decision and program of another collective on the same buffers.
func (c *Collective) adopt(o *Collective) {
	c.decision, c.compiled, c.run, c.finish, c.counter = o.decision, o.compiled, o.run, o.finish, o.counter
}

// enter goes from a candidate's frame to another's.
func (t *Tuner) enter(from, to int) {
	was, now := t.frames[from], t.frames[to]
	t.swap(now, was)
	if len(was.of) == 0 {
		was.of = make([]Collective, len(t.of))
	}
	for k, col := range t.of {
		was.of[k].adopt(col)
		col.adopt(&now.of[k])
		_ = col.run.Rebind(col.send, col.recv) // it is not running, and the buffers are as long
		_ = col.run.SetUrgency(col.urgency)
	}
}

// swap lets the communicator decide by a frame, and keeps its state in another.
func (t *Tuner) swap(now, was *frame) {
	c := t.c
	if c.rules != nil && t.what[0] == '$' {
		_ = c.rules.Set(t.what[1:], now.value) // both were looked at
	}
	c.trials.mu.Lock()
	was.known, c.trials.known = c.trials.known, now.known
	c.trials.mu.Unlock()
	c.store.swap(&now.kept, &was.kept, func() {
		c.forced, c.origin = now.forced, now.origin
		was.memo, c.memo = c.memo, now.memo
	})
}

// drop forgets decisions and compiled calls.
func (f *frame) drop() {
	f.memo, f.kept, f.known, f.of = nil, kept{}, nil, nil
}

// Freeze ends trials, on all ranks, at the next one; the present candidate stays. One rank is enough.
func (t *Tuner) Freeze() {
	if t != nil {
		t.search.Freeze()
	}
}

// Continue begins trials again. All ranks call it, between the same two calls of Run.
func (t *Tuner) Continue() {
	if t != nil {
		t.search.Continue()
	}
}

// Holds names the present candidate: a number, a plan, or "what is chosen".
func (t *Tuner) Holds() string {
	if t == nil {
		return ""
	}
	return t.search.Name(t.search.Holds())
}

// Explain describes the tuner and each candidate: the same text on all ranks.
func (t *Tuner) Explain() string {
	if t == nil {
		return "nothing is tuned\n"
	}
	return "tuner of " + t.what + ": " + t.search.Explain()
}
