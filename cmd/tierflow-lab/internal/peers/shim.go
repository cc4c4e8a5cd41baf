package peers

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/labkit"
	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/tasks"
)

// benchShim is the command shim.
type benchShim struct{ benchPeers }

// pingPong is messages there and back. The shim leaves them alone.
const pingPong = "pingpong"

// ShimCommand returns the command shim.
func ShimCommand() *cobra.Command {
	b := &benchShim{benchPeers: benchPeers{site: site{bind: bindNone}}}
	c := &cobra.Command{
		Use: "shim", Short: "Measure MPI programs with and without tierflow's shim", Args: kit.NoOperands,
		Long: `Measures the same program of Open MPI and of MPICH without the shim of tierflow mpi and
with it, in turns, as tierflow-lab peers measures: samples begin together, the slowest
rank counts, results are checked. A cell's ratio is that of one round's p50, with the
shim over without: 0.5 is half as long. It is the median of the rounds, with the least
and the largest. Messages there and back, which the shim leaves alone, are measured too.
What fails is not tried again in later rounds.

Waiting ranks of Open MPI yield the processor; those of MPICH spin, and on fewer
processors than ranks a cell of theirs may take seconds. --so names libtierflow.so,
which "go build -buildmode=c-shared" makes of cmd/libtierflow.`,
		Example: `  tierflow-lab shim --topo 1x2
  tierflow-lab shim --topo 2x2 --libraries openmpi --ops allreduce --bytes 8,64KiB`,
		RunE: kit.Interruptible(func(c *cobra.Command, _ []string) error {
			if err := b.read(); err != nil {
				return err
			}
			return b.run(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), b.compare)
		}),
	}
	b.topo, b.bytes, b.time = "1x2", "8,512,4KiB,32KiB,256KiB,1MiB,4MiB", 100*time.Millisecond
	b.ops = "bcast,reduce,allreduce,allgather,gather,scatter,alltoall"
	b.addFlags(c, "program tierflow that builds the shim", []string{"openmpi", "mpich"})
	c.Flags().StringVar(&b.so, "so", "", "libtierflow.so (default beside the program tierflow)")
	return c
}

// shimTable is the output, with all facts on which it depends.
type shimTable struct {
	Date       string            `json:"date"`
	Topology   string            `json:"topology"`
	Rate       string            `json:"rate"`
	Congestion string            `json:"congestion"`
	CPUs       int               `json:"cpus"`
	Processor  string            `json:"processor"`
	Kernel     string            `json:"kernel"`
	Versions   map[string]string `json:"versions"`
	Commands   []string          `json:"commands"`
	Failures   []string          `json:"failures"`
	Cells      []shimCell        `json:"cells"`
}

// shimCell compares one collective of one size under one MPI.
type shimCell struct {
	Library    string  `json:"library"`
	Collective string  `json:"collective"`
	Bytes      int64   `json:"bytes"`
	Plain      float64 `json:"plain_p50_us"` // median over rounds
	Shim       float64 `json:"shim_p50_us"`
	Ratio      float64 `json:"ratio"` // of Shim over Plain of one round, the median
	Least      float64 `json:"least_ratio"`
	Largest    float64 `json:"largest_ratio"`
}

// The two variants of an MPI.
const (
	plain    = "plain"
	withShim = "with the shim"
)

// compare builds the shims, and measures in turns.
func (b *benchShim) compare(ctx context.Context, p *place, stdout, notes io.Writer) error {
	t := b.newTable(p)
	found, err := p.findPeers(ctx, b.others, t, notes)
	if err != nil {
		return err
	}
	b.cells.ops = append(b.cells.ops, pingPong)
	var settings []setting
	for _, l := range found {
		if err := p.buildShim(ctx, l); err != nil {
			return err
		}
		s := setting{library: l.name, variant: plain}
		if l.name == openMPI {
			s.mca = yielding[true]
		}
		shimmed := s
		shimmed.variant, shimmed.shimmed = withShim, true
		settings = append(settings, s, shimmed)
	}
	if err := b.runRounds(settings, p, t, notes, p.measurer(ctx, t, notes)); err != nil {
		return err
	}
	made := newShimTable(t)
	return labkit.Print(stdout, b.json, made, labkit.Right, made.print)
}

// buildShim builds an MPI's shim, with libtierflow.so beside it.
func (p *place) buildShim(ctx context.Context, l peer) (err error) {
	if p.so == "" {
		p.so = filepath.Join(filepath.Dir(p.tierflow), "libtierflow.so")
	}
	if p.so, err = filepath.Abs(p.so); err == nil {
		_, err = os.Stat(p.so)
	}
	if err != nil {
		return kit.Usagef("--so: %w: go build -buildmode=c-shared -o libtierflow.so ./cmd/libtierflow makes it", err)
	}
	_, err = runCommand(ctx, 2*time.Minute, p.tierflow, "mpi", "build", "--mpicc", l.tools[0], "-o", p.shim(l.name))
	return err
}

// newShimTable pairs the results of both variants. Cells measured one way only are left out.
func newShimTable(t *peerTable) *shimTable {
	made := &shimTable{
		Date: t.Date, Topology: t.Topology, Rate: t.Rate, Congestion: t.Congestion, CPUs: t.CPUs, Processor: t.Processor,
		Kernel: t.Kernel, Versions: t.Versions, Failures: t.Failures,
	}
	for _, m := range t.Missing {
		made.Failures = append(made.Failures, m.String())
	}
	for _, r := range t.Results {
		if !slices.Contains(made.Commands, r.Command) {
			made.Commands = append(made.Commands, r.Command)
		}
		shim := t.find(r.Library, withShim, r.cell())
		if r.Variant != plain || shim == nil {
			continue
		}
		ratios := labkit.Ratios(shim.rounds, r.rounds)
		if len(ratios) == 0 { // it took no time
			continue
		}
		made.Cells = append(made.Cells, shimCell{
			Library: r.Library, Collective: r.Collective, Bytes: r.Bytes, Plain: costs.Median(r.rounds), Shim: costs.Median(shim.rounds),
			Ratio: costs.Median(ratios), Least: slices.Min(ratios), Largest: slices.Max(ratios),
		})
	}
	return made
}

// print writes the table, and for each MPI the mean of its collectives' ratios.
func (t *shimTable) print(w io.Writer) {
	fmt.Fprintln(w, "library\tcollective\tbytes\tplain µs\tshim µs\tratio\tleast–largest\t")
	for _, c := range t.Cells {
		fmt.Fprintf(w, "%s\t%s\t%s\t%.2f\t%.2f\t%.2f\t%.2f–%.2f\t\n", c.Library, c.Collective, tasks.FormatBytes(c.Bytes), c.Plain, c.Shim, c.Ratio, c.Least, c.Largest)
	}
	for _, library := range []string{openMPI, mpich} {
		var ratios []float64
		var worst shimCell
		for _, c := range t.Cells {
			if c.Library != library || c.Collective == pingPong {
				continue
			}
			if ratios = append(ratios, c.Ratio); c.Ratio > worst.Ratio {
				worst = c
			}
		}
		if len(ratios) > 0 {
			fmt.Fprintf(w, "# %s: geometric mean of %d ratios %.2f; the largest is %.2f, of %s of %s\n", library, len(ratios),
				labkit.GeometricMean(ratios), worst.Ratio, worst.Collective, tasks.FormatBytes(worst.Bytes))
		}
	}
}
