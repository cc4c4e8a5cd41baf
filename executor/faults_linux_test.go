//go:build linux

package executor_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/internal/faulty"
	"github.com/tierflow/tierflow/executor/proc"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules/check/casegen"
)

// openProcesses is closed by closeProcesses.
func openProcesses(t failer, h *levels.Topology, c proc.Config, tamper Tamper) *Processes {
	t.Helper()
	p, err := NewProcesses(h, c, tamper)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// processesOf makes the ranks of a topology processes until the end of the test.
func processesOf(t *testing.T, topo string) *Processes {
	t.Helper()
	h, _ := parse(t, topo, "")
	p := openProcesses(t, h, proc.Config{}, nil)
	t.Cleanup(func() { closeProcesses(t, p) })
	return p
}

func closeProcesses(t failer, p *Processes) {
	t.Helper()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

// Late messages change no result on shared memory and TCP either.
func TestFaultsDelayProcesses(t *testing.T) {
	few(t, 40, func(t *rapid.T) {
		c := draw(t, casegen.Options{})
		p := openProcesses(t, c.Topology, proc.Config{Config: drawConfig(t)}, nil)
		defer closeProcesses(t, p)
		disturbedCase(t, c, p.World)
	})
}

// drawStorm draws a case, a configuration and how many rounds it rages for.
func drawStorm(t failer, draw *rand.Rand, tcp bool, tamper Tamper) (*storm, *Processes) {
	t.Helper()
	of := stormCases[draw.IntN(len(stormCases))]
	if tcp {
		of = stormCases[draw.IntN(4)]
	}
	h, plan := parse(t, of.topo, of.plan)
	p := openProcesses(t, h, proc.Config{Config: executor.Config{EagerBudget: []int64{0, 300}[draw.IntN(2)]}, NoPeerReads: draw.IntN(2) == 0}, tamper)
	return newStorm(t, p.World, h, plan, of.n), p
}

// fresh checks that a world made after a failed one works.
func fresh(t testing.TB, draw *rand.Rand) {
	t.Helper()
	s, p := drawStorm(t, draw, false, nil)
	defer closeProcesses(t, p)
	for r, err := range s.rage(t, 2, nil) {
		if err != nil {
			t.Errorf("a fresh world, rank %d: %v", r, err)
		}
	}
}

// A message that is heard again over shared memory or TCP is found out, or does no
// harm; so is one of shared memory that is shorter than it says.
func TestFaultsRepeatProcesses(t *testing.T) {
	seeds(t, 16, func(t testing.TB, seed uint64) {
		draw := rand.New(rand.NewPCG(seed, 1))
		s, p := drawStorm(t, draw, false, nil)
		short := draw.IntN(2) == 0
		f := faulty.Faults{Seed: seed, Hold: draw.IntN(2) == 0, Repeat: 1 + draw.IntN(100)}
		if short {
			f.Repeat = 0
		}
		d := executor.Disturb(p.World, f)
		var cut *atomic.Int64
		if short {
			cut = p.Shorten(draw.IntN(20))
		}
		failed := s.check(t, s.rage(t, 8, nil))
		d.Wait()
		closeProcesses(t, p)
		if short && cut.Load() > 0 && failed == 0 {
			t.Errorf("%d messages were cut short and nobody noticed", cut.Load())
		}
		fresh(t, draw)
	})
}

// When a rank gives up at any message, the others hear who it was; all buffers are
// their callers' again.
func TestFaultsCancel(t *testing.T) {
	strike(t, 8, errEnough, func(*Processes, levels.Rank) {}, func(t testing.TB, canceller int, errs []error) {
		for r, err := range errs {
			if err != nil && (r == canceller) != errors.Is(err, errEnough) || r != canceller && err != nil && !names(err, levels.Rank(canceller)) {
				t.Errorf("rank %d: %v, want the cause on rank %d and a PeerError of it elsewhere", r, err, canceller)
			}
		}
	})
}

// When a rank dies at any message, the others hear who it was, and nothing is written
// to their buffers any more.
func TestFaultsKill(t *testing.T) {
	strike(t, 10, ErrKilled, (*Processes).Kill, func(t testing.TB, victim int, errs []error) {
		for r, err := range errs {
			if err != nil && r != victim && !names(err, levels.Rank(victim)) {
				t.Errorf("rank %d: %v, want a PeerError of rank %d", r, err, victim)
			}
		}
		if errs[victim] != nil && !errors.Is(errs[victim], ErrKilled) {
			t.Errorf("the victim: %v", errs[victim])
		}
	})
}

// strike draws worlds in which one rank's context ends with a cause at any message, after blow.
// What its calls and the others' have returned is checked, and their buffers.
func strike(t *testing.T, worlds int, cause error, blow func(*Processes, levels.Rank), check func(t testing.TB, victim int, errs []error)) {
	seeds(t, worlds, func(t testing.TB, seed uint64) {
		draw := rand.New(rand.NewPCG(seed, 1))
		s, p := drawStorm(t, draw, false, nil)
		victim := draw.IntN(p.Size())
		struck, end := context.WithCancelCause(t.Context())
		defer end(nil)
		d := executor.Disturb(p.World, faulty.Faults{
			Seed: seed, Hold: true, After: 1 + draw.IntN(60),
			At: func(r levels.Rank) {
				if int(r) == victim {
					blow(p, r)
					end(cause)
				}
			},
		})
		errs := s.rage(t, 10, under(victim, struck))
		d.Wait()
		check(t, victim, errs)
		s.untouched(t, errs)
		closeProcesses(t, p)
		fresh(t, draw)
	})
}

// under gives one rank a context that ends with another.
func under(rank int, other context.Context) func(context.Context, int) context.Context {
	return func(ctx context.Context, r int) context.Context {
		if r != rank {
			return ctx
		}
		ctx, cancel := context.WithCancelCause(ctx)
		context.AfterFunc(other, func() { cancel(context.Cause(other)) })
		return ctx
	}
}

// Whatever happens to a frame, each rank gets right results or an error that names a
// rank.
func TestFaultsWire(t *testing.T) {
	for fault := range WireFaults {
		t.Run(fmt.Sprint(fault), func(t *testing.T) {
			t.Parallel()
			seeds(t, 6, func(t testing.TB, seed uint64) {
				draw := rand.New(rand.NewPCG(seed, 1))
				wire := &Wire{Seed: seed, Fault: fault, Within: 1 + draw.IntN(60)}
				s, p := drawStorm(t, draw, true, wire.Tamper)
				failed := s.check(t, s.rage(t, 8, nil))
				closeProcesses(t, p)
				if fault != RepeatFrame && wire.Hit.Load() > 0 && failed == 0 {
					t.Errorf("%d connections were hit and nobody noticed", wire.Hit.Load())
				}
				fresh(t, draw)
			})
		})
	}
}
