package peers

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/tierflow/kit"
	"github.com/tierflow/tierflow/tasks"
)

// benchShim is the command shim.
type benchShim struct {
	benchPeers
	so string // --so; empty: beside the program tierflow
}

// pingPong is what the shim leaves alone: messages there and back.
const pingPong = "pingpong"

// ShimCommand returns the command shim.
func ShimCommand() *cobra.Command {
	b := &benchShim{benchPeers: benchPeers{bind: bindNone}}
	c := &cobra.Command{
		Use: "shim", Short: "Measure MPI programs with and without tierflow's shim", Args: kit.NoOperands,
		Long: `Measures the same program of Open MPI and of MPICH without the shim of tierflow mpi and
with it, in turns, as tierflow-lab peers measures: samples begin together, the slowest
rank counts, results are checked. A cell's ratio is that of one round's p50, with the
shim over without: 0.5 is half as long. It is the median of the rounds, with the least
and the largest. Messages there and back, which the shim leaves alone, are measured too.

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
	f := c.Flags()
	f.StringVar(&b.topo, "topo", "1x2", "nodes and ranks on each, such as 2x2")
	f.StringVar(&b.rate, "rate", "1gbit", "rate of each node's link: 100mbit, 1gbit, … or none")
	f.StringVar(&b.congestion, "congestion", "reno", "TCP congestion control of all nodes: reno, bbr, … as the kernel allows")
	f.StringVar(&b.ops, "ops", "bcast,reduce,allreduce,allgather,gather,scatter,alltoall", "collectives")
	f.StringVar(&b.bytes, "bytes", "8,512,4KiB,32KiB,256KiB,1MiB,4MiB", "sizes of a rank's buffer, or block")
	f.DurationVar(&b.time, "time", 100*time.Millisecond, "time for each size, library and round")
	f.IntVar(&b.rounds, "rounds", 3, "how often each has its turn")
	f.StringVar(&b.program, "tierflow", "", "the program tierflow that builds the shim (default the one in this program's folder, or in PATH)")
	f.StringVar(&b.so, "so", "", "libtierflow.so (default beside the program tierflow)")
	f.StringVar(&b.libraries, "libraries", "openmpi,mpich", "MPIs to measure")
	kit.CompleteList(c, "libraries", []string{"openmpi", "mpich"})
	f.BoolVar(&b.json, "json", false, "print JSON")
	return c
}

// shimTable is what the command prints, and what it depends on.
type shimTable struct {
	Date       string            `json:"date"`
	Topology   string            `json:"topology"`
	Rate       string            `json:"rate"`
	Congestion string            `json:"congestion"`
	CPUs       int               `json:"cpus"`
	Processor  string            `json:"processor"`
	Kernel     string            `json:"kernel"`
	Versions   map[string]string `json:"versions"`
	Commands   []string          `json:"commands"` // of the last round
	Failures   []string          `json:"failures"`
	Cells      []*shimCell       `json:"cells"`
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

	plain, shim, ratios []float64
}

// compare builds the shims, and measures in turns.
func (b *benchShim) compare(ctx context.Context, p *place, stdout, notes io.Writer) error {
	t := &shimTable{
		Date: time.Now().UTC().Format(time.RFC3339), Topology: b.topo, Rate: b.rate, Congestion: p.congestion, CPUs: runtime.NumCPU(),
		Processor: kit.ProcessorModel(), Kernel: kit.KernelFile("/proc/sys/kernel/osrelease"),
		Versions: map[string]string{ourselves: kit.Version(), "Go": runtime.Version()}, Failures: []string{},
	}
	if b.nodes == 1 {
		t.Rate = "none"
	}
	found, missing, err := p.findPeers(ctx, b.others)
	if err != nil {
		return err
	}
	for _, m := range missing {
		t.Failures = append(t.Failures, m.String())
	}
	for _, l := range b.others {
		if !slices.Contains(found, l.name) {
			continue
		}
		t.Versions[l.name] = versionOf(ctx, l)
		if err := p.buildShim(ctx, l, b.so); err != nil {
			return err
		}
	}
	if err := b.takeTurns(ctx, p, found, t, notes); err != nil {
		return err
	}
	return t.print(stdout, b.json)
}

// buildShim builds an MPI's shim, with libtierflow.so beside it.
func (p *place) buildShim(ctx context.Context, l peer, so string) error {
	if so == "" {
		so = filepath.Join(filepath.Dir(p.tierflow), "libtierflow.so")
	}
	so, err := filepath.Abs(so)
	if err == nil {
		_, err = os.Stat(so)
	}
	if err != nil {
		return kit.Usagef("--so: %w: go build -buildmode=c-shared -o libtierflow.so ./cmd/libtierflow makes it", err)
	}
	p.so = so
	_, err = runCommand(ctx, 2*time.Minute, p.tierflow, "mpi", "build", "--mpicc", l.tools[0], "-o", p.shim(l.name))
	return err
}

// takeTurns measures each MPI without and with the shim in each round.
func (b *benchShim) takeTurns(ctx context.Context, p *place, found []string, t *shimTable, notes io.Writer) error {
	all := map[string]*shimCell{}
	for round := range b.rounds {
		fmt.Fprintf(notes, "# round %d of %d\n", round+1, b.rounds)
		t.Commands = nil
		for _, library := range found {
			var turns [2]map[string]peerRow
			for i := range turns {
				s := setting{library: library, shimmed: i == 1}
				if library == openMPI {
					s.mca = yielding[true]
				}
				t.Commands = append(t.Commands, p.readableCommand(s, b.shimCells(), b.time))
				rows, err := p.runSetting(ctx, s, b.shimCells(), b.time)
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				if err != nil {
					t.Failures = append(t.Failures, fmt.Sprintf("%s, shim %v: %v", library, s.shimmed, err))
					fmt.Fprintln(notes, "#", t.Failures[len(t.Failures)-1])
				}
				turns[i] = map[string]peerRow{}
				for _, row := range rows {
					turns[i][fmt.Sprint(row.Collective, row.Bytes)] = row
				}
				if i == 1 {
					t.add(all, library, rows, turns[0])
				}
			}
		}
	}
	t.sum()
	return nil
}

// shimCells are the cells of the command, and messages there and back.
func (b *benchShim) shimCells() cells {
	return cells{append(slices.Clone(b.cells.ops), pingPong), b.cells.bytes}
}

// add adds a round's rows that were measured both ways.
func (t *shimTable) add(all map[string]*shimCell, library string, shim []peerRow, plain map[string]peerRow) {
	for _, row := range shim {
		before, ok := plain[fmt.Sprint(row.Collective, row.Bytes)]
		if !ok {
			continue
		}
		key := fmt.Sprint(library, row.Collective, row.Bytes)
		c := all[key]
		if c == nil {
			c = &shimCell{Library: library, Collective: row.Collective, Bytes: row.Bytes}
			all[key], t.Cells = c, append(t.Cells, c)
		}
		c.plain, c.shim, c.ratios = append(c.plain, before.P50), append(c.shim, row.P50), append(c.ratios, row.P50/before.P50)
	}
}

// sum puts the rounds of each cell together.
func (t *shimTable) sum() {
	for _, c := range t.Cells {
		c.Plain, c.Shim, c.Ratio = middle(c.plain), middle(c.shim), middle(c.ratios)
		c.Least, c.Largest = slices.Min(c.ratios), slices.Max(c.ratios)
	}
}

// middle is the median, the mean of the two in the middle of an even number.
func middle(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// print writes the table, and for each MPI the mean of its collectives' ratios.
func (t *shimTable) print(stdout io.Writer, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", " ")
		return e.Encode(t)
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "library\tcollective\tbytes\tplain µs\tshim µs\tratio\tleast–largest\t")
	sums, count, worst := map[string]float64{}, map[string]int{}, map[string]*shimCell{}
	for _, c := range t.Cells {
		fmt.Fprintf(w, "%s\t%s\t%s\t%.2f\t%.2f\t%.2f\t%.2f–%.2f\t\n", c.Library, c.Collective, tasks.FormatBytes(c.Bytes), c.Plain, c.Shim, c.Ratio, c.Least, c.Largest)
		if c.Collective == pingPong {
			continue
		}
		sums[c.Library] += math.Log(c.Ratio)
		count[c.Library]++
		if x := worst[c.Library]; x == nil || c.Ratio > x.Ratio {
			worst[c.Library] = c
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, library := range []string{openMPI, mpich} {
		if x := worst[library]; x != nil {
			fmt.Fprintf(stdout, "# %s: geometric mean of %d ratios %.2f; the largest is %.2f, of %s of %s\n", library, count[library],
				math.Exp(sums[library]/float64(count[library])), x.Ratio, x.Collective, tasks.FormatBytes(x.Bytes))
		}
	}
	return nil
}
