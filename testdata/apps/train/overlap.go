package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// The parts of a step that take turns.
const (
	whole     = iota // computing, with sums on their way meanwhile
	computing        // without sums
	sums             // without computing
	parts
)

// apart is a bucketed keeper that can leave out the sums of a step.
type apart struct {
	*bucketed
	part int
}

func (a *apart) ready(ctx context.Context, u int) error {
	if a.part == computing {
		return nil
	}
	return a.bucketed.ready(ctx, u)
}

func (a *apart) update(ctx context.Context, step, micros int) error {
	if a.part == whole {
		return a.bucketed.update(ctx, step, micros)
	}
	for u := units - 1; u >= 0; u-- {
		a.descend(u, a.View(u), step)
	}
	return nil
}

// sum sums all gradients, and computes nothing.
func (a *apart) sum(ctx context.Context) error {
	for u := units - 1; u >= 0; u-- {
		if err := a.Ready(ctx, u); err != nil {
			return err
		}
	}
	return a.Wait(ctx)
}

// turn is the parts of a step, one after the other.
type turn struct {
	ms    [parts]float64 // of the slowest rank
	begin [parts]time.Time
	did   [parts][]work
}

// hidden is the percentage of the sums that hides behind computing. What disturbs a turn disturbs
// both of its parts that compute.
func (t *turn) hidden() float64 { return 100 * (1 - (t.ms[whole]-t.ms[computing])/t.ms[sums]) }

// overlap measures which share of the sums hides behind computing, in turns: a step, one without
// sums, the sums alone. calls may be nil.
func overlap(ctx context.Context, c *planner.Comm, s settings, text *corpus, calls *callLog, out io.Writer) error {
	net := newNetwork(s.hidden, s.seed, s.batch)
	b, err := newBucketed(c, s, net)
	if err != nil {
		return err
	}
	defer b.free()
	a := &apart{bucketed: b}
	turns := make([]turn, s.turns+1)
	for i := range turns {
		for k := range parts { // each part is first in some turns
			if a.part = (k + i) % parts; err == nil {
				err = a.take(ctx, c, s, text, i, &turns[i])
			}
		}
	}
	if err != nil || c.Rank() != 0 {
		return err
	}
	turns = turns[1:] // the first one warms up
	fmt.Fprint(out, b.Explain())
	for k, name := range []string{"step_ms", "computing_ms", "sums_ms"} {
		fmt.Fprintf(out, "%s=%s ", name, median(turns, func(t *turn) float64 { return t.ms[k] }))
	}
	fmt.Fprintf(out, "hidden_percent=%s\n", median(turns, (*turn).hidden))
	if s.layers != "" {
		err = writeLayers(s, net, turns)
	}
	if s.picture != "" && err == nil {
		err = drawStep(s, calls, turns)
	}
	return err
}

// take takes a part of a turn on all ranks at the same time.
func (a *apart) take(ctx context.Context, c *planner.Comm, s settings, text *corpus, number int, t *turn) (err error) {
	var drawn []*batch
	for m := c.Rank(); m < s.micro; m += c.Size() {
		drawn = append(drawn, text.batch(s.seed, number*s.micro+m, s.batch))
	}
	if err := planner.Barrier(ctx, c); err != nil {
		return err
	}
	t.begin[a.part] = time.Now()
	if a.part == sums {
		err = a.sum(ctx)
	} else {
		err = a.step(ctx, number, drawn)
		t.did[a.part] = slices.Clone(a.net.did)
	}
	if err != nil {
		return err
	}
	t.ms[a.part], err = planner.AllreduceValue(ctx, c, float64(time.Since(t.begin[a.part]))/1e6, tasks.Max)
	return err
}

// step computes a step's gradients, and takes it.
func (a *apart) step(ctx context.Context, step int, drawn []*batch) error {
	for m, b := range drawn {
		if _, err := a.net.learn(ctx, a, b, m, m == len(drawn)-1); err != nil {
			return err
		}
	}
	if len(drawn) == 0 {
		if _, err := a.net.learn(ctx, a, nil, 0, true); err != nil {
			return err
		}
	}
	return a.update(ctx, step, len(drawn))
}

// median prints a median, and between which two samples that of endlessly many turns is at 95%: as
// many lie below it as heads fall in so many throws of a coin.
func median(turns []turn, of func(t *turn) float64) string {
	var all []float64
	for i := range turns {
		all = append(all, of(&turns[i]))
	}
	slices.Sort(all)
	n := float64(len(all))
	low := max(0, int((n-1.96*math.Sqrt(n))/2))
	return fmt.Sprintf("%.2f(%.2f–%.2f)", all[len(all)/2], all[low], all[len(all)-1-low])
}

// layerTime is a layer as tierflow simulate train reads it.
type layerTime struct {
	Name     string  `json:"name"`
	Forward  float64 `json:"forward_ns"`
	Backward float64 `json:"backward_ns"`
	Tensors  []int   `json:"tensors"`
}

// layers are medians of layers' times. The sums of a layer start before it computes slopes, so these
// are the first thing of the layer before. The descent of the output goes on beside the sums of
// others, so it is what a layer without weights computes last.
func layers(sizes []int, turns []turn) []layerTime {
	var times [kinds][units]float64 // ns
	for kind := range kinds {
		for u := range units {
			var all []float64
			for _, t := range turns {
				for _, w := range t.did[computing] {
					if w.kind == kind && w.unit == u {
						all = append(all, float64(w.end.Sub(w.begin)))
					}
				}
			}
			if slices.Sort(all); len(all) > 0 {
				times[kind][u] = all[len(all)/2]
			}
		}
	}
	all := []layerTime{{"descent", times[descent][embed] + times[descent][hidden], times[descent][output], []int{}}}
	for u, name := range unitNames {
		l := layerTime{name, times[forward][u], times[gradient][u], []int{sizes[u]}}
		if u < output {
			l.Backward += times[slopes][u+1]
		}
		all = append(all, l)
	}
	return all
}

// writeLayers writes them to a file.
func writeLayers(s settings, n *network, turns []turn) error {
	data, err := json.MarshalIndent(map[string]any{
		"source": fmt.Sprintf("train -hidden %d -batch %d -micro %d, medians of %d turns on rank 0", s.hidden, s.batch, s.micro, s.turns),
		"layers": layers(n.sizes(), turns),
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(s.layers, append(data, '\n'), 0o644)
}
