package bench

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/tierflow/kit/kittest"
	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/levels"
)

// short measures little.
const short = " --bytes 4KiB --time 1ms --link i=10gbit,1us"

// Each stage task of an allreduce is measured where it occurs.
func TestBenchTask(t *testing.T) {
	for name, coll := range map[string]string{
		"ib": "bcast", "sb": "bcast", "sbib": "bcast", "sr": "reduce", "irsr": "reduce", "ir": "reduce",
		"ibirsr": "allreduce", "sbibirsr": "allreduce", "ibir": "allreduce", "sbiag": "allgather", "ig": "gather",
	} {
		s := tierflow.Run(t, strings.Fields("bench task "+name+" --topo 2x2 --json"+short)...)
		if s.Status != 0 || !strings.Contains(s.Errors, "emulated: i=10gbit,1us") {
			t.Fatalf("%s: status %d, notes %q", name, s.Status, s.Errors)
		}
		r := kittest.Decode[struct {
			Task        string         `json:"task"`
			Collective  string         `json:"collective"`
			Plan        string         `json:"plan"`
			Key         costs.Key      `json:"key"`
			LeaderRanks []levels.Rank  `json:"leader_ranks"`
			Series      []costs.Series `json:"series"`
			costs.Cost
		}](t, s.Out)
		if r.Task != name || r.Collective != coll || r.Key.Task != name || r.Key.Segment != 4096 || r.N < 5 || len(r.Leaders) != len(r.LeaderRanks) {
			t.Errorf("%s: %+v", name, r)
		}
		often := map[string]bool{"sbib": true, "irsr": true, "sbibirsr": true, "sbiagsg": true}
		if got := len(r.Series) > 0; got != often[name] {
			t.Errorf("%s: %d series; want those of stages that occur often", name, len(r.Series))
		}
	}
}

func TestBenchTaskTable(t *testing.T) {
	out := tierflow.Succeeds(t, strings.Fields("bench task sbib --topo 3x2"+short)...)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 6 || !strings.Contains(lines[1], "# sbib of bcast, plan shape=han-lockstep") || !strings.Contains(lines[2], "samples") {
		t.Fatalf("%d lines of\n%s", len(lines), out)
	}
	for i, rank := range []string{"r0", "r2", "r4"} {
		if words := strings.Fields(lines[3+i]); words[0] != rank || len(words) < 5+costs.Extra || !strings.Contains(lines[3+i], "settled") {
			t.Errorf("line %q; want the times of %s", lines[3+i], rank)
		}
	}
}

func TestBenchOverlap(t *testing.T) {
	s := tierflow.Run(t, strings.Fields("bench overlap --topo 2x2 --json"+short)...)
	type result struct {
		Kinds       [2]string     `json:"kinds"`
		Collective  string        `json:"collective"`
		Plan        string        `json:"plan"`
		LeaderRanks []levels.Rank `json:"leader_ranks"`
		Alone       [2]costs.Cost `json:"alone"`
		Together    costs.Cost    `json:"together"`
		Stage       string        `json:"stage"`
		First       []float64     `json:"first_ns"`
		InTurn      costs.Cost    `json:"in_turn"`
	}
	all := kittest.Decode[struct {
		Results []result `json:"results"`
	}](t, s.Out).Results
	if len(all) != 2 {
		t.Fatalf("%d results, want ib with sb and ib with ir; errors %q", len(all), s.Errors)
	}
	for i, want := range []string{"bcast ib sb sbib", "allreduce ib ir ibir"} {
		r := all[i]
		if got := strings.Join([]string{r.Collective, r.Kinds[0], r.Kinds[1], r.Stage}, " "); got != want {
			t.Errorf("result %d is of %s, want %s", i, got, want)
		}
		if often := r.Stage == "sbib"; often != (len(r.First) == 2) {
			t.Errorf("%s: first times %v", want, r.First)
		}
		for _, c := range []costs.Cost{r.Alone[0], r.Alone[1], r.Together, r.InTurn} {
			if c.N < 5 || len(c.Leaders) != 2 {
				t.Errorf("%s: %+v", want, c)
			}
		}
	}
	out := tierflow.Succeeds(t, strings.Fields("bench overlap sr+ir --topo 2x2"+short)...)
	if !strings.Contains(out, "# sr with ir, of allreduce") || !strings.Contains(out, "irsr in turn") || !strings.Contains(out, "slowest") {
		t.Errorf("output\n%s", out)
	}
}

// On a simulated machine two tasks at once take no less than the longer one alone, and
// no longer than one after the other.
func TestOverlapSimulated(t *testing.T) {
	figure := filepath.Join(t.TempDir(), "overlap.svg")
	s := tierflow.Run(t, "bench", "overlap", "--topo", "6x4", "--simulate", "assumed", "--json", "--svg", figure,
		"--plan", "i=adapt/chain", "--plan", "i=adapt/binary")
	all := kittest.Decode[struct {
		Results []overlapResult
	}](t, s.Out).Results
	if len(all) != 4 {
		t.Fatalf("%d results, want two pairs with two plans", len(all))
	}
	for _, r := range all {
		if a, b, both := r.Alone[0].P50, r.Alone[1].P50, r.Together.P50; both < max(a, b) || both > 1.05*(a+b) {
			t.Errorf("%v with %s: %.0f and %.0f ns alone, %.0f together", r.Kinds, r.Plan, a, b, both)
		}
	}
	wantDrawing(t, figure, "ib alone", "ib and sb at once", "settled sbib in turn", "i=adapt/binary", ">r20<", "µs")
}

// In a simulated pipeline a stage task takes as long again and again in the end.
func TestTaskSimulated(t *testing.T) {
	figure := filepath.Join(t.TempDir(), "task.svg")
	args := []string{"bench", "task", "sbib", "--topo", "12x2", "--simulate", "assumed", "--svg", figure, "--json", "--plan"}
	r := kittest.Decode[taskResult](t, tierflow.Run(t, append(args, "i=adapt/chain")...).Out)
	if len(r.Series) != 12 {
		t.Fatalf("%d series, want one of each leader", len(r.Series))
	}
	for _, s := range r.Series {
		if last := s.NS[len(s.NS)-1]; !s.Settled || math.Abs(last-s.NS[len(s.NS)-2]) > 0.1*last {
			t.Errorf("leader %d: %v", s.Leader, s.NS)
		}
	}
	wantDrawing(t, figure, "i=adapt/chain", "occurrence", ">r0<", "µs")
	args[2] = "ib"
	if s := tierflow.Run(t, append(args, "i=adapt/chain")...); s.Status != 2 || !strings.Contains(s.Errors, "ib occurs once") {
		t.Errorf("%+v", s)
	}
}

// What can't be drawn or isn't known is said before anything is measured.
func TestFigureArguments(t *testing.T) {
	for args, want := range map[string]string{
		"overlap --svg /nowhere/x.svg":            "there is no directory /nowhere",
		"overlap --svg /":                         "a directory",
		"overlap --svg -":                         "standard output has the numbers",
		"task ib --svg x.svg --simulate assumed":  "ib occurs once",
		"task sbib --simulate assumed --time 1s":  "--time: a simulation",
		"task sbib --simulate nothing.json":       "nothing.json",
		"task sbib --simulate assumed --link 1us": "--link",
		"overlap --plan i=adapt/chain --plan i=x": "x",
	} {
		if s := tierflow.Run(t, strings.Fields("bench "+args)...); s.Status != 2 || !strings.Contains(s.Errors, want) || s.Out != "" {
			t.Errorf("%s: %+v", args, s)
		}
	}
}

// wantDrawing complains if a file is no SVG that has some texts.
func wantDrawing(t *testing.T, name string, texts ...string) {
	t.Helper()
	drawing, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range append(texts, "<svg", "</svg>") {
		if !strings.Contains(string(drawing), text) {
			t.Errorf("%s has no %q", filepath.Base(name), text)
		}
	}
}
