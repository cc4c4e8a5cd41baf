package feedback_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/feedback"
	_ "github.com/tierflow/tierflow/planner/rules/foreign" // a candidate is bcast:ompi=6/64KiB
)

// A fake clock: calls take what their test says.
type fakeClock struct{ now time.Duration }

func (f *fakeClock) read() time.Duration { return f.now }

// onRanks runs f on two nodes of two ranks.
func onRanks(t *testing.T, o *planner.Options, f func(ctx context.Context, c *planner.Comm) error) {
	t.Helper()
	if err := planner.Run(t.Context(), "2x2", o, f); err != nil {
		t.Error(err)
	}
}

func local(t *testing.T, topology string, o *planner.Options) []*planner.Comm {
	t.Helper()
	comms, err := planner.Local(topology, o)
	if err != nil {
		t.Fatal(err)
	}
	return comms
}

func closeAll(t *testing.T, comms []*planner.Comm) {
	t.Helper()
	for _, err := range each(t, comms, func(_ context.Context, c *planner.Comm) error { return c.Close() }) {
		if err != nil {
			t.Error(err)
		}
	}
}

// each runs f on all ranks at once, and returns their errors.
func each(t *testing.T, comms []*planner.Comm, f func(ctx context.Context, c *planner.Comm) error) []error {
	errs := make([]error, len(comms))
	var all sync.WaitGroup
	for i, c := range comms {
		all.Go(func() { errs[i] = f(t.Context(), c) })
	}
	all.Wait()
	return errs
}

const skewed = "$small = 0\nalltoallv: eager=$small,ia=adapt/pairwise,shape=flat\nalltoall: eager=$small,ia=adapt/pairwise,shape=flat\n"

// A value of the rules tunes itself: one-shot calls and collectives that were made before follow.
func TestTunerOfValue(t *testing.T) {
	onRanks(t, &planner.Options{Rules: "rules", Files: fstest.MapFS{"rules": {Data: []byte(skewed)}}}, func(ctx context.Context, c *planner.Comm) error {
		n := c.Size()
		send, recv := make([]int64, n*100), make([]int64, n*100)
		before, err := planner.PrepareAlltoall(ctx, c, send, recv)
		if err != nil {
			return err
		}
		tuner, err := feedback.New(c, feedback.Options{Value: "small", Numbers: []int64{64, 4096, 0, 1 << 20}, Of: []*planner.Collective{before}})
		if err != nil {
			return err
		}
		var clock fakeClock
		tuner.SetClock(clock.read)
		counts := make([]int, n)
		for i := range counts {
			counts[i] = 100
		}
		cost := map[int64]time.Duration{0: 10, 64: 9, 4096: 5, 1 << 20: 7}
		for call := range 300 {
			err := tuner.Run(ctx, func(ctx context.Context) error {
				v, err := c.Value("small")
				if err != nil {
					return err
				}
				if got := before.Plan().Eager; got != v {
					return fmt.Errorf("call %d: the collective has eager=%d, $small is %d", call, got, v)
				}
				clock.now += cost[v]*time.Microsecond + time.Duration(c.Rank())*time.Nanosecond
				for i := range send {
					send[i], recv[i] = int64(call*n+c.Rank()), -1
				}
				if call%2 == 0 {
					err = before.Run(ctx)
				} else {
					err = planner.Alltoallv(ctx, c, send, counts, recv, counts)
				}
				for i, got := range recv {
					if got != int64(call*n+i/100) {
						return errors.Join(err, fmt.Errorf("call %d: element %d is %d", call, i, got))
					}
				}
				return err
			})
			if err != nil {
				return fmt.Errorf("call %d: %w", call, err)
			}
		}
		if v, err := c.Value("small"); v != 4096 || err != nil || tuner.Holds() != "4096" || before.Plan().Eager != 4096 {
			return fmt.Errorf("$small is %d in the end, %w\n%s", v, err, tuner.Explain())
		}
		after, err := planner.PrepareAlltoall(ctx, c, send, recv)
		if err != nil {
			return err
		}
		if text := after.Explain(); !strings.Contains(text, "tuner of $small: 4096 holds since call ") || !strings.Contains(text, "eager=4KiB") {
			return fmt.Errorf("it says\n%s", text)
		}
		if text := tuner.Explain(); !strings.Contains(text, "  0: 2.00 of its time\n") || !strings.Contains(text, "  1048576: 1.40 of its time\n") {
			return fmt.Errorf("it says\n%s", text)
		}
		return after.Run(ctx)
	})
}

// Parts of plans are tried: what is forced stays, and what can't be is not.
func TestTunerOfPlans(t *testing.T) {
	onRanks(t, &planner.Options{Plan: "bcast:w=3"}, func(ctx context.Context, c *planner.Comm) error {
		buf := make([]byte, 1<<16)
		of, err := planner.PrepareBcast(ctx, c, buf, 0)
		if err != nil {
			return err
		}
		plans := []string{"bcast:shape=flat,ib=adapt/binomial", "bcast:shape=flat,ib=adapt/chain,fs=8KiB,w=9", "bcast:shape=lanes", "bcast:ompi=6/64KiB", "shape=scan"}
		tuner, err := feedback.New(c, feedback.Options{Plans: plans[:4], Every: 3, Of: []*planner.Collective{of}})
		if err != nil {
			return err
		}
		var clock fakeClock
		tuner.SetClock(clock.read)
		for call := range 100 {
			err := tuner.Run(ctx, func(ctx context.Context) error {
				if c.Rank() == 0 {
					buf[call%len(buf)] = byte(call)
				}
				clock.now += time.Microsecond
				if of.Plan().Segment != 8<<10 {
					clock.now += time.Microsecond
				}
				if err := of.Run(ctx); err != nil {
					return err
				}
				if buf[call%len(buf)] != byte(call) || of.Plan().Window != 3 {
					return fmt.Errorf("call %d has brought %d by %v", call, buf[call%len(buf)], of.Plan())
				}
				return planner.Bcast(ctx, c, buf, 0)
			})
			if err != nil {
				return fmt.Errorf("call %d: %w", call, err)
			}
		}
		if of.Plan().Segment != 8<<10 || tuner.Holds() != plans[1] || !strings.Contains(tuner.Explain(), "6/64KiB: 2.00 of its time") {
			return fmt.Errorf("it has %v\n%s", of.Plan(), tuner.Explain())
		}
		if text := of.Explain(); !strings.Contains(text, "forced by a tuner and Options.Plan") {
			return fmt.Errorf("it says\n%s", text)
		}
		tuner.Freeze()
		for range 100 {
			if err := tuner.Run(ctx, of.Run); err != nil {
				return err
			}
		}
		if text := tuner.Explain(); !strings.Contains(text, "; frozen\n") {
			return fmt.Errorf("it says\n%s", text)
		}
		tuner.Continue()
		return tuner.Run(ctx, of.Run)
	})
}

// A call that fails, on one rank or because its context ends, in whatever turn, leaves no rank
// behind.
func TestTunerFails(t *testing.T) {
	errOwn := errors.New("one rank's own")
	for _, broken := range []bool{false, true} {
		for at := range 12 { // the fifth call is a candidate's first one, the tenth is a trial
			comms := local(t, "2x2", &planner.Options{Rules: "rules", Files: fstest.MapFS{"rules": {Data: []byte(skewed)}}})
			errs := each(t, comms, func(ctx context.Context, c *planner.Comm) error {
				tuner, err := feedback.New(c, feedback.Options{Value: "small", Numbers: []int64{100, 200}})
				if err != nil {
					return err
				}
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				for call := range 40 {
					err := tuner.Run(ctx, func(ctx context.Context) error {
						if call == at && c.Rank() == 1 && broken {
							cancel()
						}
						err := planner.Barrier(ctx, c)
						if call == at && c.Rank() == 1 && !broken {
							return errOwn
						}
						return err
					})
					if call == at && c.Rank() == 1 && !broken {
						if !errors.Is(err, errOwn) {
							return fmt.Errorf("call %d: %w", call, err)
						}
					} else if err != nil {
						return err
					}
				}
				return nil
			})
			for r, err := range errs {
				if (err != nil) != broken || broken && !errors.Is(err, context.Canceled) && !errors.Is(err, planner.ErrBroken) {
					t.Errorf("call %d, broken %v: rank %d: %v", at, broken, r, err)
				}
			}
			for _, err := range each(t, comms, func(_ context.Context, c *planner.Comm) error { return c.Close() }) {
				if err != nil && !broken {
					t.Error(err)
				}
			}
		}
	}
}

// Ranks that tune otherwise hear of it.
func TestTunersDiffer(t *testing.T) {
	comms := local(t, "2x1", &planner.Options{Rules: "rules", Files: fstest.MapFS{"rules": {Data: []byte(skewed)}}})
	errs := each(t, comms, func(ctx context.Context, c *planner.Comm) error {
		tuner, err := feedback.New(c, feedback.Options{Value: "small", Numbers: []int64{1, 2, 3}[:2+c.Rank()]})
		if err != nil {
			return err
		}
		for range 10 {
			if err := tuner.Run(ctx, func(ctx context.Context) error { return planner.Barrier(ctx, c) }); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(errs...); !errors.Is(err, planner.ErrMismatch) || !strings.Contains(err.Error(), "a trial of $small, 4 candidates, every 5 calls") {
		t.Error(err)
	}
	for _, c := range comms {
		_ = c.Close()
	}
}

func TestTuneErrors(t *testing.T) {
	comms := local(t, "2", &planner.Options{Rules: "rules", Files: fstest.MapFS{"rules": {Data: []byte(skewed)}}})
	c := comms[0]
	other, err := planner.PrepareBarrier(t.Context(), comms[1])
	if err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]feedback.Options{
		"it takes one of both": {},

		`value "small" and plans ["w=2"]; it takes one of both`: {Value: "small", Plans: []string{"w=2"}},
		"$large: no such value":                                 {Value: "large", Numbers: []int64{1}},
		"numbers [0]; it takes some beside what $small is, 0":   {Value: "small", Numbers: []int64{0}},
		"-1 for $small; allowed are 0 and more":                 {Value: "small", Numbers: []int64{-1}},
		"a trial every 1 calls; allowed are 2 and more":         {Plans: []string{"w=2"}, Every: 1},
		`a tuner: w=x: unknown submodule "x"`:                   {Plans: []string{"w=x"}},
		"a collective of another communicator, or none":         {Plans: []string{"w=2"}, Of: []*planner.Collective{other}},
	} {
		if _, err := feedback.New(c, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	tuner, err := feedback.New(c, feedback.Options{Plans: []string{"w=2"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := tuner.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "the function is nil") {
		t.Error(err)
	}
	closeAll(t, comms)
}

// Without a tuner, between trials and when it is frozen nothing is allocated.
func TestTunerAllocatesNothing(t *testing.T) {
	comms := local(t, "1", nil)
	call := func(context.Context) error { return nil }
	for name, every := range map[string]int{"off": 0, "between": 1 << 20, "frozen": 2} {
		var tuner *feedback.Tuner
		var err error
		if every > 0 {
			if tuner, err = feedback.New(comms[0], feedback.Options{Plans: []string{"w=2"}, Every: every}); err != nil {
				t.Fatal(err)
			}
		}
		if every == 2 {
			tuner.Freeze()
		}
		ctx := t.Context()
		for range 10 {
			if err := tuner.Run(ctx, call); err != nil {
				t.Fatal(err)
			}
		}
		if n := testing.AllocsPerRun(100, func() { _ = tuner.Run(ctx, call) }); n > 0 {
			t.Errorf("%s: %g allocations", name, n)
		}
	}
	closeAll(t, comms)
}
