package watch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/door"
	"github.com/tierflow/tierflow/executor/flight/verdict"
	"github.com/tierflow/tierflow/levels/printable"
	"github.com/tierflow/tierflow/planner/raw"
)

// usages are the counts of a job's ranks here, by rank; nil: it is elsewhere, or doesn't answer.
type usages struct {
	at    time.Time
	ranks []*raw.Usage
	times []processorTime
}

// processorTime is how long the threads of a rank have run, and how long they waited for a
// processor.
type processorTime struct{ ran, delayed time.Duration }

// askUsages asks the ranks of a job on this machine.
func askUsages(ctx context.Context, j door.Job) *usages {
	u := &usages{ranks: make([]*raw.Usage, j.Ranks[0].Ranks)}
	u.times = make([]processorTime, len(u.ranks))
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var asked sync.WaitGroup
	for k := range j.Ranks {
		asked.Go(func() {
			i := &j.Ranks[k]
			a, err := i.Ask(ctx, door.Question{Usage: true})
			one := &raw.Usage{}
			if err == nil && json.Unmarshal(a.Usage, one) == nil && i.Rank >= 0 && i.Rank < len(u.ranks) {
				printable.All(one)
				u.ranks[i.Rank] = one
				u.times[i.Rank].ran, u.times[i.Rank].delayed, _ = i.ProcessorTime()
			}
		})
	}
	asked.Wait()
	u.at = time.Now()
	return u
}

// waitTimes returns how long each rank has waited since before; -1: unknown.
func (u *usages) waitTimes(before *usages) []time.Duration {
	all := make([]time.Duration, len(u.ranks))
	for r := range all {
		all[r] = -1
		if now, old := u.ranks[r], before.ranks[r]; now != nil && old != nil {
			all[r] = min(now.Waited-old.Waited, u.at.Sub(before.at)) // it is an estimate
		}
	}
	return all
}

// flows are the bytes to other nodes since before, and those from there.
func (u *usages) flows(before *usages) (left, arrived []verdict.Flow) {
	long := u.at.Sub(before.at)
	for r, now := range u.ranks {
		old := before.ranks[r]
		if now == nil || old == nil {
			continue
		}
		was := map[int]executor.Flow{}
		for _, f := range old.Flows {
			was[f.To] = f
		}
		for _, f := range now.Flows {
			busy, bytes := (f.Busy - was[f.To].Busy).Seconds(), f.Bytes-was[f.To].Bytes
			if busy > 0 {
				left = append(left, verdict.Flow{From: r, To: f.To, Rate: float64(f.Rate), Moved: float64(bytes) / busy, Full: f.Full, Busy: busy / long.Seconds()})
			}
			if waited := (f.In.Waited - was[f.To].In.Waited).Seconds(); waited > 0 {
				arrived = append(arrived, verdict.Flow{From: f.To, To: r, Rate: float64(f.In.Best), Moved: float64(f.In.Median), Full: true, Busy: waited / long.Seconds()})
			}
		}
	}
	return left, arrived
}

// compareSlow returns findings about the time since before, and a note about a rank late in spite
// of its processor.
func (u *usages) compareSlow(before *usages, nodes []string) (found []verdict.Finding, note string) {
	left, arrived := u.flows(before)
	if f := verdict.Bottleneck(left, arrived, nodes, u.areCrowded(before)); f != nil {
		found = append(found, *f)
	}
	f := verdict.Straggler(u.waitTimes(before), u.at.Sub(before.at), nodes)
	if f == nil {
		return found, ""
	}
	if why, yes := u.areStarved(before, f.Ranks, f.For); yes && u.moves(before, f.Ranks) {
		f.Text += "; " + why
		return append(found, *f), ""
	}
	return found, f.Text + "; it computes"
}

// areStarved reports whether each of some ranks waited longer for a processor than it ran since
// before, and at least half as long as the others waited. text tells it of the first.
func (u *usages) areStarved(before *usages, ranks []int, waited time.Duration) (text string, yes bool) {
	for _, r := range ranks {
		ran, delayed := u.times[r].ran-before.times[r].ran, u.times[r].delayed-before.times[r].delayed
		if delayed <= ran || 2*delayed < waited {
			return "", false
		}
		if text == "" {
			text = fmt.Sprintf("its threads ran for %.0f %% of the time that they had work, others had the processor", 100*ran.Seconds()/(ran+delayed).Seconds())
		}
	}
	return text, text != ""
}

// areCrowded reports whether the ranks here waited longer for processors than they ran since before.
func (u *usages) areCrowded(before *usages) bool {
	var ran, delayed time.Duration
	for r, now := range u.times {
		ran, delayed = ran+now.ran-before.times[r].ran, delayed+now.delayed-before.times[r].delayed
	}
	return delayed > ran
}

// moves reports whether all of some ranks have made calls since before.
func (u *usages) moves(before *usages, ranks []int) bool {
	return !slices.ContainsFunc(ranks, func(r int) bool { return calls(u.ranks[r])-calls(before.ranks[r]) < fewestCalls })
}

// row is a rank's work in some time.
type row struct {
	Rank    int     `json:"rank"`
	Node    string  `json:"node"`
	Calls   float64 `json:"calls_per_s"`
	Sent    []int64 `json:"sent_bytes_per_s"` // by level
	Read    []int64 `json:"read_bytes_per_s"`
	Waiting float64 `json:"waiting_share"` // share of the time
	Running int     `json:"running"`
}

// frame is one picture of top.
type frame struct {
	Job    string           `json:"job"`
	Levels []string         `json:"levels"`
	Rows   []row            `json:"rows"`
	Found  *verdict.Finding `json:"found,omitempty"`
}

// compare makes a frame of two looks.
func compare(j door.Job, before, now *usages) *frame {
	f := &frame{Job: j.Name}
	long := now.at.Sub(before.at)
	each := func(n int64) int64 { return int64(float64(n) / long.Seconds()) }
	waited := now.waitTimes(before)
	for r, u := range now.ranks {
		old := before.ranks[r]
		if u == nil || old == nil {
			continue
		}
		f.Levels = u.Levels
		w := row{Rank: r, Node: nodeOf(j.Ranks[0].Nodes, r), Running: u.Running, Calls: float64(calls(u)-calls(old)) / long.Seconds(), Waiting: max(0, waited[r].Seconds()/long.Seconds())}
		for k := range min(len(u.Sent), len(old.Sent)) {
			w.Sent = append(w.Sent, each(u.Sent[k]-old.Sent[k]))
			w.Read = append(w.Read, each(u.Read[k]-old.Read[k]))
		}
		f.Rows = append(f.Rows, w)
	}
	f.Found = verdict.Straggler(waited, long, j.Ranks[0].Nodes)
	return f
}

func calls(u *raw.Usage) (n int64) {
	for _, c := range u.Calls {
		n += c.Count
	}
	return n
}

// print writes a frame.
func (f *frame) print(w io.Writer) {
	fmt.Fprintf(w, "job %s\n", f.Job)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "rank\tnode\tcalls/s\twaiting\t")
	for _, level := range f.Levels {
		fmt.Fprintf(t, "%s MB/s\t", level)
	}
	fmt.Fprintln(t)
	for _, r := range f.Rows {
		fmt.Fprintf(t, "%d\t%s\t%.0f\t%.0f %%\t", r.Rank, r.Node, r.Calls, 100*r.Waiting)
		for k := range r.Sent {
			fmt.Fprintf(t, "%.1f\t", float64(r.Sent[k]+r.Read[k])/1e6)
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush() // into a buffer
	if f.Found != nil {
		fmt.Fprintf(w, "%v\n", f.Found)
	}
}

// top is the command top.
type top struct {
	every  time.Duration
	once   bool
	asJSON bool
}

// TopCommand returns top.
func TopCommand() *cobra.Command {
	o := &top{}
	c := &cobra.Command{
		Use:   "top [JOB]",
		Short: "Show how fast the ranks of a running job are, and who holds up the others",
		Long: `Asks the ranks of a job on this machine, again and again, what they have done: calls a
second, the share of the time in which they waited with nothing to do, and megabytes a
second that they sent or read, by level. In calls that all ranks need the late one waits
least: if the others wait for much of the time, it is named. JOB is the beginning of a
job's name, see tierflow ps; it may be left out where there is one job.`,
		Example: `  tierflow top
  tierflow top 4f2c --once --json`,
		Args: atMostOneJob,
		RunE: kit.Interruptible(func(c *cobra.Command, args []string) error {
			if o.every < 100*time.Millisecond {
				return kit.Usagef("--every %v: give 100ms or more", o.every)
			}
			j, err := oneJob(args)
			if err != nil {
				return err
			}
			return o.show(c.Context(), c.OutOrStdout(), j)
		}),
	}
	c.Flags().DurationVar(&o.every, "every", time.Second, "the time that rates are of")
	c.Flags().BoolVar(&o.once, "once", false, "print once and end")
	c.Flags().BoolVar(&o.asJSON, "json", false, "print JSON, a line each time")
	return c
}

// show prints frames until the job is over.
func (o *top) show(ctx context.Context, out io.Writer, j door.Job) error {
	for before := askUsages(ctx, j); ; {
		if err := sleep(ctx, o.every); err != nil {
			return err
		}
		now := askUsages(ctx, j)
		f := compare(j, before, now)
		if len(f.Rows) == 0 {
			return kit.WithStatus(fmt.Errorf("job %s: %w", j.Name, errNothing), statusUnreadable)
		}
		var b bytes.Buffer
		if o.asJSON {
			if err := json.NewEncoder(&b).Encode(f); err != nil {
				return err
			}
		} else {
			if !o.once {
				b.WriteString(clearScreen)
			}
			f.print(&b)
		}
		if _, err := out.Write(b.Bytes()); err != nil || o.once {
			return err
		}
		before = now
	}
}

// clearScreen moves a terminal's cursor to the upper left and clears the screen.
const clearScreen = "\x1b[H\x1b[2J"
