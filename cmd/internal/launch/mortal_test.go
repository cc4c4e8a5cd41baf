//go:build linux

package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/elastic"
	"github.com/tierflow/tierflow/tasks"
)

func init() { rankPrograms["mortal"] = mortal }

// The phases in which a process may die that goes on after deaths.
const (
	inStep   = "step"
	inShrink = "Shrink"
	inRetry  = "Retry"
	inGrow   = "Grow"
	inSync   = "Sync"
)

// lastHour is when a process dies: some time after it has begun a phase for the n-th time.
type lastHour struct {
	phase  string // empty: never
	nth    int
	within time.Duration
}

// drawHour draws that of one process: the first one with a rank, or one that was started later.
func drawHour(seed, process uint64, phases []string) lastHour {
	draw := rand.New(rand.NewPCG(seed, process))
	return lastHour{phases[draw.IntN(len(phases))], 1 + draw.IntN(2), time.Duration(draw.Int64N(int64(15 * time.Millisecond)))}
}

// begin begins a phase, in which the process may die soon.
func (d *lastHour) begin(phase string) {
	if phase != d.phase {
		return
	}
	if d.nth--; d.nth == 0 {
		fmt.Printf("dies in %s\n", phase)
		time.AfterFunc(d.within, func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) })
	}
}

// mortalState is what training has come to: the next step, and weights that all are the sum of the steps before.
type mortalState struct {
	step    []float64
	weights []float64
	grads   []float64
	hour    lastHour
}

// mostDeaths bounds the deaths of a job.
const mostDeaths = 12

// mortal trains by args[0], Elastic or Retry, with a seed, for some steps.
func mortal(args []string) {
	seed, err := strconv.ParseUint(args[1], 10, 64)
	check(err)
	steps, err := strconv.Atoi(args[2])
	check(err)
	m := &mortalState{step: []float64{1}, weights: make([]float64, 50_000), grads: make([]float64, 50_000)}
	process, rank := cmp.Or(os.Getenv("TIERFLOW_RESTARTS"), "0"), os.Getenv("TIERFLOW_RANK")
	restarts, err := strconv.ParseUint(process, 10, 64)
	check(err)
	phases := []string{inStep, inShrink, inGrow, inSync, inSync}
	if args[0] == inRetry {
		phases = []string{inStep, inShrink, inRetry}
	}
	switch number, _ := strconv.ParseUint(rank, 10, 64); {
	case restarts == 0 && rank == "5": // one must live
	case restarts == 0:
		m.hour = drawHour(seed, number, phases)
	case restarts < mostDeaths:
		m.hour = drawHour(seed, 100+restarts, phases)
	}
	if args[0] == inRetry {
		check(m.retry(float64(steps)))
	} else {
		check(m.elastic(float64(steps)))
	}
	if m.step[0] > float64(steps) { // else it came too late
		wrong := slices.ContainsFunc(m.weights, func(w float64) bool { return w != float64(steps*(steps+1)/2) })
		fmt.Printf("ends right: %t\n", !wrong)
	}
}

// take takes a step on a communicator.
func (m *mortalState) take(ctx context.Context, c *planner.Comm) error {
	for i := range m.grads {
		m.grads[i] = m.step[0]
	}
	m.hour.begin(inStep)
	return planner.Allreduce(ctx, c, m.grads, m.grads, tasks.Average)
}

// learn takes in the step's sum.
func (m *mortalState) learn() {
	for i, g := range m.grads {
		m.weights[i] += g
	}
	m.step[0]++
}

// elastic goes on with those who live and with newcomers.
func (m *mortalState) elastic(steps float64) error {
	return elastic.Run(context.Background(), nil, func(ctx context.Context, c *planner.Comm, change *planner.Change) (err error) {
		defer func() {
			switch {
			case errors.Is(err, planner.ErrChange):
				m.hour.begin(inGrow)
			case planner.Recoverable(err):
				m.hour.begin(inShrink)
			}
		}()
		if change != nil {
			m.hour.begin(inSync)
		}
		if _, err := elastic.Sync(ctx, c, uint64(m.step[0]), elastic.PartOf("step", m.step), elastic.PartOf("weights", m.weights)); err != nil {
			return err
		}
		for m.step[0] <= steps {
			if err := c.Turn(ctx); err != nil {
				return err
			}
			err := m.take(ctx, c)
			if all, failed := c.Agree(ctx, err == nil); !all {
				return cmp.Or(err, failed, planner.ErrRevoked)
			}
			m.learn()
		}
		return nil
	})
}

// retry goes on with those who live, by calls that end alike on all of them.
func (m *mortalState) retry(steps float64) error {
	ctx := context.Background()
	c, err := planner.Join(ctx, &planner.Options{Uniform: true})
	if err != nil {
		return err
	}
	for m.step[0] <= steps {
		tries := 0
		c, err = elastic.Retry(ctx, c, func(c *planner.Comm) error {
			if tries++; tries > 1 {
				m.hour.begin(inRetry)
			}
			err := m.take(ctx, c)
			if planner.Recoverable(err) {
				m.hour.begin(inShrink)
			}
			return err
		})
		if err != nil {
			return err
		}
		m.learn()
	}
	return c.Close()
}

// mortalTime is after how long a job counts as hanging. Most take a second. A join that waits until its time is over counts
// too.
const mortalTime = forever

// Processes die in steps, and while they and others shrink, retry, grow and sync; the next one often while the others are
// at the one before. Those who are left, and who come in, end with the right sum. TIERFLOW_TEST_KILLS is how many must die,
// TIERFLOW_TEST_SEED the first seed.
func TestMortal(t *testing.T) {
	t.Parallel()
	kills, seed := 10, rand.Uint64()
	readNumber(t, "TIERFLOW_TEST_KILLS", &kills)
	readNumber(t, "TIERFLOW_TEST_SEED", &seed)
	died, all := map[string]int{}, 0
	for n := uint64(0); all < kills; n++ {
		kind, steps, restarts := "Elastic", 150, 3*mostDeaths
		if n%3 == 2 {
			kind, steps, restarts = inRetry, 30, 0
		}
		opts := Options{Program: rankLine(t, "mortal", kind, strconv.FormatUint(seed+n, 10), strconv.Itoa(steps)), MaxRestarts: restarts, Min: 1, Timeout: mortalTime}
		opts.Hosts, opts.Launcher, opts.Oversubscribe = "a:3,b:3", launcherLocal, true
		opts.Env = append(os.Environ(), "TIERFLOW_JOIN_TIMEOUT="+mortalTime.String())
		r := run(t, opts)
		out, before := r.stdout.String(), all
		for _, phase := range regexp.MustCompile(`dies in (\w+)`).FindAllStringSubmatch(out, -1) {
			died[phase[1]]++
			all++
		}
		if right, wrong := count(out, "ends right: true"), count(out, "ends right: false"); r.status != 0 || r.err != nil || right == 0 || wrong > 0 {
			t.Fatalf("%s, seed %d: status %d, %v; %d end with the right sum, %d with a wrong one:\n%s%s", kind, seed+n, r.status, r.err, right, wrong, out, r.stderr.String())
		}
		t.Logf("%s, seed %d: %d died", kind, seed+n, all-before)
	}
	t.Logf("%d processes died, seeds %d and on: %v", all, seed, strings.TrimPrefix(fmt.Sprint(died), "map"))
}
