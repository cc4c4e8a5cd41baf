package doctor

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// report is the JSON of doctor.
type report struct {
	Healthy  bool          `json:"healthy"` // no problems
	Verdict  string        `json:"verdict"`
	Problems []string      `json:"problems"`
	Warnings []string      `json:"warnings"`
	Nodes    int           `json:"nodes"`
	Took     time.Duration `json:"took_ns"`
	Levels   []levelStats  `json:"levels"`
	Ranks    []*facts      `json:"ranks"` // known ones
	Pairs    []visit       `json:"pairs"`

	crowded map[string]bool // nodes with more ranks than CPUs
}

// levelStats sums up the pairs of a level.
type levelStats struct {
	Level    string                `json:"level"`
	Pairs    int                   `json:"pairs"`
	Latency  spread[time.Duration] `json:"latency_ns"`
	Rate     spread[float64]       `json:"bytes_per_second"` // of a pair's slower direction
	Slowest  string                `json:"slowest"`          // r0-r5: has the lowest rate
	Farthest string                `json:"farthest"`         // has the longest latency
}

// spread is the best, the middle and the worst of all pairs.
type spread[T cmp.Ordered] struct {
	Best   T `json:"best"`
	Median T `json:"median"`
	Worst  T `json:"worst"`
}

// summarize needs at least one visit.
func summarize(l levels.Level, visits []visit) levelStats {
	s := levelStats{Level: l.Name, Pairs: len(visits)}
	name := func(v visit) string { return fmt.Sprintf("r%d-r%d", v.A, v.B) }
	n := len(visits)
	byLatency := slices.SortedStableFunc(slices.Values(visits), func(a, b visit) int { return cmp.Compare(a.Latency, b.Latency) })
	s.Latency = spread[time.Duration]{byLatency[0].Latency, byLatency[n/2].Latency, byLatency[n-1].Latency}
	s.Farthest = name(byLatency[n-1])
	least := func(v visit) float64 { return min(v.Out, v.Back) }
	byRate := slices.SortedStableFunc(slices.Values(visits), func(a, b visit) int { return cmp.Compare(least(b), least(a)) })
	s.Rate = spread[float64]{least(byRate[0]), least(byRate[n/2]), least(byRate[n-1])}
	s.Slowest = name(byRate[n-1])
	return s
}

// report sums up an examination, ended by err if not nil.
func (e *examination) report(s slowest, err error) *report {
	r := &report{
		Problems: []string{}, Warnings: []string{}, Levels: []levelStats{}, Ranks: e.all, Pairs: e.visits,
		Nodes: 1, crowded: map[string]bool{},
	}
	if e.all == nil {
		r.Ranks = []*facts{e.self}
		e.all = r.Ranks
	}
	if r.Pairs == nil {
		r.Pairs = []visit{}
	}
	if e.job != nil && e.job.Topology != nil {
		r.Nodes = e.job.Topology.Nodes()
	}
	r.judge(e, s, err)
	r.Healthy = len(r.Problems) == 0
	r.Took = time.Since(e.began)
	r.Verdict = r.verdict(e)
	return r
}

// verdict is the first line.
func (r *report) verdict(e *examination) string {
	word := "well"
	if !r.Healthy {
		word = fmt.Sprintf("not well, %d problem%s", len(r.Problems), kit.Plural(len(r.Problems)))
	}
	if n := len(r.Warnings); n > 0 {
		word += fmt.Sprintf(", %d warning%s", n, kit.Plural(n))
	}
	where := "this host, in no job"
	switch n := len(r.Ranks); {
	case e.job != nil && n == e.job.Size:
		where = fmt.Sprintf("%d ranks on %d node%s, %d pair%s measured in both directions", n, r.Nodes, kit.Plural(r.Nodes), len(r.Pairs), kit.Plural(len(r.Pairs)))
	case e.job != nil || !r.Healthy:
		where = fmt.Sprintf("rank %d alone, without word from the others", r.Ranks[0].Rank)
	}
	return fmt.Sprintf("%s: %s, in %.1f s", word, where, r.Took.Seconds())
}

// text is the printed form for out, a terminal with colours maybe. The verdict comes first.
func (r *report) text(out io.Writer) []byte {
	var b bytes.Buffer
	fmt.Fprintln(&b, r.Verdict)
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "  %s %s\n", kit.Coloured(out, kit.Red, "problem:"), indent(p))
	}
	for _, p := range r.Warnings {
		fmt.Fprintf(&b, "  %s %s\n", kit.Coloured(out, kit.Yellow, "warning:"), indent(p))
	}
	r.levelsText(&b)
	r.ranksText(&b)
	r.addressesText(&b)
	return b.Bytes()
}

// indent keeps further lines of a finding below it.
func indent(text string) string { return strings.ReplaceAll(text, "\n", "\n           ") }

func (r *report) levelsText(w io.Writer) {
	if len(r.Levels) == 0 {
		return
	}
	t := kit.NewTable(w)
	fmt.Fprintln(t, "\nlevel\tpairs\tlatency: best\tmedian\tworst\t\trate: best\tmedian\tworst")
	for _, l := range r.Levels {
		fmt.Fprintf(t, "%s\t%d\t%v\t%v\t%v\t%s\t%s\t%s\t%s\t%s\n", l.Level, l.Pairs,
			roundTime(l.Latency.Best), roundTime(l.Latency.Median), roundTime(l.Latency.Worst), l.Farthest,
			kit.RateText(l.Rate.Best), kit.RateText(l.Rate.Median), kit.RateText(l.Rate.Worst), l.Slowest)
	}
	t.Flush()
}

// mostRows bounds the listed ranks.
const mostRows = 64

// ranksText lists the ranks, equal ones in one line.
func (r *report) ranksText(w io.Writer) {
	fmt.Fprintln(w)
	for _, line := range []struct {
		name string
		of   func(f *facts) string
	}{
		{"started by", func(f *facts) string { return f.Launcher }},
		{"version", func(f *facts) string { return fmt.Sprintf("tierflow %s, %s, %s", f.Version, f.Compiler, f.System) }},
		{"host", func(f *facts) string {
			return fmt.Sprintf("%s: %d CPUs, %s; %s available; %s in /dev/shm", f.Host, f.HostCPUs, cmp.Or(f.Processor, "unknown"), size(f.Available), size(f.SharedFiles))
		}},
		{"limits", func(f *facts) string {
			return fmt.Sprintf("%s open files (hard %s), %s locked, %s of address space", count(f.Files), count(f.FilesHard), size(f.Locked), size(f.AddressSpace))
		}},
		{"CPUs", func(f *facts) string {
			return fmt.Sprintf("%s, NUMA domain %s", cmp.Or(f.CPUs, "any"), cmp.Or(f.NUMA, "unknown or several"))
		}},
		{"memory", func(f *facts) string {
			return fmt.Sprintf("may be read by the node: %v, ptrace_scope %s", f.Readable, cmp.Or(f.Ptrace, "none"))
		}},
		{"congestion control", func(f *facts) string { return cmp.Or(f.Congestion, "unknown") }},
		{"between nodes", (*facts).sealText},
	} {
		groups := groupBy(r.Ranks, line.of)
		for i, g := range groups {
			if i == mostRows {
				fmt.Fprintf(w, "%-19s and %d more\n", "", len(groups)-i)
				break
			}
			text := g.value
			if len(groups) > 1 {
				text = g.String()
			}
			fmt.Fprintf(w, "%-19s %s\n", line.name, text)
			line.name = ""
		}
	}
}

// sealText tells the TLS of connections between nodes. Rates are rounded: equal hosts then say
// the same.
func (f *facts) sealText() string {
	if f.Secured == "" {
		return "plain TCP: whoever is on the way reads and changes it"
	}
	if f.SealRate == 0 {
		return f.Secured
	}
	return fmt.Sprintf("%s; a core seals about %.1g GB/s", f.Secured, f.SealRate/1e9)
}

// factsOf returns those of a rank.
func (r *report) factsOf(rank int) *facts {
	i := slices.IndexFunc(r.Ranks, func(f *facts) bool { return f.Rank == rank })
	return r.Ranks[i]
}

// addressesText names the ranks and the addresses, used or not.
func (r *report) addressesText(w io.Writer) {
	fmt.Fprintln(w)
	for i, f := range r.Ranks {
		if i == mostRows {
			fmt.Fprintf(w, "and %d more ranks\n", len(r.Ranks)-i)
			break
		}
		fmt.Fprintf(w, "rank %d: pid %d on %s, node %s; %s\n", f.Rank, f.PID, f.Host, f.Node, f.Started)
	}
	groups := groupBy(r.Ranks, (*facts).addressText)
	for _, g := range groups[:min(len(groups), mostRows)] {
		fmt.Fprintf(w, "\naddresses of %s, %s\n%s", r.factsOf(g.ranks[0]).Host, rankList(g.ranks), g.value)
	}
	routes := allRoutes(r.Ranks)
	if len(routes) > 0 {
		fmt.Fprintln(w, "\nconnections")
	}
	for _, way := range routes {
		fmt.Fprintf(w, "  %d by %s, such as %s; made in at most %v\n", way.Ranks, way.Why, way.Example, roundTime(way.Longest))
	}
}

// addressText lists the addresses of a rank's host.
func (f *facts) addressText() string {
	var text strings.Builder
	for _, a := range f.Addresses {
		fmt.Fprintf(&text, "  %s %s", a.Interface, a.Address)
		if a.Use != "" {
			fmt.Fprintf(&text, ": %s", a.Use)
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// allRoutes adds up the routes of all ranks.
func allRoutes(all []*facts) []route {
	var sum facts
	for _, f := range all {
		for _, way := range f.Routes {
			sum.addRoute(way)
		}
	}
	return sum.Routes
}

// size prints bytes with three digits; -1: unlimited or unknown.
func size(n int64) string {
	if n < 0 {
		return "unlimited"
	}
	for _, u := range []struct {
		bytes int64
		name  string
	}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.bytes {
			return fmt.Sprintf("%.3g %s", float64(n)/float64(u.bytes), u.name)
		}
	}
	return tasks.FormatBytes(n)
}

func count(n int64) string {
	if n < 0 {
		return "unlimited"
	}
	return fmt.Sprint(n)
}

// roundTime keeps three digits.
func roundTime(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d.Abs()/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}
