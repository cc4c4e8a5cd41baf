package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/elastic"
	"github.com/tierflow/tierflow/tasks"
)

// benchSync is the command bench sync.
type benchSync struct {
	size  string // --bytes
	bytes int64  // of the state
	late  int    // ranks without the state
	times int
	gbit  float64 // of a link, Gbit/s; 0: not known
}

// mostState bounds the state: each rank has one.
const mostState = 4 << 30

func syncCommand() *cobra.Command {
	b := &benchSync{}
	c := &cobra.Command{
		Use:   "sync",
		Short: "Measure how long it takes to give newcomers the state of the others",
		Long: `Measures planner.Sync, by the last rank: the highest ranks have nothing of a state that all others have, as newcomers.
Each time the state is another one, and is compared afterwards. --gbit is what a link carries, in Gbit/s: then each time is also told as
a ratio to bytes / rate, the least that a newcomer on a node of its own can take.`,
		Example: `  tierflow run -n 5 --hosts a:1,b:1,c:1,d:1,e:1 -- tierflow bench sync --late 4 --gbit 1`,
		Args:    kit.NoOperands,
		RunE:    kit.Checked(b.read, b.run),
	}
	f := c.Flags()
	f.StringVar(&b.size, "bytes", "256MiB", "size of the state")
	f.IntVar(&b.late, "late", 1, "how many ranks have nothing of it, the highest ones")
	f.IntVar(&b.times, "times", 5, "how often")
	f.Float64Var(&b.gbit, "gbit", 0, "what a link carries, Gbit/s; 0: not known")
	return c
}

// read checks all arguments.
func (b *benchSync) read([]string) (err error) {
	if b.bytes, err = kit.ParseSizeWithin(b.size, 1, mostState); err != nil {
		return err
	}
	if b.late < 1 || b.times < 1 || b.gbit < 0 {
		return kit.Usagef("--late %d --times %d --gbit %v: allowed are numbers from 1 on, and a rate from 0 on", b.late, b.times, b.gbit)
	}
	return nil
}

// run is the part of one process.
func (b *benchSync) run(ctx context.Context, stdout, _ io.Writer) error {
	c, err := planner.Join(ctx, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	if b.late >= c.Size() {
		return kit.Usagef("--late %d of %d ranks: at least one has the state", b.late, c.Size())
	}
	state := make([]byte, b.bytes)
	var all []float64
	for n := range b.times {
		took, err := b.giveState(ctx, c, state, n)
		if err != nil {
			return err
		}
		all = append(all, took)
	}
	if c.Rank() != 0 {
		return nil
	}
	slices.Sort(all)
	text := func(seconds float64) string {
		if b.gbit == 0 {
			return fmt.Sprintf("%.3f s", seconds)
		}
		return fmt.Sprintf("%.3f s (%.2f of bytes / rate)", seconds, seconds*b.gbit*1e9/8/float64(b.bytes))
	}
	_, err = fmt.Fprintf(stdout, "# %v; %s to %d ranks, %d times\nmedian %s, shortest %s, longest %s\n", c.Topology(), tasks.FormatBytes(b.bytes), b.late, b.times,
		text(all[len(all)/2]), text(all[0]), text(all[len(all)-1]))
	return err
}

// giveState gives the late ranks the n-th state, and returns the last rank's seconds for it.
func (b *benchSync) giveState(ctx context.Context, c *planner.Comm, state []byte, n int) (seconds float64, err error) {
	revision := uint64(n + 1)
	late := c.Rank() >= c.Size()-b.late
	if late {
		revision = 0
		clear(state)
	} else {
		fillState(state, n)
	}
	if err := planner.Barrier(ctx, c); err != nil {
		return 0, err
	}
	begin := time.Now()
	if _, err := elastic.Sync(ctx, c, revision, elastic.PartOf("state", state)); err != nil {
		return 0, err
	}
	took := []float64{time.Since(begin).Seconds()}
	if late && !isState(state, n) {
		return 0, fmt.Errorf("rank %d has another state than the others", c.Rank())
	}
	err = planner.Allreduce(ctx, c, took, took, tasks.Max)
	return took[0], err
}

// stateByte is a byte of the n-th state: others in each, and in each MiB.
func stateByte(i, n int) byte { return byte(i>>20 + i*7 + n*13) }

func fillState(state []byte, n int) {
	for i := range state {
		state[i] = stateByte(i, n)
	}
}

func isState(state []byte, n int) bool {
	for i, b := range state {
		if b != stateByte(i, n) {
			return false
		}
	}
	return true
}
