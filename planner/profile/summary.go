package profile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tierflow/tierflow/tasks"
)

// Summary is what a job says in place of a file's name, to have [Profile.Text] printed at its end.
const Summary = "summary"

// maxRows bounds the rows of a summary.
const maxRows = 30

// Text is a table of the time by collective and size, the longest first: plans are added up.
func (p *Profile) Text() string {
	var rows []Call
	at := map[Call]int{}
	all := 0.
	for _, c := range p.Calls {
		kind := Call{Collective: c.Collective, Type: c.Type, Op: c.Op, Bytes: c.Bytes, Differ: c.Differ, On: c.On}
		i, known := at[kind]
		if !known {
			i = len(rows)
			at[kind], rows = i, append(rows, kind)
		}
		rows[i].Calls += c.Calls
		rows[i].Seconds += c.Seconds
		all += c.Seconds
	}
	slices.SortStableFunc(rows, func(a, b Call) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Collective, b.Collective), cmp.Compare(a.Bytes, b.Bytes))
	})
	share := func(s float64) float64 { return 100 * s / max(p.Seconds, 1e-9) }
	var b strings.Builder
	fmt.Fprintf(&b, "tierflow: rank 0 of %s was in collectives for %.3f of %.3f s, %.0f %%, waits for late ranks included\n", p.Program, all, p.Seconds, share(all))
	if len(rows) == 0 {
		return b.String()
	}
	fmt.Fprintf(&b, "tierflow:   %-14s %-5s %-5s %9s %9s %10s %6s %10s  on\n", "collective", "type", "op", "bytes", "calls", "s", "share", "mean")
	for i, c := range rows {
		if i == maxRows {
			fmt.Fprintf(&b, "tierflow:   %d more\n", len(rows)-maxRows)
			break
		}
		mean := time.Duration(c.Seconds / float64(max(1, c.Calls)) * 1e9)
		unit := time.Microsecond
		if mean < unit {
			unit = 1
		}
		size := tasks.FormatBytes(c.Bytes)
		if c.Differ {
			size = "≤" + size
		}
		fmt.Fprintf(&b, "tierflow:   %-14s %-5s %-5s %9s %9d %10.3f %4.0f %% %10v  %s\n",
			c.Collective, cmp.Or(c.Type, "-"), cmp.Or(c.Op, "-"), size, c.Calls, c.Seconds, share(c.Seconds), mean.Round(unit), c.On)
	}
	return b.String()
}
