package peers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/disturb"
	"github.com/tierflow/tierflow/tasks"
)

// Each setting of processes is measured without noise and with it, adapt where it has
// the collective.
func TestNoiseSettings(t *testing.T) {
	n := disturb.Noise{Lasting: time.Millisecond, Share: 0.1}
	at := oneNode
	at.noise = n
	c := cells{[]string{"reduce", "allreduce"}, []int64{8, 65536}}
	var names []string
	for _, s := range withNoise(at.defaultSettings([]string{openMPI, mpich, gloo}, c), c) {
		names = append(names, s.String())
		line := strings.Join(at.jobCommand(s, s.cellsOf(c), time.Second, "/s"), " ")
		before := "/bin/tierflow-lab disturb --rank 2 --lasting 1ms --share 0.1 -- "
		program := at.driver(s.library)
		if s.library == ourselves {
			program = "/bin/tierflow bench coll"
		}
		if got := strings.Contains(line, before+program); got != s.noisy || !strings.Contains(line, program) {
			t.Errorf("%v is run by %q", s, line)
		}
		if strings.Contains(s.variant, adapt) && !slices.Equal(s.cellsOf(c).ops, []string{"reduce"}) {
			t.Errorf("%v is measured for %v", s, s.cellsOf(c).ops)
		}
	}
	var want []string
	for _, name := range []string{
		"tierflow built-in rule", "Open MPI tuned, yield", "Open MPI adapt, yield", "Open MPI tuned, spin", "Open MPI adapt, spin", "MPICH default",
	} {
		want = append(want, name, name+disturbed)
	}
	if !slices.Equal(names, want) {
		t.Errorf("settings %q, want %q", names, want)
	}
	for _, test := range []struct {
		noise disturb.Noise
		sweep time.Duration
		want  string
	}{
		{disturb.Noise{}, time.Second, ""},
		{n, 0, ""},
		{n, time.Second, "--noise compares libraries as they are"},
		{disturb.Noise{Lasting: time.Microsecond, Share: 0.1}, 0, "--noise 1µs: want 20µs to 1s"},
		{disturb.Noise{Lasting: time.Hour, Share: 0.1}, 0, "--noise 1h0m0s: want"},
		{disturb.Noise{Lasting: time.Millisecond}, 0, "--noise-share 0: want above 0 and at most 0.9 of the time"},
		{disturb.Noise{Lasting: time.Millisecond, Share: 1}, 0, "--noise-share 1: want"},
	} {
		err := (&benchPeers{site: site{noise: test.noise}, sweep: test.sweep}).checkNoise()
		if (err == nil) != (test.want == "") || err != nil && !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%+v with a sweep of %v: %v, want %q", test.noise, test.sweep, err, test.want)
		}
	}
}

// Slowdowns are of the same round, and of means.
func TestNoiseSlowdown(t *testing.T) {
	table := &peerTable{Noise: &disturb.Noise{Lasting: time.Millisecond, Share: 0.1}}
	ours := setting{library: ourselves, variant: asItIs}
	for round, mean := range []float64{10, 20, 40} {
		row := peerRow{Collective: "bcast", Bytes: 16, P50: 1, Mean: mean}
		table.addRows(ours, "", []peerRow{row})
		row.Mean *= 1 + float64(round)/10
		table.addRows(setting{library: ourselves, variant: asItIs + disturbed}, "", []peerRow{row})
	}
	table.finish()
	if r := table.Results[1]; r.LeastSlowdown != 1 || r.Slowdown != 1.1 || r.MostSlowdown != 1.2 || r.Mean != 22 {
		t.Errorf("%+v; want slowdowns 1, 1.1 and 1.2 and a mean of 22", r)
	}
	if r := table.Results[0]; r.Slowdown != 0 || r.Mean != 20 {
		t.Errorf("undisturbed %+v", r)
	}
	var text, page strings.Builder
	if err := table.print(&text, cells{[]string{"bcast"}, []int64{16}}, false); err != nil || !strings.Contains(text.String(), "1.10      1.00–1.20") {
		t.Errorf("%v in\n%s", err, &text)
	}
	writePeers(&page, "x.json", *table)
	if want := "| bcast | 16B | 22.0 | 1.10 (1.00–1.20) |\n"; !strings.Contains(page.String(), want) {
		t.Errorf("no %q in\n%s", want, &page)
	}
}

// noiseColumns are whose slowdowns a page has: of several settings that of the one with
// the least time when disturbed.
var noiseColumns = []struct {
	head string
	is   func(r *peerResult) bool
}{
	{ourselves, func(r *peerResult) bool { return r.Library == ourselves }},
	{openMPI, func(r *peerResult) bool { return r.Library == openMPI && !strings.HasPrefix(r.Variant, adapt) }},
	{openMPI + " " + adapt, func(r *peerResult) bool { return r.Library == openMPI && strings.HasPrefix(r.Variant, adapt) }},
	{mpich, func(r *peerResult) bool { return r.Library == mpich }},
}

// writeNoise renders what noise makes of mean times.
func writeNoise(w *strings.Builder, t peerTable) {
	fmt.Fprintf(w, "The rank in the middle is stopped for %v at a time, %.0f%% of the time.\n", t.Noise.Lasting, 100*t.Noise.Share)
	head := []string{"collective", "bytes", "tierflow disturbed µs"}
	columns := slices.Clone(noiseColumns)
	for i := 0; i < len(columns); i++ {
		if !slices.ContainsFunc(t.Results, columns[i].is) {
			columns = slices.Delete(columns, i, i+1)
			i--
			continue
		}
		head = append(head, columns[i].head)
	}
	fmt.Fprintf(w, "\n| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for _, ours := range t.Results {
		if ours.Library != ourselves || ours.Slowdown == 0 {
			continue
		}
		row := []string{ours.Collective, tasks.FormatBytes(ours.Bytes), figures(ours.Mean)}
		for _, c := range columns {
			cell := "-"
			var best *peerResult
			for _, r := range t.Results {
				if c.is(r) && r.Slowdown > 0 && r.cell() == ours.cell() && (best == nil || r.Mean < best.Mean) {
					best = r
				}
			}
			if best != nil {
				cell = withSpread(best.LeastSlowdown, best.Slowdown, best.MostSlowdown)
			}
			if best != nil && best != ours && ours.Mean > 0 {
				cell += ", " + figures(best.Mean/ours.Mean)
			}
			row = append(row, cell)
		}
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
	}
	fmt.Fprintln(w)
}
