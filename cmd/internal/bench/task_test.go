package bench

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// printed is the JSON of a command.
type printed[T any] struct {
	Provenance provenance `json:"provenance"`
	Results    []T        `json:"results"`
}

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
		r := kittest.Decode[printed[struct {
			Task        string         `json:"task"`
			Collective  string         `json:"collective"`
			Plan        string         `json:"plan"`
			Key         costs.Key      `json:"key"`
			LeaderRanks []levels.Rank  `json:"leader_ranks"`
			Series      []costs.Series `json:"series"`
			costs.Cost
		}]](t, s.Out).Results[0]
		if r.Task != name || r.Collective != coll || r.Key.Task != name || r.Key.Segment != 4096 || r.N < 5 || len(r.Leaders) != len(r.LeaderRanks) {
			t.Errorf("%s: %+v", name, r)
		}
		often := map[string]bool{"sbib": true, "irsr": true, "sbibirsr": true, "sbiagsg": true}
		if got := len(r.Series) > 0; got != often[name] {
			t.Errorf("%s: %d series; want those of stages that occur often", name, len(r.Series))
		}
	}
}

// Every task and stage of the plan that a call takes by default can be measured, in that plan's shape.
func TestBenchTaskOfDefaultPlans(t *testing.T) {
	const topo = "4x2"
	on := tasktest.Topology(t, topo)
	for _, coll := range tasks.Requestable() {
		sizes := []int64{4 << 10, 64 << 10, 1 << 20}
		if !coll.HasData() {
			sizes = []int64{0}
		}
		measured := map[string]bool{}
		for _, bytes := range sizes {
			r := tasktest.Request(coll, bytes)
			p, err := planner.Decide(r, on, &planner.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if p.Shape == tasks.Han {
				p.Shape = tasks.HanLockstep
			}
			for _, name := range stageNames(t, r, on, p) {
				if measured[p.Shape.String()+name] {
					continue
				}
				measured[p.Shape.String()+name] = true
				args := []string{"bench", "task", name, "--op", coll.String(), "--shape", p.Shape.String(), "--topo", topo, "--simulate", "assumed", "--json"}
				if coll.HasData() {
					args = append(args, "--bytes", "4KiB")
				}
				got := kittest.Decode[printed[TaskResult]](t, tierflow.Run(t, args...).Out).Results[0]
				if !strings.HasPrefix(got.Plan, "shape="+p.Shape.String()+",") || got.Collective != coll.String() || got.Task != name || got.Mean <= 0 {
					t.Errorf("%v of %v: %s of %s took %v ns in plan %s", name, r, got.Task, got.Collective, got.Mean, got.Plan)
				}
			}
		}
		if len(measured) == 0 {
			t.Errorf("%v: its default plans have no task", coll)
		}
	}
}

// stageNames returns the stages of all leaders of a plan, and the kinds of its tasks.
func stageNames(t *testing.T, r tasks.Request, on *levels.Topology, p tasks.Plan) (all []string) {
	t.Helper()
	for _, lead := range LeadersOf(on, r, p) {
		g, err := tasks.Expand(r, on, p, lead)
		if err != nil {
			t.Fatal(err)
		}
		stages, err := g.Stages()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range stages {
			all = append(all, s.Name)
			for _, id := range s.Tasks {
				all = append(all, g.Node(id).Kind.String())
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// A collective and a shape that are given are those measured; others are refused by name.
func TestBenchTaskWhere(t *testing.T) {
	for args, want := range map[string]string{
		"sbiagirssr":                             "# sbiagirssr of allreduce, plan shape=rsag,",
		"ir --op allreduce --shape han":          "# ir of allreduce, plan shape=han-lockstep,",
		"irs --op allreduce":                     "# irs of allreduce, plan shape=rsag,",
		"iar --op allreduce":                     "# iar of allreduce, plan shape=ar,",
		"srs --plan shape=lanes":                 "# srs of allreduce, plan shape=lanes,",
		"ib --plan bcast:shape=flat --op bcast":  "# ib of bcast, plan shape=flat,",
		"sbiar --plan bcast:shape=flat;shape=ar": "# sbiar of allreduce, plan shape=ar,",
		"sb --plan shape=rsag":                   "# sb of allreduce, plan shape=rsag,",
		"iar --op barrier":                       "# iar of barrier, plan shape=",
		"sb":                                     "# sb of bcast, plan shape=han-lockstep,",
	} {
		if out := tierflow.Succeeds(t, strings.Fields("bench task --simulate assumed "+args)...); !strings.Contains(out, want) {
			t.Errorf("%s: want %q in\n%s", args, want, out)
		}
	}
	tierflow.RefusesAll(t, "bench task --simulate assumed", map[string]string{
		"sb --shape ar --plan shape=rsag": "give one of the two",
		"sb --shape tree":                 "--shape tree: known are [flat han ",
		"sb --shape han,fs=1KiB":          "--shape han,fs=1KiB: known are",
		"sb --op sum":                     "--op: unknown collective",
		"sb --op barrier --bytes 8":       "barrier has no such thing",
		"ib --op scatter --shape rsag":    "the shapes of scatter are",
		"zz --op allreduce --shape ar":    "in shape=ar of allreduce on 4x2; known are sr, iar, sb, iarsr",
		"ib --plan shape=rsag --op bcast": "the shapes of bcast are",
	})
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
	args := []string{"bench", "task", "sbib", "--topo", "12x2", "--simulate", "assumed", "--json", "--plan"}
	document := kittest.Decode[printed[TaskResult]](t, tierflow.Run(t, append(args, "i=adapt/chain")...).Out)
	if p := document.Provenance; p.Topology != "12x2" || !strings.Contains(p.Links, "simulated on a machine, assumed") || p.CPUs != 0 {
		t.Errorf("provenance %+v", p)
	}
	r := document.Results[0]
	if len(r.Series) != 12 {
		t.Fatalf("%d series, want one of each leader", len(r.Series))
	}
	for _, s := range r.Series {
		if last := s.NS[len(s.NS)-1]; !s.Settled || math.Abs(last-s.NS[len(s.NS)-2]) > 0.1*last {
			t.Errorf("leader %d: %v", s.Leader, s.NS)
		}
	}
}

// What isn't known is said before anything is measured.
func TestTaskArguments(t *testing.T) {
	tierflow.RefusesAll(t, "bench", map[string]string{
		"task sbib --simulate assumed --time 1s":    "--time: a simulation",
		"task sbib --simulate nothing.json":         "nothing.json",
		"task sbib --simulate assumed --link 1us":   "--link",
		"task sbib --plan i=adapt/chain --plan i=x": "x",
	})
}
