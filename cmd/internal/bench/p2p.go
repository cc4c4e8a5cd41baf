package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/machine"
	meter "github.com/tierflow/tierflow/costs/measure"
	"github.com/tierflow/tierflow/costs/pairs"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels/join/seal"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/tasks"
)

// benchP2P is the command bench p2p.
type benchP2P struct {
	kit.Problem
	file  string // --machine; empty: none is written
	json  bool
	tls   bool // measure the time of sealing
	stop  stats.Stop
	sizes []int64
}

func p2pCommand() *cobra.Command {
	b := &benchP2P{}
	c := &cobra.Command{
		Use:   "p2p",
		Short: "Measure messages between pairs of ranks, and write a machine's file",
		Long: `Measures how long messages take between two ranks of each level: there and back again
("turns": half of a round trip), one after the other in one direction, and in both
directions at once; then between several pairs of ranks of the same two domains.
It also measures copies and reductions, and what messages take of a processor that
computes meanwhile.

--machine writes a file for tierflow simulate and for --simulate of other commands. Its
numbers come from these messages only: no collective has a part in them. "modelled"
is what the simulator says of each curve with these numbers. Nodes that share a host,
and goroutine ranks, share its processors: the file says so under "cores".

Columns: µs is the median time of a message, ± half the width of the mean's 95% interval of
confidence; the rate counts the bytes of all pairs and directions (1e9 bytes per second).`,
		Example: `  tierflow bench p2p --topo 2x2 --machine machine.json
  tierflow run -n 8 --hosts a:4,b:4 -- tierflow bench p2p --machine machine.json
  tierflow run -n 2 --hosts a:1,b:1 -- tierflow bench p2p --tls --machine machine.json
  tierflow bench p2p --bytes 1:4MiB:x4 --json`,
		Args: kit.NoOperands,
		RunE: kit.Interruptible(func(c *cobra.Command, _ []string) error {
			if err := b.read(); err != nil {
				return err
			}
			return b.RunOnJob(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), func(stdout, stderr io.Writer) error {
				return b.run(c.Context(), stdout, stderr)
			})
		}),
	}
	b.AddJobFlags(c)
	f := c.Flags()
	f.StringVar(&b.Bytes, "bytes", "1,64,1KiB,4KiB,16KiB,64KiB,256KiB,1MiB", "sizes of messages: 1,64KiB or 1:1MiB:x4")
	f.StringVar(&b.file, "machine", "", "file to write the machine to, - for standard output and nothing else there")
	f.DurationVar(&b.stop.Budget, "time", 100*time.Millisecond, "time for each size, if 95% confidence of the mean within 2.5% doesn't come first")
	f.BoolVar(&b.tls, "tls", false, "measure what TLS takes of a processor too: seal_byte_ns and open_byte_ns, whether or not the job has it")
	f.BoolVar(&b.json, "json", false, "print JSON")
	return c
}

// largestMessage bounds the buffers, two of a message for each rank.
const largestMessage = 64 << 20

// read checks all arguments.
func (b *benchP2P) read() (err error) {
	if b.sizes, err = kit.ParseSizes(b.Bytes); err != nil {
		return kit.Usagef("--bytes: %w", err)
	}
	for _, n := range b.sizes {
		if n < 1 || n > largestMessage {
			return kit.Usagef("--bytes: a message of %s; allowed are 1B to %s", tasks.FormatBytes(n), tasks.FormatBytes(largestMessage))
		}
	}
	if b.stop.Budget <= 0 {
		return kit.Usagef("--time %v: must be above 0", b.stop.Budget)
	}
	if b.json && b.file == "-" {
		return kit.Usagef("--json and --machine -: standard output has room for one of them")
	}
	return nil
}

func (b *benchP2P) run(ctx context.Context, stdout, stderr io.Writer) error {
	if b.Job.Topology().Size() < 2 {
		return kit.Usagef("one rank: a message is between two")
	}
	fmt.Fprintf(notesOut(b.json || b.file == "-", stdout, stderr), "# %v; %d CPUs\n", b.Job, runtime.NumCPU())
	var found *meter.Found
	err := kit.RunRanks(ctx, b.Job, []string{""}, func(ctx context.Context, comms []*planner.Comm) error {
		setup, err := b.setup(ctx, comms[0])
		if err != nil {
			return err
		}
		m, err := tune.NewBench(ctx, comms[0])
		if err != nil {
			return err
		}
		of, err := m.Machine(ctx, setup, b.sizes, b.stop)
		if err != nil || m.Rank() > 0 {
			return err
		}
		of.Machine.Provenance = b.provenance(comms[0])
		of.Machine.TLS = comms[0].Secured() != "" && comms[0].Topology().Nodes() > 1
		if b.tls {
			if err := addSealing(of); err != nil {
				return err
			}
		}
		found = of
		return nil
	})
	if err != nil || found == nil { // not rank 0
		return err
	}
	return b.write(found, stdout)
}

// How sealing is measured.
const (
	sealRuns = 9 // the median counts
	sealTime = 10 * time.Millisecond
)

// addSealing measures rank 0's time for TLS.
func addSealing(found *meter.Found) error {
	var seals, opens []float64 // ns a byte
	for range sealRuns {
		sealed, opened, err := seal.Rate(sealTime)
		if err != nil {
			return err
		}
		seals, opens = append(seals, 1e9/sealed), append(opens, 1e9/opened)
	}
	m := found.Machine
	for _, n := range []struct {
		key string
		all []float64
		to  *float64
	}{{"seal_byte_ns", seals, &m.SealByte}, {"open_byte_ns", opens, &m.OpenByte}} {
		slices.Sort(n.all)
		*n.to = n.all[sealRuns/2]
		found.Numbers = append(found.Numbers, meter.Number{Key: n.key, Value: *n.to, Half: (n.all[sealRuns-2] - n.all[1]) / 2})
	}
	return nil
}

// write writes the machine's file and prints the measurements.
func (b *benchP2P) write(found *meter.Found, stdout io.Writer) error {
	data, err := found.Machine.Format()
	if err != nil {
		return err
	}
	if b.file != "" {
		if err := kit.WriteOutput(stdout, b.file, data); err != nil || b.file == "-" {
			return err
		}
	}
	return kit.WriteResult(stdout, b.json, found, func() []byte { return p2pText(found) })
}

// farOff is how many times a modelled time may be a measured one, or the other way round, without a warning.
const farOff = 2

// misfit warns of the point that the machine's numbers fit worst; empty: they fit all.
func misfit(curves []meter.Curve) string {
	worst, text := float64(farOff), ""
	for _, c := range curves {
		for _, p := range c.Points {
			if off := max(p.Modelled/p.NS, p.NS/p.Modelled); off > worst {
				worst = off
				text = fmt.Sprintf("warning: the machine's numbers don't fit: level %c, %v, %s take %.2f µs, modelled %.2f; look at the column \"to measured\", and measure again when nothing else runs",
					c.Level, c.Way, tasks.FormatBytes(p.Bytes), p.NS/1e3, p.Modelled/1e3)
			}
		}
	}
	return text
}

// p2pText is the printed form of a machine.
func p2pText(found *meter.Found) []byte {
	var b bytes.Buffer
	w := kit.NewTable(&b)
	fmt.Fprintln(w, "number\tvalue\t±")
	for _, n := range found.Numbers {
		fmt.Fprintf(w, "%s\t%.4g\t%.2g\n", n.Key, n.Value, n.Half)
	}
	w.Flush()
	for _, c := range found.Curves {
		fmt.Fprintf(&b, "\nlevel %c, %v, %d pair%s\n", c.Level, c.Way, c.Pairs, kit.Plural(c.Pairs))
		fmt.Fprintln(w, "bytes\tµs\t±\trate\tmodelled µs\tto measured")
		for _, p := range c.Points {
			fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%s\t%.2f\t%.2f\n", tasks.FormatBytes(p.Bytes), p.NS/1e3, p.Half/1e3, kit.RateText(1e9*p.Rate), p.Modelled/1e3, p.Modelled/p.NS)
		}
		w.Flush()
	}
	if text := misfit(found.Curves); text != "" {
		b.WriteString("\n# " + text + "\n")
	}
	return b.Bytes()
}

// setup returns the numbers that no message tells. All ranks of c call it.
func (b *benchP2P) setup(ctx context.Context, c *planner.Comm) (s meter.Setup, err error) {
	s.Frame.MessageBytes = goroutineFrame
	if kit.IsLaunched() {
		if s.Frame, err = machine.Assumed().Link(c.Topology().Level(c.Topology().Depth() - 1)); err != nil {
			s.Frame = machine.Link{}
		}
	}
	hosts := make([]int64, c.Size())
	if err := planner.Allgather(ctx, c, []int64{pairs.HostNumber()}, hosts); err != nil {
		return s, err
	}
	s.Cores = pairs.Cores(c.Topology(), hosts)
	return s, nil
}

// goroutineFrame is added to a message by the emulated link, bytes.
const goroutineFrame = 66

// provenance is the origin of the numbers.
func (b *benchP2P) provenance(c *planner.Comm) costs.Provenance {
	p := costs.Provenance{
		Hosts: kit.Hosts(c), Ranks: fmt.Sprint(b.Job), Links: b.Job.Links(), Kernel: kit.KernelFile("/proc/sys/kernel/osrelease"),
		Date: time.Now().UTC().Format(time.RFC3339), Method: "measured between pairs of ranks",
	}
	if kit.IsLaunched() {
		p.Congestion = kit.Congestion()
	}
	return p
}
