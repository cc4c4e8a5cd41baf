// Command train trains a language model on all ranks: it guesses the next byte of the Go
// toolchain's own source. Every machine with a Go compiler has it.
//
//	go run ./testdata/apps/train                                a minute on 4 processes, and a curve
//	tierflow run -n 4 -- train -mode zero3 -sum exact -steps 50
//
// Micro-batches are shared out among the ranks: -micro is how many a step has, of all ranks
// together. With -sum exact the weights have the same bits for any number of ranks. Rank 0 ends
// with a digest of them.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"time"

	"github.com/tierflow/tierflow/levels/join/launcher"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		log.Fatal("train: ", err)
	}
}

// settings are the values of the flags.
type settings struct {
	mode, sum    string
	micro, steps int
	hidden       int
	batch        int // examples
	turns        int // 0: train
	layers       string
	picture      string
	seed         uint64
	rate         float64
	data, curve  string
	ranks        int
}

func parse(args []string) (s settings, err error) {
	f := flag.NewFlagSet("train", flag.ContinueOnError)
	f.StringVar(&s.mode, "mode", "ddp", "ddp, zero1, zero2 or zero3: what each rank keeps of all and what of its share")
	f.StringVar(&s.sum, "sum", "free", "free, tree or exact: gradients have the same bits for one plan, for any layout, or for any number of ranks too")
	f.IntVar(&s.micro, "micro", 24, "micro-batches in a step, of all ranks together, at least 1")
	f.IntVar(&s.batch, "batch", 32, "examples in a micro-batch, at least 1")
	f.IntVar(&s.steps, "steps", 0, "steps; 0: for a minute")
	f.IntVar(&s.hidden, "hidden", 512, "width of the hidden layer, at least 1")
	f.Uint64Var(&s.seed, "seed", 1, "of the first weights and of the examples")
	f.Float64Var(&s.rate, "rate", 0.002, "of the descent")
	f.StringVar(&s.data, "data", "", "folder with Go files; empty: the toolchain's source")
	f.StringVar(&s.curve, "curve", "train.json", "file for the loss curve, for tierflow-lab figure; empty: none")
	f.IntVar(&s.turns, "turns", 0, "instead of training, find the hidden share of communication: whole steps, computing and sums in so many turns")
	f.StringVar(&s.layers, "layers", "", "file for what layers take, of -turns, for tierflow simulate train; empty: none")
	f.StringVar(&s.picture, "picture", "", "file for a picture of a step, of -turns; empty: none")
	f.IntVar(&s.ranks, "ranks", 4, "processes to start, if there is no launcher")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if !slices.Contains([]string{"ddp", "zero1", "zero2", "zero3"}, s.mode) || !slices.Contains([]string{"free", "tree", "exact"}, s.sum) ||
		min(s.micro, s.batch, s.hidden, s.ranks) < 1 || min(s.steps, s.turns) < 0 {
		return s, fmt.Errorf("-mode %s -sum %s -micro %d -batch %d -hidden %d -ranks %d -steps %d -turns %d: allowed are ddp, zero1, zero2 and zero3; free, tree and exact; 1 or more, and steps and turns of 0",
			s.mode, s.sum, s.micro, s.batch, s.hidden, s.ranks, s.steps, s.turns)
	}
	if s.turns > 0 && (s.mode != "ddp" || s.sum == "exact") {
		return s, fmt.Errorf("-turns %d -mode %s -sum %s: allowed is -mode ddp with sums that are free or tree, which are on their way meanwhile", s.turns, s.mode, s.sum)
	}
	if s.turns == 0 && s.layers+s.picture != "" {
		return s, fmt.Errorf("-layers %q -picture %q without -turns, of which they are; allowed are -turns of 1 or more", s.layers, s.picture)
	}
	return s, nil
}

// run joins the job, or starts one, and trains.
func run(ctx context.Context, args []string, out io.Writer) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	if l, err := launcher.Find(os.Getenv); err == nil && l.Name == launcher.None {
		return launch(ctx, s.ranks, args)
	}
	o, calls := s.options(), newCallLog()
	if s.picture != "" {
		o.Hooks = calls.hooks()
	}
	comm, err := planner.Join(ctx, o)
	if err != nil {
		return err
	}
	defer comm.Close()
	text, err := readCorpus(ctx, s.data)
	if err != nil {
		return err
	}
	if comm.Rank() == 0 {
		fmt.Fprintf(out, "%v\n", text)
	} else {
		out = io.Discard
	}
	if s.turns > 0 {
		s.ranks = comm.Size()
		return overlap(ctx, comm, s, text, calls, out)
	}
	result, err := train(ctx, comm, s, text, out)
	if err != nil || comm.Rank() != 0 {
		return err
	}
	if s.curve != "" {
		curve, err := json.Marshal(map[string]any{"title": "bits a byte, " + s.mode + ", " + s.sum + " sums", "x": "step", "y": "bits", "series": result.series()})
		if err != nil {
			return err
		}
		if err := os.WriteFile(s.curve, curve, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(out, "curve %s\n", s.curve)
	}
	fmt.Fprintf(out, "digest %s\n", result.digest)
	return nil
}

// options force ordered sums if they are asked for.
func (s settings) options() *planner.Options {
	return &planner.Options{Deterministic: s.sum == "tree"}
}

// launch runs this program on processes of its own, by the launcher in this module.
func launch(ctx context.Context, ranks int, args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	words := append([]string{"run", "github.com/tierflow/tierflow/cmd/tierflow", "run", "-n", strconv.Itoa(ranks), "--", self}, args...)
	cmd := exec.CommandContext(ctx, "go", words...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	return cmd.Run()
}

// result is rank 0's findings at the end.
type result struct {
	losses []float64 // bits a byte, of each step
	unseen float64   // bits a byte of text that was held out
	digest string    // of the weights
}

// series is the curve, and its mean over tens of steps.
func (r *result) series() []any {
	mean := make([]float64, len(r.losses))
	for i := range mean {
		part := r.losses[max(0, i-9) : i+1]
		for _, l := range part {
			mean[i] += l / float64(len(part))
		}
	}
	return []any{map[string]any{"name": "step", "values": r.losses}, map[string]any{"name": "mean of 10", "values": mean}}
}

// train trains, and prints how it goes.
func train(ctx context.Context, c *planner.Comm, s settings, text *corpus, out io.Writer) (r result, err error) {
	net := newNetwork(s.hidden, s.seed, s.batch)
	k, err := newKeeper(ctx, c, s, net)
	if err != nil {
		return r, err
	}
	defer k.free()
	mine := (s.micro - c.Rank() + c.Size() - 1) / c.Size() // micro-batches c.Rank(), c.Rank()+c.Size(), …
	rounds := (s.micro + c.Size() - 1) / c.Size()          // in the last some ranks have none
	begin, waited := time.Now(), time.Duration(0)
	for step := 0; s.steps == 0 || step < s.steps; step++ {
		loss := 0.0
		for m := range rounds {
			var b *batch
			if m < mine {
				b = text.batch(s.seed, step*s.micro+c.Rank()+m*c.Size(), s.batch)
			}
			l, err := net.learn(ctx, k, b, m, m == rounds-1)
			if err != nil {
				return r, err
			}
			loss += l / float64(s.micro)
		}
		before := time.Now()
		if err := k.update(ctx, step, mine); err != nil {
			return r, err
		}
		waited += time.Since(before)
		if loss, err = planner.AllreduceValue(ctx, c, loss, tasks.Sum); err != nil {
			return r, err
		}
		r.losses = append(r.losses, loss)
		if step%20 == 0 || step == s.steps-1 {
			total := time.Since(begin)
			fmt.Fprintf(out, "step=%d bits=%.3f examples_per_s=%.0f waiting=%.1f%%\n", step, loss,
				float64((step+1)*s.micro*s.batch)/total.Seconds(), 100*waited.Seconds()/total.Seconds())
		}
		if s.steps == 0 {
			over, err := c.Any(ctx, time.Since(begin) > time.Minute)
			if err != nil || over {
				return r.end(ctx, c, net, k, text, s, out, err)
			}
		}
	}
	return r.end(ctx, c, net, k, text, s, out, nil)
}

// end measures the loss on text that was held out, and takes the digest.
func (r result) end(ctx context.Context, c *planner.Comm, net *network, k keeper, text *corpus, s settings, out io.Writer, err error) (result, error) {
	for u := 0; u < units && err == nil; u++ {
		var w []float32
		w, err = k.weights(ctx, u)
		net.weights[u] = slices.Clone(w) // all of them at once
		k.done(u)
	}
	if err != nil {
		return r, err
	}
	const batches = 32
	for i := c.Rank(); i < batches; i += c.Size() {
		r.unseen += net.loss(text.unseen(i, s.batch)) / batches
	}
	if r.unseen, err = planner.AllreduceValue(ctx, c, r.unseen, tasks.Sum); err != nil {
		return r, err
	}
	fmt.Fprintf(out, "held out: %.3f bits a byte\n", r.unseen)
	h := sha256.New()
	for _, w := range net.weights {
		_ = binary.Write(h, binary.LittleEndian, w) // a hash takes all
	}
	r.digest = fmt.Sprintf("%x", h.Sum(nil)[:16])
	return r, nil
}

// adam is Adam's descent (Kingma and Ba, ICLR 2015) of some weights, with their moments.
type adam struct {
	rate  float64
	m, v  []float32
	scale float32 // of gradients
}

// descend takes step number step, from 0.
func (a *adam) descend(w, grad []float32, step int) {
	const b1, b2 = 0.9, 0.999
	if a.m == nil {
		a.m, a.v = make([]float32, len(w)), make([]float32, len(w))
	}
	rate := float32(a.rate * math.Sqrt(1-math.Pow(b2, float64(step+1))) / (1 - math.Pow(b1, float64(step+1))))
	for i, g := range grad {
		g *= a.scale
		a.m[i] += (1 - b1) * (g - a.m[i])
		a.v[i] += (1 - b2) * (g*g - a.v[i])
		w[i] -= rate * a.m[i] / (float32(math.Sqrt(float64(a.v[i]))) + 1e-8)
	}
}
