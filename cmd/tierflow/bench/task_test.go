package bench

import (
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
