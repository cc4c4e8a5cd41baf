package tune

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// A table of some machines serves one between them nearly as well as its own would, or as the rule does.
func TestTuneMachines(t *testing.T) {
	dir := t.TempDir()
	tuneFor := func(machines string) *table.Table {
		file := filepath.Join(dir, "table.json")
		args := []string{
			"tune", "-o", file, "--simulate", "assumed", "--topo", "4x2", "--machines", machines, "--ops", "bcast", "--races", "never",
			"--submodules", "adapt,sm", "--segments", "15KiB,30KiB,128KiB,all", "--windows", "8,32", "--inner", "0", "--bytes", "4KiB,64KiB,1MiB",
		}
		tierflow.Succeeds(t, args...)
		return read(t, file)
	}
	some, own := tuneFor("2x1,4x1,2x2,4x2"), tuneFor("3x2")
	if n := len(some.Entries); n != 12 || len(some.Provenance.Machines) != 4 || some.Provenance.Configurations == 0 {
		t.Errorf("%d entries; %+v", n, some.Provenance)
	}
	for i := range own.Entries {
		e := &own.Entries[i]
		a := some.Find(request(t, e), tasktest.Topology(t, "3x2"), e.Links, all.Submodules())
		if len(a.Estimates) == 0 || a.Estimates[0].From != table.FromInterpolated || len(a.Neighbours) != 2 {
			t.Fatalf("%d bytes: %+v", e.Bytes, a)
		}
		best := e.Candidates[0].NS
		took, known := simulated(t, "3x2", e, a.Estimates[0].Plan)
		ruled, err := planner.Decide(request(t, e), tasktest.Topology(t, "3x2"), nil)
		if err != nil {
			t.Fatal(err)
		}
		rule, _ := simulated(t, "3x2", e, ruled)
		if !known || took > max(1.05*best, rule) {
			t.Errorf("%d bytes: %v takes %.0f ns, the choice of its own table %.0f, the rule's plan %.0f", e.Bytes, a.Estimates[0].Plan, took, best, rule)
		}
	}
}

func TestTuneMachinesRefuses(t *testing.T) {
	tierflow.RefusesAll(t, "tune -o x --simulate assumed --topo 4x2 --ops bcast", map[string]string{
		"--machines 4x3":         "machine 4x3: node 0 has 2 ranks",
		"--machines 9x1":         "machine 9x1: allowed are 1 to 4 nodes",
		"--machines four":        `"four"; a machine is nodes and ranks a node: 3x2`,
		"--nodes 0:2":            `--nodes: "0:2"; allowed are numbers 1 to 4 and spans of them`,
		"--ppn 3":                `--ppn: "3"; allowed are numbers 1 to 2`,
		"--ppn 1 --machines 2x1": "exclude each other",
		"--alone --method learn": "--alone is of --method learn on some --machines",
		"--alone --ppn 1":        "--alone is of --method learn on some --machines",
	})
}

// On goroutine ranks each machine is a communicator of its own.
func TestTuneMachinesOnRanks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table.json")
	tierflow.Succeeds(t, smallSpace("tune", "-o", file, "--ops", "bcast", "--min", "64KiB", "--nodes", "1:2", "--ppn", "1,2")...)
	if made := read(t, file); len(made.Entries) != 3 {
		t.Errorf("%d entries for 1x2, 2x1 and 2x2", len(made.Entries))
	}
}

// Method learn learns machines together, and says how many it measured at one time: on ranks in two
// racks and simulated.
func TestLearnMachines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table.json")
	for _, c := range []struct {
		topo string
		args []string
		one  bool // machine at one time
	}{
		{"2x2x1x1", nil, false},
		{"2x2x1x1", []string{"--simulate", "assumed"}, false},
		{"2x2x1x1", []string{"--simulate", "assumed", "--alone"}, true},
		{"4x1", []string{"--simulate", "assumed"}, true},
	} {
		args := append([]string{
			"tune", "-o", file, "--topo", c.topo, "--method", "learn", "--nodes", "1:4", "--ppn", "1", "--ops", "bcast", "--bytes", "1KiB,64KiB",
			"--submodules", "adapt", "--segments", "all", "--windows", "8", "--inner", "0", "--time", "2ms",
		}, c.args...)
		s := tierflow.Run(t, args...)
		if s.Status != 0 || strings.Contains(s.Out, "at one time: 1.00 on average") != c.one || !strings.Contains(s.Out, "at one time: ") {
			t.Errorf("%s %v: status %d, %s%s", c.topo, c.args, s.Status, s.Out, s.Errors)
			continue
		}
		if made := read(t, file); len(made.Entries) != 6 || len(made.Provenance.Machines) != 3 {
			t.Errorf("%s %v: %d entries, machines %q", c.topo, c.args, len(made.Entries), made.Provenance.Machines)
		}
	}
}

// A table that learning several machines goes on with counts what was measured, and how long, before.
func TestLearnMachinesResume(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table.json")
	args := []string{
		"tune", "-o", file, "--topo", "4x1", "--simulate", "assumed", "--method", "learn", "--nodes", "1:4", "--ops", "bcast",
		"--submodules", "adapt", "--segments", "all", "--windows", "8", "--inner", "0", "--json", "--bytes",
	}
	before := Summary{}
	for n, sizes := range [][]string{{"1KiB"}, {"64KiB", "--resume"}, {"64KiB", "--resume"}} {
		s := kittest.Decode[Summary](t, tierflow.Succeeds(t, append(args, sizes...)...))
		if made := read(t, file); s.Measurements != len(made.Measured) || s.Planned < s.Measurements {
			t.Errorf("search %d: %d of %d measurements; the table has %d", n, s.Measurements, s.Planned, len(made.Measured))
		}
		if s.Measurements < before.Measurements || s.Seconds <= before.Seconds {
			t.Errorf("search %d: %+v, before %+v", n, s, before)
		}
		before = s
	}
}

func read(t *testing.T, file string) *table.Table {
	t.Helper()
	made, err := choose.LoadTable(file, all.Submodules())
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// request is the one of an entry of bcasts.
func request(t *testing.T, e *table.Entry) tasks.Request {
	t.Helper()
	return tasks.Request{Coll: tasks.Bcast, Type: tasks.Float32, Count: e.Bytes / 4}
}

// simulated is what a plan takes on the assumed machine.
func simulated(t *testing.T, topo string, e *table.Entry, p tasks.Plan) (float64, bool) {
	t.Helper()
	meter := tune.NewSimulatedMeter(tasktest.Topology(t, topo), machine.Assumed(), all.Submodules())
	took, err := meter.Collective(t.Context(), request(t, e), p, stats.Stop{})
	return took.Slowest.P50, err == nil
}
