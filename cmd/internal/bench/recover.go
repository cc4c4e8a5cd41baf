package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/stat"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/elastic"
	"github.com/tierflow/tierflow/tasks"
)

// benchRecover is the command bench recover.
type benchRecover struct {
	kills  int
	victim string // a name of victims, or all
	size   string // --bytes
	count  int64  // elements of the calls
	twice  bool   // a second rank dies soon after
}

// victims are the kinds of ranks to kill, in turn.
var victims = []string{"root", "leader", "leaf"}

func recoverCommand() *cobra.Command {
	b := &benchRecover{}
	c := &cobra.Command{
		Use:   "recover",
		Short: "Kill ranks, and measure how long the others take to go on",
		Long: `Kills ranks of the job with SIGKILL while all are in allreduces, one after the other, and measures
how long the others take to go on, by the last of them. Before each kill all ranks are there again.

--victim says who dies: root (rank 0), leader (the first rank of a node that isn't rank 0's), leaf (the lowest rank that
isn't the first of its node), or all of these that there are in turn. The times count from when the rank was to
die, by the clock of the host: all ranks must be on one.

Columns, in milliseconds, p50 and p99 of the kills, and the longest: heard is when the call has failed, decided when it is known who goes on, shrunk when Shrink has returned,
first when the first allreduce of those who are left has ended, full when a new process has joined and an allreduce of all has ended;
still is how long ranks stand still for that. A last line says what rank 0 held of the system after the third kill and after the
last, if it is the same process.

With --twice the highest other rank dies too, at most 30 ms after the first one. The times still count from the first death, and end
without both.`,
		Example: `  tierflow run -n 16 --hosts a:4,b:4,c:4,d:4 --launcher local --oversubscribe --max-restarts 200 -- tierflow bench recover --kills 200
  tierflow run -n 4 --max-restarts 20 -- tierflow bench recover --kills 20 --victim leaf`,
		Args: kit.NoOperands,
		RunE: kit.Checked(b.read, b.run),
	}
	f := c.Flags()
	f.IntVar(&b.kills, "kills", 20, "number of kills, at most --max-restarts of tierflow run, or half of that with --twice")
	f.StringVar(&b.victim, "victim", "all", "who is killed: root, leader, leaf or all")
	f.BoolVar(&b.twice, "twice", false, "a second rank dies while the others recover")
	f.StringVar(&b.size, "bytes", "8KiB", "size of the allreduces, of float64")
	return c
}

// read checks all arguments.
func (b *benchRecover) read([]string) error {
	n, err := kit.ParseSizeWithin(b.size, 8, largestMessage)
	switch {
	case err != nil:
		return err
	case b.kills < 1:
		return kit.Usagef("--kills %d: allowed are numbers from 1 on", b.kills)
	case b.victim != "all" && !slices.Contains(victims, b.victim):
		return kit.Usagef("--victim %s: allowed are root, leader, leaf and all", b.victim)
	case os.Getenv(env.LobbyFD) == "":
		return kit.Usagef("nobody takes the place of a killed rank: start it by tierflow run --max-restarts")
	}
	b.count = n / 8
	return nil
}

// The times of a kill.
const (
	victim = iota // index of victims
	heard         // ms, as those below
	decided
	shrunk
	first
	full
	still
	times
)

var timeNames = [times]string{"victim", "heard", "decided", "shrunk", "first", "full", "still"}

// trial is one kill.
type trial [times]float64

// run is the part of one process, maybe of a late one.
func (b *benchRecover) run(ctx context.Context, stdout, _ io.Writer) error {
	c, err := planner.Join(ctx, nil)
	if errors.Is(err, planner.ErrOver) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { c.Close() }()
	all := make([]trial, b.kills)
	var early holdings
	var last trial // as this rank has seen it; zero: it wasn't there
	done := 0
	for {
		if c, err = fill(ctx, c, &last); err != nil {
			return err
		}
		s, err := elastic.Sync(ctx, c, uint64(done), elastic.PartOf("kills", all))
		if err != nil {
			return err
		}
		if done = int(s.Revision); done > 0 { // the last rank counts
			if err := planner.Allreduce(ctx, c, last[:], all[done-1][:], tasks.Max); err != nil {
				return err
			}
		}
		if done == settledKills {
			early = countHoldings(ctx)
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
	if _, err = stdout.Write(recoveryText(all)); err == nil && early.descriptors > 0 && done > settledKills {
		_, err = fmt.Fprintf(stdout, "# rank 0 had %v after %d kills, and has %v after %d\n", early, settledKills, countHoldings(ctx), done)
	}
	return err
}

// settledKills is the number of kills after which a process's holdings should grow no more.
const settledKills = 3

// holdings are things that a process could leak.
type holdings struct{ descriptors, mappings, goroutines, heap int }

func (h holdings) String() string {
	return fmt.Sprintf("%d descriptors, %d mappings, %d goroutines, %d KiB in use", h.descriptors, h.mappings, h.goroutines, h.heap)
}

// countHoldings counts the holdings of this process; without /proc only goroutines and memory.
func countHoldings(ctx context.Context) (h holdings) {
	pause(ctx, settleTime)
	runtime.GC()
	runtime.GC() // for objects let go by cleanups
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fds, _ := os.ReadDir("/proc/self/fd")
	maps, _ := os.ReadFile("/proc/self/maps")
	return holdings{len(fds), bytes.Count(maps, []byte("\n")), runtime.NumGoroutine(), int(m.HeapAlloc >> 10)}
}

// pause waits for d, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// settleTime is the time for a job to end after others have taken its place.
const settleTime = time.Second

// mostSecond is how long after the first a second rank dies at most, ms.
const mostSecond = 30

// The time between the announcement of a death and the death: lead, and leadTimes that of a barrier.
// The announcement and a barrier take less, on a busy machine too.
const (
	lead      = 50 * time.Millisecond
	leadTimes = 4
)

// kill lets one rank die, and the others recover. It returns their new communicator.
func (b *benchRecover) kill(ctx context.Context, c *planner.Comm, n int, t *trial) (*planner.Comm, error) {
	kinds := b.kinds(c.Topology())
	if len(kinds) == 0 {
		return c, kit.Usagef("--victim %s: %v has no such rank, or no other one", b.victim, c.Topology())
	}
	kind := kinds[n%len(kinds)]
	death, left, err := b.doom(ctx, c, victimOf(c.Topology(), kind), n)
	if err != nil {
		return c, err
	}
	*t = trial{victim: float64(slices.Index(victims, kind))}
	at := func(column int, then time.Time) { t[column] = float64(then.UnixNano()-death) / 1e6 }
	since := func(column int) { at(column, time.Now()) }
	data := make([]float64, b.count)
	for err == nil {
		err = planner.Allreduce(ctx, c, data, data, tasks.Max)
	}
	since(heard)
	for { // until the survivors have ended a call
		if !planner.Recoverable(err) {
			return c, err
		}
		var change planner.Change
		if change, err = c.Shrink(ctx); err != nil {
			return c, err
		}
		c = change.Comm
		at(decided, change.Decided)
		since(shrunk)
		for err == nil && c.Size() > left { // the second one lives
			err = planner.Allreduce(ctx, c, data, data, tasks.Max)
		}
		if err != nil {
			continue
		}
		if err = planner.Allreduce(ctx, c, data, data, tasks.Max); err == nil {
			since(first)
			t[full] = float64(death) // fill makes a time of it
			return c, nil
		}
	}
}

// doom lets a rank die soon, or two, but not before all ranks know. It returns when the first one
// does, in ns, and how many are left.
func (b *benchRecover) doom(ctx context.Context, c *planner.Comm, victim, n int) (death int64, left int, err error) {
	began := time.Now()
	if err := planner.Barrier(ctx, c); err != nil {
		return 0, 0, err
	}
	soon := time.Now().Add(lead + leadTimes*time.Since(began) + time.Duration(n*7919%20)*time.Millisecond)
	deaths := []int64{soon.UnixNano(), soon.Add(time.Duration(n*7907%(mostSecond+1)) * time.Millisecond).UnixNano()}
	if err := planner.Bcast(ctx, c, deaths, 0); err != nil {
		return 0, 0, err
	}
	victims := []int{victim, c.Size() - 1}
	if victim == c.Size()-1 {
		victims[1]--
	}
	if !b.twice {
		victims = victims[:1]
	}
	if left = c.Size() - len(victims); left == 0 {
		return 0, 0, kit.Usagef("--twice: %v has no third rank", c.Topology())
	}
	if err := planner.Barrier(ctx, c); err != nil && !planner.Recoverable(err) { // a victim that has left it may be dead
		return 0, 0, err
	}
	if i := slices.Index(victims, c.Rank()); i >= 0 {
		own, err := os.FindProcess(os.Getpid())
		if err != nil {
			return 0, 0, err
		}
		time.AfterFunc(time.Until(time.Unix(0, deaths[i])), func() { _ = own.Kill() })
	}
	return deaths[0], left, nil
}

// fill lets others in until all ranks are there again. All ranks call it, late ones too.
func fill(ctx context.Context, c *planner.Comm, t *trial) (*planner.Comm, error) {
	all, err := strconv.Atoi(os.Getenv(env.Size))
	if err != nil {
		return c, err
	}
	began := time.Now()
	for c.Size() < all {
		err := c.Turn(ctx)
		if errors.Is(err, planner.ErrChange) {
			began = time.Now()
			var change planner.Change
			if change, err = c.Grow(ctx, all-c.Size()); err == nil {
				c = change.Comm
				continue
			}
		} else if err != nil && !planner.Recoverable(err) {
			return c, err
		}
		switch {
		case planner.Recoverable(err):
			change, err := c.Shrink(ctx)
			if err != nil {
				return c, err
			}
			c = change.Comm
		case ctx.Err() != nil:
			return c, context.Cause(ctx)
		}
		pause(ctx, time.Millisecond)
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

// victimOf returns the rank to kill; -1: there is none of that kind.
func victimOf(t *levels.Topology, kind string) int {
	if kind == "root" {
		return 0
	}
	seen := map[int32]bool{} // nodes
	for r := range levels.Rank(t.Size()) {
		isFirst := !seen[t.Node(r)]
		seen[t.Node(r)] = true
		if r > 0 && isFirst == (kind == "leader") {
			return int(r)
		}
	}
	return -1
}

// recoveryText is a table of kills by victim.
func recoveryText(all []trial) []byte {
	var b bytes.Buffer
	w := kit.NewTable(&b)
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
			part := func(p float64) float64 { return stat.Quantile(p, stat.Empirical, ms, nil) }
			fmt.Fprintf(w, "\t%.1f\t%.1f\t%.1f", part(0.5), part(0.99), part(1))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	return b.Bytes()
}
