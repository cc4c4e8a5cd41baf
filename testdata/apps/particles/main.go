// Command particles moves particles through a ring of cells, one for each rank, as the application
// of figure 2 in Fagg and others, Flexible Collective Communication Tuning Architecture Applied to
// Open MPI (2006). In each step those that have left their cell go to its new owner, by an
// alltoallv whose blocks differ by a lot: most particles are slow, and one half of the ring has
// more. Messages up to a threshold leave at once, longer ones one after the other. The threshold
// tunes itself while the program runs.
//
//	tierflow run -n 8 -- particles -small 0 -curve particles.json
//	tierflow-lab figure particles.json -o particles.svg
//
// Rank 0 prints what steps took on the slowest rank, and what the tuner has found. Ranks check that
// each particle is where it must be, and none was lost.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"slices"
	"testing/fstest"
	"time"

	"github.com/tierflow/tierflow/executor/local"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/feedback"
	"github.com/tierflow/tierflow/tasks"
)

// particle is in a ring of 2⁶⁴ places.
type particle struct {
	X, Speed, ID uint64
}

type settings struct {
	particles, steps, every int
	small                   int64
	curve, topo             string
}

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		log.Fatal("particles: ", err)
	}
}

// run joins the job and prints rank 0's lines.
func run(ctx context.Context, args []string, out io.Writer) error {
	var s settings
	f := flag.NewFlagSet("particles", flag.ContinueOnError)
	f.IntVar(&s.particles, "particles", 20_000, "particles of each rank in the beginning, 1 or more")
	f.IntVar(&s.steps, "steps", 500, "steps, 10 or more")
	f.IntVar(&s.every, "every", 5, "steps from one trial to the next, 2 or more; 0: the threshold stays")
	f.Int64Var(&s.small, "small", 0, "the threshold in the beginning, bytes")
	f.StringVar(&s.topo, "topo", "", "goroutine ranks on such nodes, linked at 1 Gbit/s and 200 µs; empty: the ranks of the job")
	f.StringVar(&s.curve, "curve", "", "file for the steps' times, for tierflow-lab figure; empty: none")
	if err := f.Parse(args); err != nil {
		return err
	} else if s.particles < 1 || s.steps < 10 || s.small < 0 {
		return fmt.Errorf("-particles %d -steps %d -small %d: allowed are 1, 10 and 0, and more", s.particles, s.steps, s.small)
	}
	o := &planner.Options{Rules: "rules", Files: fstest.MapFS{"rules": {Data: []byte(rules)}}}
	if t, err := levels.Parse(s.topo); s.topo != "" && err != nil {
		return err
	} else if s.topo != "" {
		o.Link = local.NewNetwork(t, 1e9/8, 200*time.Microsecond)
		return planner.Run(ctx, s.topo, o, func(ctx context.Context, c *planner.Comm) error { return report(ctx, c, s, out) })
	}
	comm, err := planner.Join(ctx, o)
	if err != nil {
		return err
	}
	defer comm.Close()
	return report(ctx, comm, s, out)
}

// report runs the simulation, and prints its times on rank 0.
func report(ctx context.Context, c *planner.Comm, s settings, out io.Writer) error {
	ms, tuner, err := simulate(ctx, c, s)
	if err != nil || c.Rank() != 0 {
		return err
	}
	tenth := len(ms) / 10
	fmt.Fprintf(out, "small=%d first=%.3fms last=%.3fms\n%s", s.small, middle(ms[:tenth]), middle(ms[len(ms)-tenth:]), tuner.Explain())
	if s.curve == "" {
		return nil
	}
	title := fmt.Sprintf("particles on %v, threshold %s in the beginning", c.Topology(), tasks.FormatBytes(s.small))
	curve, err := json.Marshal(map[string]any{"title": title, "x": "step", "y": "ms", "series": []any{map[string]any{"name": "step", "values": ms}}})
	if err != nil {
		return err
	}
	return os.WriteFile(s.curve, curve, 0o644)
}

// rules let a named value decide which messages are short.
const rules = "$small = 0\nalltoallv: shape=flat,eager=$small,ia=adapt/pairwise\n"

// thresholds are tried beside the first one.
var thresholds = []int64{0, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}

// simulate runs the steps, checks the particles, and returns the times of the slowest rank.
func simulate(ctx context.Context, c *planner.Comm, s settings) (ms []float64, tuner *feedback.Tuner, err error) {
	if err := c.Set(ctx, "small", s.small); err != nil {
		return nil, nil, err
	}
	if s.every > 0 { // no tuner tunes nothing
		if tuner, err = feedback.New(c, feedback.Options{Value: "small", Numbers: thresholds, Every: s.every}); err != nil {
			return nil, nil, err
		}
	}
	mine := create(s.particles, c.Rank(), c.Size())
	want := digest(mine, uint64(s.steps))
	took := make([]int64, s.steps)
	for i := range took {
		begin := time.Now()
		err := tuner.Run(ctx, func(ctx context.Context) error {
			parts, err := planner.AlltoallBlocks(ctx, c, move(mine, c.Size()))
			mine = slices.Concat(parts...)
			return err
		})
		if err != nil {
			return nil, nil, fmt.Errorf("step %d: %w", i, err)
		}
		took[i] = int64(time.Since(begin))
	}
	if err := check(ctx, c, mine, want); err != nil {
		return nil, nil, err
	}
	err = planner.Allreduce(ctx, c, took, took, tasks.Max)
	for _, ns := range took {
		ms = append(ms, float64(ns)/1e6)
	}
	return ms, tuner, err
}

// create makes a rank's particles, in its own cell. Ranks of the first half have twice as many as
// those of the second. A particle moves by h cells in a step with a probability like 1/h².
func create(n, rank, ranks int) []particle {
	if 2*rank >= ranks {
		n = (n + 1) / 2
	}
	draw, cell := rand.New(rand.NewPCG(2, uint64(rank))), math.MaxUint64/uint64(ranks)
	all := make([]particle, n)
	for i := range all {
		cells := min(1/(1-draw.Float64()), float64(ranks)/2)
		speed := uint64(cells * float64(cell) * 0.99)
		if draw.IntN(2) == 0 {
			speed = -speed
		}
		all[i] = particle{uint64(rank)*cell + draw.Uint64N(cell), speed, uint64(rank)<<32 + uint64(i)}
	}
	return all
}

// owner is the rank whose cell a place is in.
func owner(x uint64, ranks int) int {
	rank, _ := bits.Mul64(x, uint64(ranks))
	return int(rank)
}

// move takes all particles a step further and returns them by their new owners.
func move(all []particle, ranks int) [][]particle {
	blocks := make([][]particle, ranks)
	for _, p := range all {
		p.X += p.Speed
		blocks[owner(p.X, ranks)] = append(blocks[owner(p.X, ranks)], p)
	}
	return blocks
}

// digest is the same whatever the order, and those of parts add up. It is of the particles as they
// are after so many steps.
func digest(all []particle, steps uint64) (sum uint64) {
	for _, p := range all {
		x := (p.X + steps*p.Speed ^ p.ID) * 0x9e3779b97f4a7c15
		sum += (x ^ x>>29) * 0xbf58476d1ce4e5b9
	}
	return sum
}

// check returns an error on all ranks unless they have the particles that they must have.
func check(ctx context.Context, c *planner.Comm, mine []particle, want uint64) error {
	wrong := slices.ContainsFunc(mine, func(p particle) bool { return owner(p.X, c.Size()) != c.Rank() })
	lost, err := planner.AllreduceValue(ctx, c, want-digest(mine, 0), tasks.Sum)
	if err != nil {
		return err
	}
	if wrong, err = c.Any(ctx, wrong || lost != 0); err == nil && wrong {
		err = errors.New("a particle is not where it must be, or was lost")
	}
	return err
}

// middle is the median.
func middle(all []float64) float64 { return slices.Sorted(slices.Values(all))[len(all)/2] }
