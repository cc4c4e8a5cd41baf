// Package feedback tunes a communicator while a program runs: every few calls it tries another candidate, a plan or a value
// of the rules, and keeps it if it is faster.
//
// The idea comes from 6.2 in Fagg and others, Flexible Collective Communication Tuning
// Architecture Applied to Open MPI (2006).
package feedback

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/feedback/internal/search"
	"github.com/tierflow/tierflow/planner/internal/inside"
	"github.com/tierflow/tierflow/tasks"
)

// Options list the candidates of a [Tuner]: numbers of a named value, or plans. All ranks give the same.
type Options struct {
	// Value names a value of the communicator's rules, such as small of $small = 32KiB.
	Value string
	// Numbers are tried for Value, beside its present one: 0 and more.
	Numbers []int64
	// Plans, without Value, are tried beside the plans chosen anyway. Each is as
	// [planner.Options.Plan] has it: alltoall:eager=64KiB, bcast:fs=1MiB or i=adapt/binomial. Parts left
	// open are chosen as ever, and plans forced by planner.Options.Plan stay.
	Plans []string
	// Every is the interval between trials, in calls: every Every-th one is a trial. 2 or more. It grows, up to 64 times,
	// while no candidate wins. 0: 5.
	Every int
	// Of are existing collectives of the communicator, for the calls to run. They change
	// their plans with the candidates. Other existing ones don't.
	Of []*planner.Collective
}

// Tuner tunes a communicator. Every few calls it tries another candidate,
// a plan or a value of the rules, and keeps it if it is faster than the calls before each trial, in
// the median and by more than chance. Ranks agree on the time of a trial, the slowest rank's, in one
// allreduce of 56 bytes. A nil Tuner runs calls and tunes nothing.
type Tuner struct {
	what     string // a value's name with $, or "plans"
	search   *search.Search
	variants inside.Variants
	agree    *executor.Run
	clock    func() time.Duration // since the tuner was made
}

const usualTrials = 5 // calls from one trial to the next

var calls = inside.Take[planner.Comm, planner.Collective, planner.Options]()

// New prepares tuning. Nothing is sent, and nothing tried outside of [Tuner.Run].
func New(c *planner.Comm, o Options) (*Tuner, error) {
	if o.Every == 0 {
		o.Every = usualTrials
	}
	begun := time.Now()
	t := &Tuner{what: "plans", clock: func() time.Duration { return time.Since(begun) }}
	if o.Value != "" {
		t.what = "$" + o.Value
	}
	variants, names, holds, err := calls.Variants(c, o.Value, o.Numbers, o.Plans, o.Of)
	if err = errors.Join(search.CheckEvery(o.Every), err); err != nil {
		return nil, fmt.Errorf("tune: %w", err)
	}
	t.variants, t.search = variants, search.New(names, holds, o.Every)
	why := fmt.Sprintf("a trial of %s, %d candidates, every %d calls", t.what, len(names), o.Every)
	r := tasks.Request{Coll: tasks.Allreduce, Count: int64(len(t.search.Said)), Type: tasks.Int64, Op: tasks.Max, InPlace: true}
	if t.agree, err = calls.Internal(c, r, why, inside.Bytes(t.search.Said)); err != nil {
		return nil, fmt.Errorf("tune: %w", err)
	}
	variants.Explain(func() string { return t.what + ": " + t.search.Line() })
	return t, nil
}

// Run runs a call of the program, and returns its error. All ranks make the calls in the same order
// and number: a call may be a collective's Run, one-shot calls, or a step of several. No other call on
// the communicator runs meanwhile. Every few times it is a trial. If the call fails on a rank it is no
// trial on any; a broken communicator is broken on all. Between
// trials Run allocates nothing and sends nothing.
func (t *Tuner) Run(ctx context.Context, call func(context.Context) error) error {
	if err := inside.CheckFunction(ctx, call == nil); err != nil {
		return fmt.Errorf("tune: %w", err)
	}
	if t == nil {
		return call(ctx)
	}
	i, turn := t.search.Next()
	switch turn {
	case search.First:
		return t.begin(ctx, i, call)
	case search.Trial:
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
	failed := t.variants.Prepare(i, old)
	t.search.Say(0, failed != nil)
	if err := t.agree.Do(ctx); err != nil {
		return fmt.Errorf("agree on a trial of %s: %w", t.what, err)
	}
	if !t.search.Ready() {
		t.variants.Drop(i)
		return call(ctx)
	}
	t.variants.Enter(old, i)
	defer t.variants.Enter(i, old)
	return call(ctx)
}

// try runs a call by a candidate, and decides with all ranks whether to keep it.
func (t *Tuner) try(ctx context.Context, i int, call func(context.Context) error) error {
	old := t.search.Holds()
	t.variants.Enter(old, i)
	start := t.clock()
	err := call(ctx)
	t.search.Say(int64(t.clock()-start), err != nil)
	// Others wait for this rank even if its call has failed.
	if failed := t.agree.Do(ctx); err != nil || failed != nil {
		t.variants.Enter(i, old)
		if err == nil {
			err = fmt.Errorf("agree on a trial of %s: %w", t.what, failed)
		}
		if failed == nil {
			t.search.Judge()
			t.variants.Drop(i)
		}
		return err
	}
	switch t.search.Judge() {
	case search.Keep:
		t.variants.Drop(old)
	case search.Drop:
		t.variants.Enter(i, old)
		t.variants.Drop(i)
	default:
		t.variants.Enter(i, old)
	}
	return nil
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
