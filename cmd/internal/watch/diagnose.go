package watch

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/executor/door"
	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/flight/verdict"
)

// statusUnreadable is diagnose's exit status if nothing is known of any rank.
const statusUnreadable = 3

// betweenLooks is the time between two looks at a job. A finding must be in both.
const betweenLooks = 200 * time.Millisecond

// shortStop is the longest stop, or silence, of a process for passing reasons: a machine takes a
// snapshot of itself, say.
const shortStop = time.Second

// diagnose is the command diagnose.
type diagnose struct {
	pid    int
	least  time.Duration
	asJSON bool
}

// result is the JSON of diagnose.
type result struct {
	Job      string            `json:"job"` // or the folder
	Healthy  bool              `json:"healthy"`
	Findings []verdict.Finding `json:"findings"`
	Note     string            `json:"note,omitempty"` // who holds up a moving job by computing
	States   []flight.State    `json:"states"`
}

// DiagnoseCommand returns diagnose.
func DiagnoseCommand() *cobra.Command {
	d := &diagnose{}
	c := &cobra.Command{
		Use:   "diagnose [JOB | DIR]",
		Short: "Say why a job stands still",
		Long: `Asks all ranks of a job of this user what they are in, follows who waits for whom, and
names the cause: a rank that died, doesn't answer, is stopped, runs something else, is in
an operation, is late, or bytes that don't come. A job that moves is looked at for a second:
a network may be much slower than the others, or a rank may have no processor. JOB is the beginning of a job's name, see
tierflow ps; it may be left out where there is one job. DIR is a folder of TIERFLOW_DUMP_DIR
or tierflow run --dump: what ranks were in when the job stood still, or why it failed.

A job that stands still for ten seconds does the same by itself, and rank 0 logs the verdict.

The exit status is 0 if nothing is wrong, 1 with a finding, 2 for wrong arguments and 3 if
nothing is known of any rank.`,
		Example: `  tierflow diagnose
  tierflow diagnose 4f2c --json
  tierflow diagnose --pid 4711
  tierflow diagnose dumps/`,
		Args: atMostOneJob,
		RunE: kit.Interruptible(func(c *cobra.Command, args []string) error {
			if d.least <= 0 {
				return kit.Usagef("--least %v: give a time above 0", d.least)
			}
			r, err := d.examine(c.Context(), c.Flags().Changed("pid"), args)
			if err != nil {
				return err
			}
			return d.print(c, r)
		}),
	}
	c.Flags().IntVar(&d.pid, "pid", 0, "the job that this process is in")
	c.Flags().DurationVar(&d.least, "least", time.Second, "how long a call must have stood still to count")
	c.Flags().BoolVar(&d.asJSON, "json", false, "print JSON")
	return c
}

// examine looks at the job, or into the folder, of the arguments.
func (d *diagnose) examine(ctx context.Context, byPID bool, args []string) (*result, error) {
	switch {
	case byPID && len(args) > 0:
		return nil, kit.Usagef("both --pid and %q: give one", args[0])
	case byPID:
		j, err := jobOf(d.pid)
		if err != nil {
			return nil, err
		}
		return d.examineJob(ctx, j)
	case len(args) == 1 && isFolder(args[0]):
		return d.examineFolder(args[0])
	}
	j, err := oneJob(args)
	if err != nil {
		return nil, err
	}
	return d.examineJob(ctx, j)
}

// isFolder reports whether an argument is a folder rather than a job's name.
func isFolder(name string) bool {
	info, err := os.Stat(name)
	return strings.ContainsRune(name, filepath.Separator) || err == nil && info.IsDir()
}

// examineFolder reads snapshots.
func (d *diagnose) examineFolder(dir string) (*result, error) {
	all, err := door.ReadSnapshots(dir)
	if err != nil {
		return nil, kit.WithStatus(err, statusUnreadable)
	}
	r := &result{Job: dir}
	r.States, r.Findings = door.Diagnose(all, d.least)
	return r, nil
}

// FoundIn returns the findings of snapshots in a folder. Nothing for a folder without any.
func FoundIn(dir string) []verdict.Finding {
	if dir == "" {
		return nil
	}
	d := diagnose{least: time.Second}
	r, err := d.examineFolder(dir)
	if err != nil {
		return nil
	}
	return r.Findings
}

// examineJob looks twice: a rank may be seen between two calls.
func (d *diagnose) examineJob(ctx context.Context, j door.Job) (*result, error) {
	before := askUsages(ctx, j)
	r, err := d.lookOnce(ctx, j)
	if err != nil {
		return nil, err
	}
	if len(r.Findings) == 0 {
		return r, d.findSlow(ctx, j, before, r)
	}
	between := betweenLooks
	if slices.ContainsFunc(r.Findings, func(f verdict.Finding) bool { return f.Class == verdict.Stopped || f.Class == verdict.Unreachable }) {
		between = shortStop
	}
	if err := sleep(ctx, between); err != nil {
		return nil, err
	}
	again, err := d.lookOnce(ctx, j)
	if err != nil {
		return nil, err
	}
	again.Findings = confirm(again.Findings, r.Findings)
	return again, nil
}

// sleep waits, and returns an error if ctx ends before.
func sleep(ctx context.Context, long time.Duration) error {
	select {
	case <-time.After(long):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// confirm keeps the findings of a look known from an earlier look too.
func confirm(now, before []verdict.Finding) []verdict.Finding {
	return slices.DeleteFunc(now, func(f verdict.Finding) bool {
		return !slices.ContainsFunc(before, func(g verdict.Finding) bool { return f.Same(&g) })
	})
}

// A moving job is watched for slowTime. A slow rank must be slow slowLooks times in a row:
// collecting garbage, or a pause of the machine, is over by then. Rates of the network are of
// many messages.
const (
	slowTime  = time.Second
	slowLooks = 3
)

// fewestCalls are made in that time by a slow rank. With fewer it computes, or is late.
const fewestCalls = 3

// findSlow adds the cause of a moving job's slowness: a slower network, or a rank without a
// processor. A rank computing for longer than others is a note.
func (d *diagnose) findSlow(ctx context.Context, j door.Job, before *usages, r *result) error {
	var found []verdict.Finding
	for n := range slowLooks {
		if slices.ContainsFunc(found, func(f verdict.Finding) bool { return f.Class == verdict.SlowLink }) {
			break
		}
		if err := sleep(ctx, slowTime); err != nil {
			return err
		}
		now := askUsages(ctx, j)
		seen, note := now.compareSlow(before, j.Ranks[0].Nodes)
		if n == 0 {
			r.Note = note
		} else {
			seen = confirm(seen, found)
		}
		if found, before = seen, now; len(found) == 0 {
			return nil
		}
	}
	r.Findings, r.Note = found, ""
	return nil
}

func (d *diagnose) lookOnce(ctx context.Context, j door.Job) (*result, error) {
	v, err := look(ctx, j)
	if err != nil {
		return nil, err
	}
	if !v.readable() {
		return nil, kit.WithStatus(fmt.Errorf("job %s: %w", j.Name, errNothing), statusUnreadable)
	}
	return &result{Job: j.Name, States: v.States, Findings: verdict.Diagnose(v.knownStates(), verdict.Options{Least: d.least, Nodes: v.Nodes})}, nil
}

// print prints the findings. If there are any they are the error.
func (d *diagnose) print(c *cobra.Command, r *result) error {
	r.Healthy = len(r.Findings) == 0
	if err := kit.WriteResult(c.OutOrStdout(), d.asJSON, r, r.text); err != nil {
		return err
	}
	if n := len(r.Findings); n > 0 {
		return fmt.Errorf("%d finding%s", n, kit.Plural(n))
	}
	return nil
}

// text is the printed form of a result.
func (r *result) text() []byte {
	var b bytes.Buffer
	if r.Healthy {
		fmt.Fprintf(&b, "job %s: nothing is wrong\n", r.Job)
	}
	if r.Healthy && r.Note != "" {
		fmt.Fprintln(&b, r.Note)
	}
	for i := range r.Findings {
		fmt.Fprintln(&b, &r.Findings[i])
	}
	return b.Bytes()
}
