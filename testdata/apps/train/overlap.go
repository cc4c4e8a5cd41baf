package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
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

// apart is a bucketed keeper that can leave out the sums of a step, and keeps the time of layers.
type apart struct {
	*bucketed
	part    int
	descent [units]time.Duration
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
		begin := time.Now()
		a.adam[u].descend(a.net.weights[u], a.View(u), step)
		a.descent[u] = time.Since(begin)
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

// overlap measures which share of the sums hides behind computing, in turns: a step, one without
// sums, the sums alone. Of each part the slowest rank counts.
func overlap(ctx context.Context, c *planner.Comm, s settings, text *corpus, out io.Writer) error {
	net := newNetwork(s.hidden, s.seed, s.batch)
	b, err := newBucketed(c, s, net)
	if err != nil {
		return err
	}
	defer b.free()
	a := &apart{bucketed: b}
	var took [parts][]float64 // ms by part and turn
	var layers [][]layerTime  // by turn
	for turn := range s.turns + 1 {
		for k := range parts {
			a.part = (k + turn) % parts
			var drawn []*batch
			for m := c.Rank(); m < s.micro; m += c.Size() {
				drawn = append(drawn, text.batch(s.seed, turn*s.micro+m, s.batch))
			}
			if err := planner.BarrierNow(ctx, c); err != nil {
				return err
			}
			begin := time.Now()
			if a.part == sums {
				err = a.sum(ctx)
			} else {
				err = a.step(ctx, turn, drawn)
			}
			if err != nil {
				return err
			}
			ms, err := planner.AllreduceValue(ctx, c, float64(time.Since(begin))/1e6, tasks.Max)
			if err != nil {
				return err
			}
			if turn == 0 {
				continue // it warms up
			}
			took[a.part] = append(took[a.part], ms)
			if a.part == computing {
				layers = append(layers, a.layers())
			}
		}
	}
	shares := make([]float64, s.turns)
	for i := range shares {
		shares[i] = 100 * (took[computing][i] + took[sums][i] - took[whole][i]) / took[sums][i]
	}
	fmt.Fprint(out, b.Explain())
	for k, name := range []string{"step_ms", "computing_ms", "sums_ms"} {
		fmt.Fprintf(out, "%s=%s ", name, quartiles(took[k]))
	}
	fmt.Fprintf(out, "hidden_percent=%s\n", quartiles(shares))
	if s.layers == "" || c.Rank() != 0 {
		return nil
	}
	return writeLayers(s, layers)
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

// quartiles prints the median, and the quartiles around it.
func quartiles(all []float64) string {
	all = slices.Sorted(slices.Values(all))
	n := len(all)
	return fmt.Sprintf("%.2f(%.2f–%.2f)", all[n/2], all[n/4], all[3*n/4])
}

// layerTime is a layer as tierflow simulate train reads it.
type layerTime struct {
	Name     string  `json:"name"`
	Forward  float64 `json:"forward_ns"`
	Backward float64 `json:"backward_ns"`
	Tensors  []int   `json:"tensors"`
}

// layers are the times of the last step. The sums of a layer start before it computes slopes, so
// these are the first thing of the layer before. The descent of the output goes on beside the sums
// of others, so it is what a layer without weights computes last.
func (a *apart) layers() []layerTime {
	all := []layerTime{{"descent", 0, float64(a.descent[output]), []int{}}}
	for u, n := range a.net.sizes() {
		name, slopes := []string{"embed", "hidden", "output"}[u], time.Duration(0)
		if u < output {
			slopes = a.net.slope[u+1]
		}
		all = append(all, layerTime{name, float64(a.net.took[u]), float64(slopes + a.net.took[units+u]), []int{n}})
	}
	all[0].Forward = float64(a.descent[embed] + a.descent[hidden])
	return all
}

// writeLayers writes medians of layers' times.
func writeLayers(s settings, turns [][]layerTime) error {
	all := slices.Clone(turns[0])
	for i := range all {
		var forward, backward []float64
		for _, t := range turns {
			forward, backward = append(forward, t[i].Forward), append(backward, t[i].Backward)
		}
		slices.Sort(forward)
		slices.Sort(backward)
		all[i].Forward, all[i].Backward = forward[len(forward)/2], backward[len(backward)/2]
	}
	data, err := json.MarshalIndent(map[string]any{
		"source": fmt.Sprintf("train -hidden %d -batch %d -micro %d, medians of %d turns on rank 0", s.hidden, s.batch, s.micro, s.turns),
		"layers": all,
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(s.layers, append(data, '\n'), 0o644)
}
