package viz

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/dag/dagtest"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

const goldens = "../testdata/viz/"

// problem is a request on a machine under a plan.
type problem struct {
	topology string
	request  tasks.Request
	plan     string
}

const han = "shape=han,fs=64KiB,w=4,i=adapt/chain,s=sm"

// segments is the request whose message has that many segments of 64 KiB.
func segments(c tasks.Collective, n int64) tasks.Request {
	r := tasks.Request{Coll: c, Count: n * 16384, Type: tasks.Float32}
	if r.Reduces() {
		r.Op = tasks.Sum
	}
	return r
}

func (p problem) plans(t testing.TB) (*levels.Topology, tasks.Plan) {
	t.Helper()
	topo := tasktest.Topology(t, p.topology)
	plan := tasktest.Plan(t, p.plan)
	return topo, plan
}

func (p problem) graphs(t testing.TB) []*tasks.Graph {
	t.Helper()
	topo, plan := p.plans(t)
	graphs := make([]*tasks.Graph, topo.Size())
	for r := range graphs {
		var err error
		if graphs[r], err = tasks.Expand(p.request, topo, plan, levels.Rank(r)); err != nil {
			t.Fatal(err)
		}
	}
	return graphs
}

func (p problem) programs(t testing.TB) []*submodules.Program {
	t.Helper()
	graphs := p.graphs(t)
	programs := make([]*submodules.Program, len(graphs))
	for r, g := range graphs {
		var err error
		if programs[r], err = submodules.Compile(g, len(graphs), all.Submodules()); err != nil {
			t.Fatal(err)
		}
	}
	return programs
}

func (p problem) tasks(t testing.TB, opt Options) *Drawing {
	t.Helper()
	return must(Tasks(p.graphs(t), opt))(t)
}

func (p problem) steps(t testing.TB, opt Options) *Drawing {
	t.Helper()
	return must(Steps(p.programs(t), opt))(t)
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestGoldenDrawings(t *testing.T) {
	for name, d := range map[string]*Drawing{
		"allreduce_2x2_han_tasks":   problem{"2x2", segments(tasks.Allreduce, 3), han}.tasks(t, Options{}),
		"bcast_2x2_steps":           problem{"2x2", segments(tasks.Bcast, 2), han}.steps(t, Options{}),
		"allreduce_2x2_rsag_steps":  problem{"2x2", segments(tasks.Allreduce, 1), "shape=rsag,fs=64KiB,w=1,i=adapt/ring,s=sm"}.steps(t, Options{Reduce: true}),
		"allreduce_2x2_lanes_steps": problem{"2x2", segments(tasks.Allreduce, 1), "shape=lanes,fs=64KiB,w=1,i=adapt/ring,s=sm"}.steps(t, Options{Reduce: true}),
		"bcast_2x2_sag_steps":       problem{"2x2", segments(tasks.Bcast, 1), "shape=sag,fs=64KiB,w=1,i=adapt/linear,s=sm"}.steps(t, Options{Reduce: true}),
		"reducescatter_2x2_steps":   problem{"2x2", segments(tasks.ReduceScatter, 1), "shape=han,fs=64KiB,w=1,i=adapt/ring,s=sm"}.steps(t, Options{Reduce: true}),
		"allreduce_2x2x2_tasks":     problem{"2x2x2", segments(tasks.Allreduce, 2), han + ",m=sm"}.tasks(t, Options{Reduce: true}),
		"allreduce_a3b1c2_tasks":    problem{"a:3,b:1,c:2", segments(tasks.Allreduce, 2), han}.tasks(t, Options{Reduce: true}),
		"allreduce_a3b1c2_steps":    problem{"a:3,b:1,c:2", segments(tasks.Allreduce, 1), han}.steps(t, Options{Reduce: true}),
		"allreduce_2x2_window_mid":  problem{"2x2", segments(tasks.Allreduce, 8), strings.Replace(han, "w=4", "w=2", 1)}.tasks(t, Options{From: 3, To: 6}),
		"bcast_4_flat_inner_steps":  problem{"4", segments(tasks.Bcast, 1), "shape=flat,fs=64KiB,w=1,s=adapt/binomial/32KiB"}.steps(t, Options{}),
		"alltoall_2x2_tasks":        problem{"2x2", segments(tasks.Alltoall, 2), han}.tasks(t, Options{}),
		"scan_2x2_tasks":            problem{"2x2", segments(tasks.Scan, 2), han}.tasks(t, Options{}),
		"scan_2x2_steps":            problem{"2x2", segments(tasks.Scan, 1), han}.steps(t, Options{}),
		"exscan_a3b1c2_tasks":       problem{"a:3,b:1,c:2", segments(tasks.Exscan, 1), han}.tasks(t, Options{}),
		"barrier_2x1_steps":         problem{"2x1", tasks.Request{Coll: tasks.Barrier}, han}.steps(t, Options{}),
		"bcast_2x2_no_bytes":        problem{"2x2", segments(tasks.Bcast, 0), han}.tasks(t, Options{}),
	} {
		t.Run(name, func(t *testing.T) {
			dagtest.Golden(t, goldens+name+".dot", d.DOT())
			dagtest.Golden(t, goldens+name+".txt", d.Text())
		})
	}
}

// Figures 1 and 5 of the HAN paper.
func TestGoldenStages(t *testing.T) {
	for _, c := range []tasks.Collective{tasks.Bcast, tasks.Allreduce, tasks.Scan} {
		var b bytes.Buffer
		for _, n := range []int64{1, 2, 3, 4, 8} {
			graphs := problem{"2x2", segments(c, n), han}.graphs(t)
			if c.Scans() { // which the last rank of a node leads; nothing comes before the first node
				graphs = []*tasks.Graph{graphs[3], graphs[2]}
			}
			for rank, who := range []string{"leader", "member"} {
				b.WriteString(c.String() + ", " + who + ", u=" + string(rune('0'+n)) + "\n")
				b.Write(must(StageTable(graphs[rank]))(t))
				b.WriteString("\n")
			}
		}
		dagtest.Golden(t, goldens+"stages_"+c.String()+".txt", b.Bytes())
		graphs := problem{"2x2", segments(c, 5), han}.graphs(t)
		if c.Scans() {
			graphs = []*tasks.Graph{graphs[3], graphs[2]}
		}
		dagtest.Golden(t, goldens+"stages_"+c.String()+"_leader.dot", must(StageDOT(graphs[0]))(t))
		dagtest.Golden(t, goldens+"stages_"+c.String()+"_member.dot", must(StageDOT(graphs[1]))(t))
	}
}

func TestGoldenJSON(t *testing.T) {
	d := problem{"2x1", segments(tasks.Bcast, 1), han}.steps(t, Options{})
	dagtest.Golden(t, goldens+"bcast_2x1_steps.json", d.JSON())
}

// What the goldens show must be what Graphviz accepts, without a word.
func TestGraphvizTakesGoldens(t *testing.T) {
	dot, err := exec.LookPath("dot")
	if err != nil {
		t.Skip("Graphviz is not installed:", err)
	}
	files, err := filepath.Glob(filepath.FromSlash(goldens + "*.dot"))
	if err != nil || len(files) == 0 {
		t.Fatal("no goldens:", files, err)
	}
	for _, file := range files {
		var out, complaints bytes.Buffer
		cmd := exec.Command(dot, "-Tsvg", file)
		cmd.Stdout, cmd.Stderr = &out, &complaints
		if err := cmd.Run(); err != nil || complaints.Len() > 0 || !strings.Contains(out.String(), "</svg>") {
			t.Errorf("%s: %v %s", file, err, complaints.String())
		}
	}
}

// Names come from users, so a label may hold anything. What Graphviz shows must
// be the label.
func TestGraphvizShowsAnyLabel(t *testing.T) {
	dot, err := exec.LookPath("dot")
	if err != nil {
		t.Skip("Graphviz is not installed:", err)
	}
	label := `a"b\c\N\G&lt;<i>é` + "\x00\xff"
	d := &Drawing{
		Title: []string{label},
		Ranks: []Place{{0, label}},
		Tiers: []levels.Level{{Name: "node", Symbol: 's'}},
		Nodes: []Node{{Name: label, Label: label, Level: 's'}},
	}
	cmd := exec.Command(dot, "-Tsvg")
	cmd.Stdin = bytes.NewReader(d.DOT())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := `a&quot;b\c\N\G&amp;lt;&lt;i&gt;é �`
	if n := strings.Count(string(out), want); n < 3 {
		t.Errorf("%d of title, rank and node say %s:\n%s", n, want, out)
	}
}

func TestJSONIsJSON(t *testing.T) {
	d := problem{"2x2", segments(tasks.Allreduce, 5), han}.steps(t, Options{})
	var got struct {
		Title []string
		Nodes []struct{ ID, Label, Level, Detail string }
		Edges []struct{ From, To, Kind string }
	}
	if err := json.Unmarshal(d.JSON(), &got); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, n := range got.Nodes {
		ids[n.ID] = true
	}
	if len(ids) != len(d.Nodes) || len(got.Edges) != len(d.Edges) {
		t.Errorf("%d ids and %d edges, want %d and %d", len(ids), len(got.Edges), len(d.Nodes), len(d.Edges))
	}
	for _, e := range got.Edges {
		if !ids[e.From] || !ids[e.To] {
			t.Errorf("edge %v has an end that is no node", e)
		}
	}
	empty := &Drawing{}
	if !json.Valid(empty.JSON()) {
		t.Errorf("not JSON: %s", empty.JSON())
	}
}

// A rank without tasks has no stages, which is not an error.
func TestStagesOfNothing(t *testing.T) {
	g := problem{"2x2", segments(tasks.Bcast, 0), han}.graphs(t)[0]
	if got := must(StageTable(g))(t); string(got) != "no stages: this rank has no tasks\n" {
		t.Errorf("table: %s", got)
	}
	if got := must(StageDOT(g))(t); bytes.Contains(got, []byte("pos=")) {
		t.Errorf("picture: %s", got)
	}
	var read struct{ Stages []jsonStage }
	if got := must(StageJSON(g))(t); json.Unmarshal(got, &read) != nil || read.Stages == nil || len(read.Stages) > 0 {
		t.Errorf("JSON: %s", got)
	}
}
