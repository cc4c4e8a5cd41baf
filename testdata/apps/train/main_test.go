package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner"
)

// source is a folder with Go files: this repository's planner and below.
const source = "../../../planner"

// trained is what rank 0 of a topology finds after some steps.
func trained(t *testing.T, topo string, s settings) (r result) {
	t.Helper()
	s.hidden, s.batch, s.seed, s.rate = 24, 32, 1, 0.002
	err := planner.Run(t.Context(), topo, s.options(), func(ctx context.Context, c *planner.Comm) error {
		text, err := readCorpus(ctx, source)
		if err != nil {
			return err
		}
		mine, err := train(ctx, c, s, text, io.Discard)
		if err != nil {
			return err
		}
		digest := []byte(mine.digest)
		if err := planner.Bcast(ctx, c, digest, 0); err != nil {
			return err
		}
		if string(digest) != mine.digest {
			return fmt.Errorf("rank %d has other weights than rank 0", c.Rank())
		}
		if c.Rank() == 0 {
			r = mine
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%s, %+v: %v", topo, s, err)
	}
	return r
}

// With exact sums the weights have the same bits for any number of ranks, layout and mode.
func TestSameDigest(t *testing.T) {
	want := trained(t, "1x1", settings{mode: "ddp", sum: "exact", micro: 6, steps: 4})
	for _, topo := range []string{"1x2", "1x3", "2x2", "3x2", "a:3,b:2", "8x1"} {
		for _, mode := range []string{"ddp", "zero1", "zero3"} {
			if got := trained(t, topo, settings{mode: mode, sum: "exact", micro: 6, steps: 4}); got.digest != want.digest {
				t.Errorf("%s on %s: digest %s, want %s", mode, topo, got.digest, want.digest)
			}
		}
	}
	free := trained(t, "1x3", settings{mode: "ddp", sum: "free", micro: 6, steps: 4})
	if free.digest == want.digest {
		t.Error("sums in free order have the exact digest: the test can't fail")
	}
	for i, l := range free.losses {
		if math.Abs(l-want.losses[i]) > 1e-3 {
			t.Errorf("step %d: the loss is %g in free order, exact %g", i, l, want.losses[i])
		}
	}
}

// Ordered sums have the same bits on any layout and in any mode.
func TestSameBitsInTree(t *testing.T) {
	want := trained(t, "4x1", settings{mode: "ddp", sum: "tree", micro: 6, steps: 3})
	for _, topo := range []string{"1x4", "2x2", "a:3,b:1"} {
		for _, mode := range []string{"ddp", "zero1", "zero2", "zero3"} {
			if got := trained(t, topo, settings{mode: mode, sum: "tree", micro: 6, steps: 3}); got.digest != want.digest {
				t.Errorf("%s on %s: digest %s, want %s", mode, topo, got.digest, want.digest)
			}
		}
	}
}

// The loss falls, in free order and in all modes.
func TestLossFalls(t *testing.T) {
	for _, mode := range []string{"ddp", "zero1", "zero2", "zero3"} {
		r := trained(t, "1x2", settings{mode: mode, sum: "free", micro: 2, steps: 60})
		if first, last := r.losses[0], r.losses[len(r.losses)-1]; last > first-2 || r.unseen > first-2 {
			t.Errorf("%s: %.2f bits a byte at first, then %.2f; held out %.2f", mode, first, last, r.unseen)
		}
	}
}

// own keeps one rank's gradients.
type own struct {
	net   *network
	slope [units][]float32
}

func (o *own) weights(_ context.Context, u int) ([]float32, error) { return o.net.weights[u], nil }
func (o *own) done(int)                                            {}
func (o *own) grad(_, u int) ([]float32, bool)                     { return o.slope[u], false }
func (o *own) ready(context.Context, int) error                    { return nil }
func (o *own) update(context.Context, int, int) error              { return nil }
func (o *own) free()                                               {}

// The gradients are those of the loss: small changes of weights show them, in random directions.
func TestGradients(t *testing.T) {
	text, err := readCorpus(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	net := newNetwork(20, 3, 32)
	k := &own{net: net}
	for u, n := range net.sizes() {
		k.slope[u] = make([]float32, n)
	}
	b := text.batch(5, 5, 32)
	if _, err := net.learn(t.Context(), k, b, 0, true); err != nil {
		t.Fatal(err)
	}
	draw := rand.New(rand.NewPCG(1, 1))
	for u := range units {
		for range 5 {
			const h = 0.02
			was := net.weights[u]
			above, below, want := make([]float32, len(was)), make([]float32, len(was)), 0.0
			size := 0.0
			for _, g := range k.slope[u] {
				size += float64(g) * float64(g)
			}
			for i, w := range was { // along the gradient, and anywhere
				d := float64(k.slope[u][i])/math.Sqrt(size) + draw.NormFloat64()/math.Sqrt(float64(len(was)))
				above[i], below[i] = w+float32(h*d), w-float32(h*d)
				want += d * float64(k.slope[u][i])
			}
			net.weights[u] = above
			got := net.loss(b)
			net.weights[u] = below
			got = (got - net.loss(b)) / 2 / h * math.Ln2
			net.weights[u] = was
			if math.Abs(got-want) > 0.01*math.Abs(want) {
				t.Errorf("unit %d: the loss changes by %g, the gradient says %g", u, got, want)
			}
		}
	}
}

// A step's parts are measured, and the layers are what tierflow simulate train reads.
func TestOverlap(t *testing.T) {
	file, text := filepath.Join(t.TempDir(), "layers.json"), &strings.Builder{}
	s := settings{mode: "ddp", sum: "free", micro: 3, hidden: 24, batch: 32, seed: 1, rate: 0.002, turns: 3, layers: file, picture: file + ".svg"}
	calls, o := newCallLog(), s.options()
	o.Hooks = calls.hooks()
	err := planner.Run(t.Context(), "2x1", o, func(ctx context.Context, c *planner.Comm) error {
		corpus, err := readCorpus(ctx, source)
		if err != nil {
			return err
		}
		out := io.Discard
		if c.Rank() == 0 {
			out = text
		}
		return overlap(ctx, c, s, corpus, calls, out)
	})
	if err != nil || !strings.Contains(text.String(), "hidden_percent=") {
		t.Fatalf("%v: %s", err, text)
	}
	svg, err := os.ReadFile(s.picture)
	for _, part := range []string{"forward output: ", "gradient embed: ", "descent hidden: ", "sum bucket 0: ", "sums alone<"} {
		if err != nil || !strings.Contains(string(svg), part) {
			t.Errorf("%v: the picture has no %q: %s", err, part, svg)
		}
	}
	var model struct {
		Source string
		Layers []layerTime
	}
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &model)
	}
	if err != nil || len(model.Layers) != 1+units || model.Layers[2].Backward <= 0 || model.Layers[3].Tensors[0] != 256*24+256 {
		t.Errorf("%v: %s", err, data)
	}
}

// Wrong flags are one clear error.
func TestFlags(t *testing.T) {
	for _, args := range [][]string{{"-mode", "zero4"}, {"-sum", "fast"}, {"-micro", "0"}, {"-steps", "-1"}, {"-turns", "-1"}, {"-turns", "2", "-sum", "exact"}, {"-picture", "x.svg"}, {"-layers", "x.json"}} {
		if err := run(t.Context(), args, io.Discard); err == nil || !strings.Contains(err.Error(), "allowed") {
			t.Errorf("%v: %v", args, err)
		}
	}
	if _, err := readCorpus(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "0 bytes of Go files") {
		t.Error(err)
	}
}
