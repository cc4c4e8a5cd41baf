package peers

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/labkit"
	"github.com/tierflow/tierflow/tasks"
)

const (
	disturbed = ", disturbed" // the end of a noisy setting's name
	adapt     = "adapt"       // Open MPI's collectives for noisy machines
)

// adaptOps are the collectives of Open MPI's coll/adapt.
var adaptOps = kit.Names([]tasks.Collective{tasks.Bcast, tasks.Reduce})

// withNoise returns each setting of an MPI library or of tierflow's processes, and after
// it the same with noise. Open MPI's adapt comes after its other settings. Gloo is left
// out: its calls are long, and their own variation hides the noise.
func withNoise(all []setting, c cells) []setting {
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

// compareNoise computes by how much noise slows down mean times.
func (t *peerTable) compareNoise() {
	if t.Noise == nil {
		return
	}
	for _, r := range t.Results {
		_, r.Mean, _ = spread(r.means)
		variant, isNoisy := strings.CutSuffix(r.Variant, disturbed)
		if quiet := t.find(r.Library, variant, r.cell()); isNoisy && quiet != nil {
			r.LeastSlowdown, r.Slowdown, r.MostSlowdown = spread(labkit.Ratios(r.means, quiet.means))
		}
	}
}

// printNoise prints by how much noise slows down mean times.
func (t *peerTable) printNoise(w io.Writer) {
	if t.Noise == nil {
		return
	}
	fmt.Fprintf(w, "\n# a rank stopped for %v at a time, %v%% of the time\n", t.Noise.Lasting, kit.Round(100*t.Noise.Share, 1e3))
	fmt.Fprintln(w, "collective\tbytes\tlibrary\tsetting\tmean µs\tslowdown\tleast–largest")
	for _, r := range t.Results {
		if r.Slowdown > 0 {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%.2f\t%.2f–%.2f\n", r.Collective, tasks.FormatBytes(r.Bytes),
				r.Library, r.Variant, figures(r.Mean), r.Slowdown, r.LeastSlowdown, r.MostSlowdown)
		}
	}
}
