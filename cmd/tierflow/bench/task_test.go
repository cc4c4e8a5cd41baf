package bench

import (
	"math"
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
	kittest.CheckDrawing(t, figure, "i=adapt/chain", "occurrence", ">r0<", "µs")
	args[2] = "ib"
	tierflow.Refuses(t, "ib occurs once", append(args, "i=adapt/chain")...)
}

// What can't be drawn or isn't known is said before anything is measured.
func TestFigureArguments(t *testing.T) {
	tierflow.RefusesAll(t, "bench", map[string]string{
		"task sbib --svg /nowhere/x.svg":            "there is no directory /nowhere",
		"task sbib --svg /":                         "a directory",
		"task sbib --svg -":                         "standard output has the numbers",
		"task ib --svg x.svg --simulate assumed":    "ib occurs once",
		"task sbib --simulate assumed --time 1s":    "--time: a simulation",
		"task sbib --simulate nothing.json":         "nothing.json",
		"task sbib --simulate assumed --link 1us":   "--link",
		"task sbib --plan i=adapt/chain --plan i=x": "x",
	})
}
