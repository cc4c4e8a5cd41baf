package peers

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/tierflow/tierflow/cmd/tierflow/kit"
	"github.com/tierflow/tierflow/tasks"
)

// noise is how a rank of noisy settings is disturbed.
type noise struct {
	Lasting time.Duration `json:"lasting_ns"` // of each stop; 0: nobody is disturbed
	Share   float64       `json:"share"`      // of the time in which the rank is stopped
}

// check complains about values that tierflow-lab disturb would refuse.
func (n noise) check(sweep time.Duration) error {
	switch {
	case n.Lasting == 0:
		return nil
	case n.Lasting < 20*time.Microsecond || n.Lasting > time.Second:
		return kit.Usagef("--noise %v: want 20µs to 1s", n.Lasting)
	case !(n.Share > 0 && n.Share <= 0.9):
		return kit.Usagef("--noise-share %v: want above 0 and at most 0.9 of the time", n.Share)
	case sweep > 0:
		return kit.Usagef("--noise compares libraries as they are: give --sweep 0 too")
	}
	return nil
}

// command returns the words before a program of which a rank is disturbed: the one in
// the middle. In most trees and chains it passes on much.
func (n noise) command(s site) []string {
	return []string{
		s.lab, "disturb", "--rank", strconv.Itoa(s.ranks() / 2),
		"--lasting", n.Lasting.String(), "--share", strconv.FormatFloat(n.Share, 'g', -1, 64), "--",
	}
}

const (
	disturbed = ", disturbed" // the end of a noisy setting's name
	adapt     = "adapt"       // Open MPI's collectives that react to noise
)

// adaptOps are the collectives that Open MPI's coll/adapt has.
var adaptOps = kit.Names([]tasks.Collective{tasks.Bcast, tasks.Reduce})

// settings returns each setting of an MPI library or of tierflow's processes, and after
// it the same with noise. Open MPI's adapt comes after its other settings. Gloo is left
// out: a call of it takes so long that its own variation hides the noise.
func (n noise) settings(all []setting, c cells) []setting {
	of := cells{slices.DeleteFunc(slices.Clone(c.ops), func(op string) bool { return !slices.Contains(adaptOps, op) }), c.bytes}
	var pairs []setting
	add := func(s setting) {
		noisy := s
		noisy.noisy, noisy.variant = true, s.variant+disturbed
		pairs = append(pairs, s, noisy)
	}
	for _, s := range all {
		if s.local || s.alloc || s.library == gloo {
			continue
		}
		add(s)
		if s.library == openMPI && len(of.ops) > 0 && slices.Equal(s.mca, yielding[s.yields()]) {
			add(setting{
				library: openMPI, variant: adapt + ", " + yieldName(s.yields()), only: &of,
				mca: append([]string{"coll_adapt_priority", "100"}, s.mca...),
			})
		}
	}
	return pairs
}

// yields reports whether waiting ranks of Open MPI yield the processor.
func (s setting) yields() bool { return slices.Equal(s.mca, yielding[true]) }

// compareNoise computes what noise makes of mean times.
func (t *peerTable) compareNoise() {
	if t.Noise == nil {
		return
	}
	for _, r := range t.Results {
		_, r.Mean, _ = spread(r.means)
		i := slices.IndexFunc(t.Results, func(quiet *peerResult) bool {
			return quiet.Library == r.Library && quiet.Variant+disturbed == r.Variant && quiet.cell() == r.cell()
		})
		if i < 0 {
			continue
		}
		var ratios []float64
		for round := range min(len(r.means), len(t.Results[i].means)) {
			if quiet := t.Results[i].means[round]; quiet > 0 {
				ratios = append(ratios, r.means[round]/quiet)
			}
		}
		if len(ratios) > 0 {
			r.LeastSlowdown, r.Slowdown, r.MostSlowdown = spread(ratios)
		}
	}
}

// printNoise prints what noise makes of mean times.
func (t *peerTable) printNoise(w io.Writer) error {
	if t.Noise == nil {
		return nil
	}
	fmt.Fprintf(w, "\n# a rank stopped for %v at a time, %v%% of the time\n", t.Noise.Lasting, kit.Round(100*t.Noise.Share, 1e3))
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "collective\tbytes\tlibrary\tsetting\tmean µs\tslowdown\tleast–largest")
	for _, r := range t.Results {
		if r.Slowdown > 0 {
			fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%.2f\t%.2f–%.2f\n", r.Collective, tasks.FormatBytes(r.Bytes),
				r.Library, r.Variant, figures(r.Mean), r.Slowdown, r.LeastSlowdown, r.MostSlowdown)
		}
	}
	return tab.Flush()
}
