package watch

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/executor/flight"
)

// PsCommand returns ps.
func PsCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "ps [JOB]",
		Short: "List running jobs, and what each rank is in",
		Long: `Lists the jobs of this user with ranks on this machine that tierflow run has started,
or others with TIERFLOW_MANAGED=1 in the environment: for each rank its node and process,
the call it is in, the ranks it waits for, since when, and the line where its program stands. JOB is the beginning of a job's name. Ranks on
other machines are asked through the job's own connections. A rank that is stopped or
dead is shown with what it recorded last.

Ranks are asked through a socket each, in a folder that only this user can enter.
TIERFLOW_DOOR names another folder, for the job and for this command; off in the job's
environment keeps it from being asked.`,
		Example: `  tierflow ps
  tierflow ps 4f2c --json`,
		Args: atMostOneJob,
		RunE: kit.Interruptible(func(c *cobra.Command, args []string) error {
			jobs, err := findJobs(args)
			if err != nil {
				return err
			}
			views := []*view{}
			for _, j := range jobs {
				v, err := look(c.Context(), j)
				if err != nil {
					return err
				}
				views = append(views, v)
			}
			return kit.WriteResult(c.OutOrStdout(), asJSON, views, func() []byte { return viewsText(views, time.Now()) })
		}),
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func atMostOneJob(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return kit.Usagef("%d arguments %q; give one job, or none for all", len(args), args)
	}
	return nil
}

// viewsText is the printed form of jobs.
func viewsText(views []*view, now time.Time) []byte {
	if len(views) == 0 {
		return []byte(noJob + "\n")
	}
	var b bytes.Buffer
	for n, v := range views {
		if n > 0 {
			b.WriteByte('\n')
		}
		v.print(&b, now)
	}
	return b.Bytes()
}

// print writes a head and a line for each rank.
func (v *view) print(w io.Writer, now time.Time) {
	fmt.Fprintf(w, "job %s: %s, %d rank%s, for %v\n", v.Job, v.Program, v.Size, kit.Plural(v.Size), now.Sub(v.Began).Round(time.Second))
	t := kit.NewTable(w)
	fmt.Fprintln(t, "rank\tnode\tprocess\tin\twaits for\tsince\tat")
	for r := range v.States {
		s := &v.States[r]
		in, waits, since := columns(s)
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", r, nodeOf(v.Nodes, r), pidText(s.PID), in, waits, since, cmp.Or(s.At, "-"))
	}
	_ = t.Flush() // into a buffer
}

// columns returns a rank's call, the ranks it waits for, and since when.
func columns(s *flight.State) (in, waits, since string) {
	waits, since = "-", "-"
	ago := func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
	var calls []string
	for i := range s.Open {
		o := &s.Open[i]
		if !o.Awaited {
			continue
		}
		text := o.What
		if !o.Transfer {
			text += fmt.Sprintf(" #%d", o.Seq)
		}
		calls = append(calls, text)
		if len(calls) > 1 {
			continue
		}
		if o.Any {
			waits = "any"
		} else if len(o.Peers) > 0 {
			waits = strings.ReplaceAll(strings.Trim(fmt.Sprint(o.Peers), "[]"), " ", ",")
		}
		if o.For > 0 {
			since = ago(o.For)
		}
	}
	in = strings.Join(calls, " and ")
	if in == "" {
		if s.IsElsewhere() {
			if s.Elsewhere.For > 0 {
				since = ago(s.Elsewhere.For)
			}
			return "in " + s.Elsewhere.Call, waits, since
		}
		if in = s.Doing.String(); s.Last != "" {
			in += " after " + s.Last
		}
		if s.Since > 0 {
			since = ago(s.Since)
		}
	} else if s.Doing != flight.Inside {
		in = s.Doing.String() + " in " + in
	}
	return in, waits, since
}
