package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/tierflow/kit"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/launcher"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// benchRecover is the command bench recover.
type benchRecover struct {
	kills  int
	victim string // a name of victims, or all
	count  int64  // elements of the calls
}

// victims are the kinds of ranks that are killed, in turn.
var victims = []string{"root", "leader", "leaf"}

func recoverCommand() *cobra.Command {
	b := &benchRecover{}
	var size string
	c := &cobra.Command{
		Use:   "recover",
		Short: "Kill ranks, and measure how long the others take to go on",
		Long: `Kills ranks of the job with SIGKILL while all are in allreduces, one after the other, and measures
how long the others take to go on, by the last of them. Before each kill all ranks are there again.

--victim says who dies: root (rank 0), leader (the first rank of a node that isn't rank 0's), leaf (the last rank of a
node with others), or all of these that there are in turn. The times count from when the rank was to
die, by the clock of the host: all ranks must be on one.

Columns, in milliseconds, p50 and p99 of the kills, and the longest: heard is when the call has failed, shrunk when Shrink has returned,
first when the first allreduce of those who are left has ended, full when a new process has joined and an allreduce of all has ended;
still is how long ranks stand still for that.`,
		Example: `  tierflow run -n 16 --hosts a:4,b:4,c:4,d:4 --launcher local --oversubscribe --max-restarts 200 -- tierflow bench recover --kills 200
  tierflow run -n 4 --max-restarts 20 -- tierflow bench recover --kills 20 --victim leaf`,
		Args: kit.NoOperands,
		RunE: kit.Interruptible(func(c *cobra.Command, _ []string) error {
			if err := b.read(size); err != nil {
				return err
			}
			return b.run(c.Context(), c.OutOrStdout())
		}),
	}
	f := c.Flags()
	f.IntVar(&b.kills, "kills", 20, "number of kills, at most --max-restarts of tierflow run")
	f.StringVar(&b.victim, "victim", "all", "who is killed: root, leader, leaf or all")
	f.StringVar(&size, "bytes", "8KiB", "size of the allreduces, of float64")
	return c
}

// read checks all arguments.
func (b *benchRecover) read(size string) error {
	n, err := kit.ParseSizes(size)
	switch {
	case err != nil:
		return kit.Usagef("--bytes: %w", err)
	case len(n) != 1 || n[0] < 8 || n[0] > largestMessage:
		return kit.Usagef("--bytes %s: allowed is one size from 8B to %s", size, tasks.FormatBytes(largestMessage))
	case b.kills < 1:
		return kit.Usagef("--kills %d: allowed are numbers from 1 on", b.kills)
	case b.victim != "all" && !slices.Contains(victims, b.victim):
		return kit.Usagef("--victim %s: allowed are root, leader, leaf and all", b.victim)
	case os.Getenv(launcher.LobbyVariable) == "":
		return kit.Usagef("nobody takes the place of a killed rank: start it by tierflow run --max-restarts")
	}
	b.count = n[0] / 8
	return nil
}

// The times of a kill.
const (
	victim = iota // index of victims
	heard         // ms, as those below
	shrunk
	first
	full
	still
	times
)

var timeNames = [times]string{"victim", "heard", "shrunk", "first", "full", "still"}

// trial is one kill.
type trial [times]float64

// run is the part of one process, which may come late.
func (b *benchRecover) run(ctx context.Context, stdout io.Writer) error {
	c, err := planner.Join(ctx, nil)
	if errors.Is(err, planner.ErrOver) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { c.Close() }()
	all := make([]trial, b.kills)
	var last trial // as this rank has seen it; zero: it wasn't there
	for done := 0; ; {
		if c, err = fill(ctx, c, &last); err != nil {
			return err
		}
		s, err := planner.Sync(ctx, c, uint64(done), planner.PartOf("kills", all))
		if err != nil {
			return err
		}
		if done = int(s.Revision); done > 0 { // the last rank counts
			if err := planner.AllreduceNow(ctx, c, last[:], all[done-1][:], tasks.Max); err != nil {
				return err
			}
		}
		if done == b.kills {
			break
		}
		if c, err = b.kill(ctx, c, done, &last); err != nil {
			return err
		}
		done++
	}
	if c.Rank() != 0 {
		return nil
	}
	fmt.Fprintf(stdout, "# %v; allreduce of %s\n", c.Topology(), tasks.FormatBytes(8*b.count))
	_, err = stdout.Write(recoveryText(all))
	return err
}

// lead is how long before its death a rank is told, and everybody: longer than what leads there.
const lead = 50 * time.Millisecond

// kill lets one rank die, and the others recover. It returns what they go on with.
func (b *benchRecover) kill(ctx context.Context, c *planner.Comm, n int, t *trial) (*planner.Comm, error) {
	kinds := b.kinds(c.Topology())
	if len(kinds) == 0 {
		return c, kit.Usagef("--victim %s: %v has no such rank, or no other one", b.victim, c.Topology())
	}
	kind := kinds[n%len(kinds)]
	when := []int64{time.Now().Add(lead + time.Duration(n*7919%20)*time.Millisecond).UnixNano()}
	if err := planner.BcastNow(ctx, c, when, 0); err != nil {
		return c, err
	}
	if death := time.Unix(0, when[0]); victimOf(c.Topology(), kind) == c.Rank() {
		own, err := os.FindProcess(os.Getpid())
		if err != nil {
			return c, err
		}
		time.AfterFunc(time.Until(death), func() { _ = own.Kill() })
	}
	*t = trial{victim: float64(slices.Index(victims, kind))}
	since := func(column int) { t[column] = float64(time.Now().UnixNano()-when[0]) / 1e6 }
	data := make([]float64, b.count)
	var err error
	for err == nil {
		err = planner.AllreduceNow(ctx, c, data, data, tasks.Max)
	}
	since(heard)
	for { // until those who are left have ended a call
		if !planner.Recoverable(err) {
			return c, err
		}
		if c, _, err = c.Shrink(ctx); err != nil {
			return c, err
		}
		since(shrunk)
		if err = planner.AllreduceNow(ctx, c, data, data, tasks.Max); err == nil {
			since(first)
			t[full] = float64(when[0]) // fill makes a time of it
			return c, nil
		}
	}
}

// fill lets others in until all ranks are there again. All ranks call it, those that have come late too.
func fill(ctx context.Context, c *planner.Comm, t *trial) (*planner.Comm, error) {
	all, err := strconv.Atoi(os.Getenv("TIERFLOW_SIZE"))
	if err != nil {
		return c, err
	}
	began := time.Now()
	for c.Size() < all {
		err := c.Turn(ctx)
		if errors.Is(err, planner.ErrChange) {
			began = time.Now()
			var next *planner.Comm
			if next, _, err = c.Grow(ctx, all-c.Size()); err == nil {
				c = next
				continue
			}
		}
		switch {
		case planner.Recoverable(err):
			if c, _, err = c.Shrink(ctx); err != nil {
				return c, err
			}
		case ctx.Err() != nil:
			return c, context.Cause(ctx)
		}
		time.Sleep(time.Millisecond)
	}
	if t[full] > 0 { // else this rank has come late
		t[full] = (float64(time.Now().UnixNano()) - t[full]) / 1e6
		t[still] = float64(time.Since(began).Nanoseconds()) / 1e6
	}
	return c, nil
}

// kinds lists the victims in turn.
func (b *benchRecover) kinds(t *levels.Topology) (kinds []string) {
	for _, kind := range victims {
		if (b.victim == "all" || b.victim == kind) && t.Size() > 1 && victimOf(t, kind) >= 0 {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// victimOf returns the rank that dies; -1: there is none of that kind.
func victimOf(t *levels.Topology, kind string) int {
	if kind == "root" {
		return 0
	}
	for r := range levels.Rank(t.Size()) {
		isFirst := true
		for before := range r {
			isFirst = isFirst && t.Node(before) != t.Node(r)
		}
		if r > 0 && isFirst == (kind == "leader") {
			return int(r)
		}
	}
	return -1
}

// recoveryText is a table of kills by victim.
func recoveryText(all []trial) []byte {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "victim\tkills")
	for _, name := range timeNames[heard:] {
		fmt.Fprintf(w, "\t%s p50\tp99\tmax", name)
	}
	fmt.Fprintln(w)
	for i, name := range victims {
		of := slices.DeleteFunc(slices.Clone(all), func(t trial) bool { return int(t[victim]) != i })
		if len(of) == 0 {
			continue
		}
		fmt.Fprintf(w, "%s\t%d", name, len(of))
		for column := heard; column < times; column++ {
			var ms []float64
			for _, t := range of {
				ms = append(ms, t[column])
			}
			slices.Sort(ms)
			fmt.Fprintf(w, "\t%.1f\t%.1f\t%.1f", ms[(len(ms)-1)/2], ms[(len(ms)*99+99)/100-1], ms[len(ms)-1])
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	return b.Bytes()
}
