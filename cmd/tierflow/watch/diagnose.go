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

	"github.com/tierflow/tierflow/cmd/tierflow/kit"
	"github.com/tierflow/tierflow/executor/door"
	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/flight/verdict"
)

// statusUnreadable is that of diagnose when nothing is known of any rank.
const statusUnreadable = 3

// betweenLooks is the time between two looks at a job: what is found must be there in both.
const betweenLooks = 200 * time.Millisecond

// diagnose is the command diagnose.
type diagnose struct {
	pid    int
	least  time.Duration
	asJSON bool
}

// result is what diagnose prints as JSON.
type result struct {
	Job      string // or the folder
	Healthy  bool
	Findings []verdict.Finding
	States   []flight.State
}

// DiagnoseCommand returns diagnose.
func DiagnoseCommand() *cobra.Command {
	d := &diagnose{}
	c := &cobra.Command{
		Use:   "diagnose [JOB | DIR]",
		Short: "Say why a job stands still",
		Long: `Asks all ranks of a job of this user what they are in, follows who waits for whom, and
names the cause: a rank that died, doesn't answer, is stopped, runs something else, is in
an operation, is late, or bytes that don't come. JOB is the beginning of a job's name, see
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

// examine looks at the job, or into the folder, that the arguments name.
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
	states, nodes := door.Merge(all)
	r := &result{Job: dir, States: states}
	r.Findings = verdict.Diagnose(states, verdict.Options{Least: d.least, Nodes: nodes})
	return r, nil
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
	select {
	case <-time.After(betweenLooks):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	again, err := d.lookOnce(ctx, j)
	if err != nil {
		return nil, err
	}
	again.Findings = slices.DeleteFunc(again.Findings, func(f verdict.Finding) bool {
		return !slices.ContainsFunc(r.Findings, func(g verdict.Finding) bool { return f.Same(&g) })
	})
	return again, nil
}

// slowTime is how long a job that moves is watched for ranks that hold it up.
const slowTime = time.Second

// findSlow adds a rank that holds up a job which moves.
func (d *diagnose) findSlow(ctx context.Context, j door.Job, before *usages, r *result) error {
	select {
	case <-time.After(slowTime):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	now := askUsages(ctx, j)
	if f := verdict.Straggler(now.waited(before), now.at.Sub(before.at)); f != nil {
		r.Findings = append(r.Findings, *f)
	}
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
	return &result{Job: j.Name, States: v.States, Findings: verdict.Diagnose(v.States, verdict.Options{Least: d.least, Nodes: v.Nodes})}, nil
}

// print prints the findings. That there are some is the error.
func (d *diagnose) print(c *cobra.Command, r *result) error {
	r.Healthy = len(r.Findings) == 0
	var b bytes.Buffer
	switch {
	case d.asJSON:
		if err := kit.WriteJSON(&b, r); err != nil {
			return err
		}
	case r.Healthy:
		fmt.Fprintf(&b, "job %s: nothing is wrong\n", r.Job)
	default:
		for i := range r.Findings {
			fmt.Fprintf(&b, "%v\n", &r.Findings[i])
		}
	}
	if _, err := c.OutOrStdout().Write(b.Bytes()); err != nil {
		return err
	}
	if n := len(r.Findings); n > 0 {
		return fmt.Errorf("%d finding%s", n, kit.Plural(n))
	}
	return nil
}
