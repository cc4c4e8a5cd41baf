package peers

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/dag/dagtest"
	"github.com/tierflow/tierflow/tasks"
)

// Between these testdata/peers/tables.md has what peers measured.
const (
	beginPeers = "<!-- begin peers: written by make update -->\n"
	endPeers   = "<!-- end peers -->\n"
)

// The tables of other libraries in testdata/peers/tables.md are those of its results.
func TestReadmePeers(t *testing.T) {
	files, err := filepath.Glob(kittest.Path(t, "testdata", "peers", "results", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	var tables strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		writePeers(&tables, filepath.Base(file), kittest.Decode[peerTable](t, string(text)))
	}
	page := kittest.Path(t, "testdata", "peers", "tables.md")
	text := kittest.Contents(t, page)
	old := beginPeers + kittest.Between(t, text, beginPeers, endPeers) + endPeers
	dagtest.Golden(t, page, strings.Replace(text, old, beginPeers+tables.String()+endPeers, 1))
}

// peerColumns are what tierflow's p50 is compared with: of several settings the
// fastest. The rule has one beside what is tuned only.
var peerColumns = []struct {
	head string
	is   func(r *peerResult) bool
}{
	{ruleColumn, func(r *peerResult) bool { return r.Library == ourselves && r.Variant == asItIs }},
	{"measured machine", func(r *peerResult) bool { return r.Library == ourselves && r.Variant == asMeasured }},
	{"Alloc", func(r *peerResult) bool { return r.Library == ourselves && r.Variant == withAlloc }},
	{"goroutines", func(r *peerResult) bool { return r.Library == ourselves && r.Variant == asGoroutine }},
	{"Open MPI", func(r *peerResult) bool { return r.Library == openMPI && !isForced(r) && !isByRules(r) }},
	{"Open MPI, rules by tierflow", func(r *peerResult) bool { return r.Library == openMPI && isByRules(r) }},
	{"Open MPI forced", func(r *peerResult) bool { return r.Library == openMPI && isForced(r) }},
	{mpich, func(r *peerResult) bool { return r.Library == mpich }},
	{gloo, func(r *peerResult) bool { return r.Library == gloo }},
}

const ruleColumn = "rule"

func isForced(r *peerResult) bool { return strings.HasPrefix(r.Variant, "forced") }

// writePeers renders a recording: where its numbers are from, and a row for each
// collective and size.
func writePeers(w *strings.Builder, name string, t peerTable) {
	day, _, _ := strings.Cut(t.Date, "T")
	fmt.Fprintf(w, "`%s`\non %s: %d CPUs (%s), Linux %s,\n", t.Command, day, t.CPUs, t.Processor, t.Kernel)
	if len(t.Wire) > 0 {
		rate := "a link of " + t.Rate + " for each node"
		if t.Rate == "none" {
			rate = "links of no set rate"
		}
		fmt.Fprintf(w, "%s, congestion control %s,\n", rate, t.Congestion)
	}
	for _, library := range []string{openMPI, mpich, gloo} {
		if version := t.Versions[library]; version != "" {
			fmt.Fprintf(w, "%s %s, ", library, version)
		}
	}
	fmt.Fprintf(w, "%s; recorded in `results/%s`.\n", t.Versions["Go"], name)
	if t.Tuning != nil {
		fmt.Fprintf(w, "tierflow was tuned in %.0f s.\n", t.Tuning.Seconds)
	}
	if t.Noise != nil {
		writeNoise(w, t)
		return
	}
	head := []string{"collective", "bytes", "tierflow p50 µs"}
	for _, c := range peerColumns {
		if slices.ContainsFunc(t.Results, c.is) && (c.head != ruleColumn || t.Tuning != nil) {
			head = append(head, c.head)
		}
	}
	if len(t.Wire) > 0 {
		head = append(head, wireOp)
	}
	if t.Single {
		head = append(head, "tierflow p99 / p50", "Open MPI p99 / p50")
	}
	fmt.Fprintf(w, "\n| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	ours := t.ourResults()
	for _, r := range t.Results {
		if ours[r.cell()] == r {
			fmt.Fprintf(w, "| %s |\n", strings.Join(peerCells(t, head, r), " | "))
		}
	}
	for _, failure := range t.Failures {
		// Behind the reason comes what the launcher said, which is in the recording.
		setting, why, _ := strings.Cut(failure, ": ")
		why, _, _ = strings.Cut(why, ": ")
		fmt.Fprintf(w, "\n%s: %s.\n", setting, why)
	}
	fmt.Fprintln(w)
}

// A table with tierflow tuned has the rule beside it. A cell without a tuned time,
// and a table without tuning, has the rule's time alone.
func TestReadmePeersTuned(t *testing.T) {
	result := func(library, variant string, bytes int64, p50, ratio float64) *peerResult {
		return &peerResult{
			Library: library, Variant: variant, Collective: "bcast", Bytes: bytes,
			P50: p50, Least: p50, Largest: p50, Ratio: ratio, LeastRatio: ratio, LargestRatio: ratio,
		}
	}
	rule := []*peerResult{result(ourselves, asItIs, 8, 6, 1.5), result(ourselves, asItIs, 16, 7, 1), result(mpich, "default", 8, 8, 2)}
	for _, test := range []struct {
		table peerTable
		want  string
	}{
		{peerTable{Results: rule}, `
| collective | bytes | tierflow p50 µs | MPICH |
|---|---|---|---|
| bcast | 8B | 6.00 (6.00–6.00) | 2.00 (2.00–2.00) |
| bcast | 16B | 7.00 (7.00–7.00) | - |
`},
		{peerTable{Results: append([]*peerResult{result(ourselves, tuned, 8, 4, 1)}, rule...), Tuning: &peerTuning{Seconds: 9.7}}, `tierflow was tuned in 10 s.

| collective | bytes | tierflow p50 µs | rule | MPICH |
|---|---|---|---|---|
| bcast | 8B | 4.00 (4.00–4.00) | 1.50 (1.50–1.50) | 2.00 (2.00–2.00) |
| bcast | 16B | 7.00 (7.00–7.00) | 1.00 (1.00–1.00) | - |
`},
		{peerTable{Single: true, Results: []*peerResult{
			{Library: ourselves, Variant: asItIs, Collective: "bcast", Bytes: 8, P50: 6, Least: 6, Largest: 6, P99: 12, Ratio: 1},
			{Library: openMPI, Variant: "tuned, spin", Collective: "bcast", Bytes: 8, P50: 8, P99: 40, Ratio: 1.5, LeastRatio: 1, LargestRatio: 2},
		}}, `
| collective | bytes | tierflow p50 µs | Open MPI | tierflow p99 / p50 | Open MPI p99 / p50 |
|---|---|---|---|---|---|
| bcast | 8B | 6.00 (6.00–6.00) | 1.50 (1.00–2.00) | 2.00 | 5.00 |
`},
	} {
		var w strings.Builder
		writePeers(&w, "x.json", test.table)
		if !strings.Contains(w.String(), test.want) {
			t.Errorf("got\n%swant in it\n%s", &w, test.want)
		}
	}
}

// peerCells are the cells of one row.
func peerCells(t peerTable, head []string, ours *peerResult) []string {
	size := tasks.FormatBytes(ours.Bytes)
	if ours.Collective == tasks.Barrier.String() {
		size = ""
	}
	row := []string{ours.Collective, size, withSpread(ours.Least, ours.P50, ours.Largest)}
	var theirs *peerResult // Open MPI's
	for _, c := range peerColumns {
		if !slices.Contains(head, c.head) {
			continue
		}
		var best *peerResult
		for _, r := range t.Results {
			if c.is(r) && r.Collective == ours.Collective && r.Bytes == ours.Bytes && (best == nil || r.P50 < best.P50) {
				best = r
			}
		}
		if c.head == openMPI {
			theirs = best
		}
		cell := "-"
		if best != nil {
			cell = withSpread(best.LeastRatio, best.Ratio, best.LargestRatio)
		}
		row = append(row, cell)
	}
	if us, ok := t.Wire[strconv.FormatInt(ours.Bytes, 10)]; ok {
		row = append(row, figures(us/ours.P50))
	} else if len(t.Wire) > 0 {
		row = append(row, "-")
	}
	if t.Single {
		row = append(row, tail(ours), tail(theirs))
	}
	return row
}

// tail is how much longer the slowest calls take than the usual one.
func tail(r *peerResult) string {
	if r == nil || r.P99 == 0 {
		return "-"
	}
	return figures(r.P99 / r.P50)
}

func withSpread(least, median, largest float64) string {
	return fmt.Sprintf("%s (%s–%s)", figures(median), figures(least), figures(largest))
}
