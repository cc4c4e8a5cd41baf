package executor_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/internal/faulty"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules/check/casegen"
	"github.com/tierflow/tierflow/tasks"
)

// long asks for many more rounds.
var long = os.Getenv("TIERFLOW_TEST_LONG") != ""

// seeds runs rounds of a test that draws from a seed, all at once: most of the time
// they wait. TIERFLOW_TEST_SEED in the environment repeats the one that failed.
func seeds(t *testing.T, rounds int, f func(t testing.TB, seed uint64)) {
	t.Helper()
	many := 1
	if long {
		many = 50
	}
	var again []uint64
	if text := os.Getenv("TIERFLOW_TEST_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("TIERFLOW_TEST_SEED: %v", err)
		}
		again, rounds = slices.Repeat([]uint64{seed}, rounds), 0
	}
	for range many {
		var all sync.WaitGroup
		seeds := slices.Clone(again)
		for range rounds {
			seeds = append(seeds, rand.Uint64())
		}
		for _, seed := range seeds {
			all.Go(func() { f(seeded{t, seed}, seed) })
		}
		all.Wait()
	}
}

// seeded is one round of a test, on a goroutine of its own.
type seeded struct {
	*testing.T
	seed uint64
}

func (s seeded) Errorf(format string, args ...any) {
	s.Helper()
	s.T.Errorf("TIERFLOW_TEST_SEED=%d: %s", s.seed, fmt.Sprintf(format, args...))
}

func (s seeded) Fatalf(format string, args ...any) {
	s.Helper()
	s.Errorf(format, args...)
	runtime.Goexit()
}

func (s seeded) Fatal(args ...any) {
	s.Helper()
	s.Fatalf("%s", fmt.Sprint(args...))
}

// stormCases are layouts and plans that between them use all kinds of messages.
var stormCases = []struct {
	topo, plan string
	n          int
}{
	{"2x2", "shape=han,fs=1KiB,w=2,s=sm,i=adapt/chain", 3000},
	{"2x2", "shape=han,fs=64KiB,w=2,s=solo,i=nbc", 70_000},
	{"4x1", "shape=flat,fs=8KiB,w=2,s=adapt/binomial,i=adapt/binomial", 20_000},
	{"3x1", "shape=flat,fs=all,w=1,s=adapt/chain,i=adapt/chain", 150_000},
	{"1x3", "shape=han,fs=4KiB,w=3,s=adapt/chain", 4000},
	{"1x3", "shape=han,fs=64KiB,w=2,s=solo", 50_000},
}

// errWrong is a wrong result: what no fault may lead to.
var errWrong = errors.New("wrong result")

// storm is ranks that sum and pass messages on, again and again, until a fault
// ends it.
type storm struct {
	world *executor.World
	runs  []*executor.Run
	bufs  [][]int32
	n     int
}

func newStorm(t failer, w *executor.World, h *levels.Topology, p tasks.Plan, n int) *storm {
	t.Helper()
	s := &storm{world: w, bufs: numbers(h.Size(), n), n: n}
	s.runs = job{w, h, tasks.Request{Coll: tasks.Allreduce, Count: int64(n), Type: tasks.Int32, Op: tasks.Sum, InPlace: true}, p}.bind(t, nil, raws(s.bufs))
	return s
}

const spoiled = 0x5a5a5a5a

// rage returns the ranks' errors. Those that failed leave their buffers spoiled.
func (s *storm) rage(t failer, rounds int, under func(ctx context.Context, rank int) context.Context) []error {
	t.Helper()
	all, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	return ranks(t, s.world, func(ctx context.Context, r int) error {
		ctx, stop := context.WithCancelCause(ctx)
		defer context.AfterFunc(all, func() { stop(context.Cause(all)) })()
		if under != nil {
			ctx = under(ctx, r)
		}
		for i := range rounds {
			if err := s.round(ctx, r, i); err != nil {
				if errors.Is(err, errWrong) {
					cancel(err) // the others would wait
				}
				for i := range s.bufs[r] {
					s.bufs[r][i] = spoiled
				}
				return fmt.Errorf("round %d: %w", i, err)
			}
		}
		return nil
	})
}

func (s *storm) round(ctx context.Context, r, i int) error {
	size := s.world.Size()
	copy(s.bufs[r], numbers(size, s.n)[r])
	if err := s.runs[r].Do(ctx); err != nil {
		return err
	}
	if !slices.Equal(s.bufs[r], sums(size, s.n)) {
		return errWrong
	}
	n := []int{100, 50_000}[i%2]
	out, in := message(n, r+i), make([]byte, n)
	c := s.world.Endpoint(levels.Rank(r)).Comm(0)
	got, err := c.Recv(ctx, levels.Rank((r+size-1)%size), 1, 0, in)
	if err != nil {
		return err
	}
	sent, err := c.Send(ctx, levels.Rank((r+1)%size), 1, 0, out)
	if err != nil {
		return err
	}
	if err := errors.Join(got.Wait(ctx), sent.Wait(ctx)); err != nil {
		return err
	}
	if !bytes.Equal(in, message(n, (r+size-1)%size+i)) {
		return fmt.Errorf("%w: a message of %d bytes", errWrong, n)
	}
	return nil
}

// untouched checks that nothing was written behind the backs of ranks that failed.
func (s *storm) untouched(t testing.TB, errs []error) {
	t.Helper()
	for r, err := range errs {
		if i := slices.IndexFunc(s.bufs[r], func(v int32) bool { return v != spoiled }); err != nil && i >= 0 {
			t.Errorf("rank %d: element %d was written after its call had returned", r, i)
		}
	}
}

// check is untouched, and lets only errors pass that are one of the documented ones.
func (s *storm) check(t testing.TB, errs []error) (failed int) {
	t.Helper()
	for r, err := range errs {
		if err == nil {
			continue
		}
		failed++
		var peer *executor.PeerError
		if !errors.As(err, &peer) && !errors.Is(err, executor.ErrProtocol) || errors.Is(err, errWrong) {
			t.Errorf("rank %d: %v, want a PeerError or %v", r, err, executor.ErrProtocol)
		}
	}
	s.untouched(t, errs)
	return failed
}

// few makes rapid check fewer cases than it would, unless long ones are wanted.
func few(t *testing.T, n int, f func(t *rapid.T)) {
	t.Helper()
	if long {
		n = 1000
	}
	checks := flag.Lookup("rapid.checks")
	defer checks.Value.Set(checks.Value.String())
	if err := checks.Value.Set(strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, f)
}

// disturbedCase runs a random case a few times with messages that come late and in
// random order across links.
func disturbedCase(t *rapid.T, c casegen.Case, w *executor.World) {
	defer executor.Disturb(w, faulty.Faults{Seed: rapid.Uint64().Draw(t, "faults"), Hold: true}).Wait()
	var rounds []round
	var runs [][]*executor.Run
	for range 3 {
		d := newRound(t, c.Request, w.Size())
		rounds = append(rounds, d)
		runs = append(runs, job{w, c.Topology, c.Request, c.Plan}.bind(t, d.send, d.recv))
	}
	succeed(t, w, func(ctx context.Context, r int) error {
		for _, run := range runs {
			if err := run[r].Start(ctx); err != nil {
				return err
			}
		}
		for _, run := range runs {
			if err := run[r].Wait(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	for _, d := range rounds {
		d.check(t, c)
	}
}

// Late messages change no result.
func TestFaultsDelay(t *testing.T) {
	few(t, 60, func(t *rapid.T) {
		c := draw(t, casegen.Options{})
		w := drawWorld(t, c.Topology.Size())
		defer w.Close()
		disturbedCase(t, c, w)
	})
}

// A message that is heard again is found out, or does no harm.
func TestFaultsRepeat(t *testing.T) {
	seeds(t, 12, func(t testing.TB, seed uint64) {
		draw := rand.New(rand.NewPCG(seed, 1))
		of := stormCases[draw.IntN(len(stormCases))]
		h, p := parse(t, of.topo, of.plan)
		w := newWorld(t, h.Size(), executor.Config{EagerBudget: []int64{0, 300}[draw.IntN(2)]})
		d := executor.Disturb(w, faulty.Faults{Seed: seed, Hold: draw.IntN(2) == 0, Repeat: 1 + draw.IntN(100)})
		s := newStorm(t, w, h, p, of.n)
		errs := s.rage(t, 6, nil)
		d.Wait()
		s.check(t, errs)
	})
}
