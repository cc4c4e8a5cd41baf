package kit

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// parse returns the problem of a command line that has all common flags.
func parse(t *testing.T, line string) *Problem {
	t.Helper()
	p, c := &Problem{}, &cobra.Command{}
	p.AddJobFlags(c)
	p.AddRequestFlags(c, "1KiB", "")
	p.AddCountsFlag(c)
	p.AddPlanFlag(c, "")
	p.AddTableFlag(c)
	if err := c.ParseFlags(strings.Fields(line)); err != nil {
		t.Fatal(err)
	}
	return p
}

// A request is what the flags say, or all that is wrong with them at once.
func TestReadOne(t *testing.T) {
	for _, test := range []struct{ operand, line, want string }{
		{"bcast", "", "bcast 256 f32"},
		{"bcast", "--root 3 --bytes 8 --dtype f64", "bcast 1 f64 root 3"},
		{"allreduce", "--reduce-op max --dtype i8 --bytes 3", "allreduce 3 i8 max"},
		{"barrier", "", "barrier"},
		{"allgather", "--topo 3 --counts 1,0,2", "allgather 1+0+2 f32"},
		{"allgather", "--topo 3 --counts 0,0,0", "allgather 0 f32"},
		{"gossip", "", "error: unknown collective"},
		{"allreduce", "--root 1", "error: --root: allreduce has no such thing"},
		{"barrier", "--bytes 4 --reduce-op max", "error: --reduce-op: barrier has no such thing\n--bytes: barrier has no such thing"},
		{"reduce", "--dtype f33 --reduce-op most --root 9", "error: --dtype: unknown"},
		{"reduce", "--dtype f33 --reduce-op most --root 9", "--reduce-op: "},
		{"reduce", "--dtype f33 --reduce-op most --root 9", "--root 9: ranks are 0 to 7"},
		{"reduce", "--root 4294967296", "error: --root 4294967296: ranks are 0 to 7"},
		{"reduce", "--reduce-op band", "error: --reduce-op: "},
		{"reduce", "--bytes 5", "error: --bytes 5B: not a multiple of 4 bytes, the size of f32"},
		{"reduce", "--bytes 4,8", "error: --bytes 4,8: 2 sizes; give one"},
		{"reduce", "--bytes x", "error: --bytes: "},
		{"bcast", "--counts 1", "error: --counts: bcast has no blocks that differ; "},
		{"allgather", "--topo 2 --counts 1,2 --bytes 4", "error: --bytes and --counts exclude each other: give one"},
		{"allgather", "--topo 2 --counts 1", `error: --counts: "1": 1 blocks for 2 ranks`},
		{"allgather", "--topo 2 --counts 1,x", "error: --counts: \"1,x\": write the elements of each rank's block"},
		{"alltoall", "--topo 2 --counts 1,0", `error: --counts: "1,0": 1 rows for 2 ranks`},
		{"bcast", "--topo 4y2", "error: --topo: "},
	} {
		r, _, err := parse(t, test.line).ReadOne(test.operand)
		got := fmt.Sprint(r)
		if err != nil {
			got = "error: " + err.Error()
		}
		if !strings.Contains(got, test.want) {
			t.Errorf("%s %s: %q; want %q", test.operand, test.line, got, test.want)
		}
	}
}

// A matrix is read as it was written, row by row.
func TestParseMatrix(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 50 {
		ranks := 1 + rng.IntN(6)
		rows, text := make([][]int, ranks), make([]string, ranks)
		for from := range rows {
			for range ranks {
				rows[from] = append(rows[from], rng.IntN(1000))
			}
			text[from] = strings.ReplaceAll(strings.Trim(fmt.Sprint(rows[from]), "[]"), " ", ",")
		}
		m, err := ParseMatrix(strings.Join(text, ";"), ranks)
		if err != nil {
			t.Fatal(err)
		}
		if ranks > 1 && fmt.Sprint(m.Rows()) != fmt.Sprint(rows) {
			t.Errorf("%q is read as %v", text, m.Rows())
		}
		if _, err := ParseMatrix(strings.Join(text, ";"), ranks+1); err == nil {
			t.Errorf("%q is taken for %d ranks", text, ranks+1)
		}
	}
}

func FuzzParseCounts(f *testing.F) {
	f.Add("1,0,3", 3)
	f.Add("1,-1", 2)
	f.Add("9223372036854775807,1", 2)
	f.Fuzz(func(t *testing.T, text string, ranks int) {
		counts, err := ParseCounts(text, ranks)
		if err != nil {
			return
		}
		sum := int64(0)
		for i := range counts.Len() {
			if counts.At(i) < 0 {
				t.Errorf("%q: block %d has %d elements", text, i, counts.At(i))
			}
			sum += counts.At(i)
		}
		if counts.Len() != ranks || sum != counts.Sum() || counts.Max() > sum {
			t.Errorf("%q for %d ranks: %v", text, ranks, counts)
		}
	})
}

func TestParseSizeWithin(t *testing.T) {
	for text, want := range map[string]string{
		"8": "8", "1KiB": "1024", "7": "--bytes 7: allowed is one size from 8B to 1KiB", "2KiB": "--bytes 2KiB: ", "8,16": "--bytes 8,16: ", "": "--bytes: ", "8:16:x2": "--bytes 8:16:x2: ",
	} {
		n, err := ParseSizeWithin(text, 8, 1024)
		if got := fmt.Sprint(n); err == nil && got != want || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %s, %v; want %s", text, got, err, want)
		}
	}
}

// A topology is a spec, JSON, or a file of JSON, whose name is in complaints.
func TestReadTopology(t *testing.T) {
	good, bad := filepath.Join(t.TempDir(), "good.json"), filepath.Join(t.TempDir(), "bad.json")
	for name, text := range map[string]string{good: `{"spec": "3x2"}`, bad: `{"spec": "3y2"}`} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for topo, want := range map[string]string{"3x2": "", `{"spec": "3x2"}`: "", good: "", bad: bad, "missing.json": "missing.json", "3y2": "--topo: ", `{"spec": 3}`: "--topo: "} {
		p := Problem{Topo: topo}
		on, err := p.ReadTopology()
		if want == "" && (err != nil || !on.Equal(tasktest.Topology(t, "3x2"))) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, %v; want %q", topo, on, err, want)
		}
	}
}

// A plan of the flag goes before the environment's, and a complaint names the one that is wrong.
func TestReadForced(t *testing.T) {
	for _, test := range []struct {
		flag, variable string
		window         int
		want           string
	}{
		{"", "", 0, ""},
		{"w=3", "", 3, ""},
		{"", "w=4", 4, ""},
		{"w=3", "w=4", 3, ""},
		{"w=3", "i=nosuch", 3, ""},
		{"i=nosuch", "w=4", 0, "--plan: "},
		{"", "i=nosuch", 0, env.Plan},
	} {
		t.Setenv(env.Plan, test.variable)
		p := Problem{Plan: test.flag}
		forced, err := p.ReadForced(all.Submodules())
		if window := forced.For(tasks.Bcast).Window; window != test.window || (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("--plan %q, variable %q: w=%d, %v; want w=%d, %q", test.flag, test.variable, window, err, test.window, test.want)
		}
	}
}

// Only a machine that was named chooses plans.
func TestReadMachine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "m.json")
	m, err := ReadMachine("machine", assumedMachine)
	if err != nil {
		t.Fatal(err)
	}
	data, err := m.Format()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"": "a machine, assumed", assumedMachine: "a machine, assumed", file: file + ", assumed",
		loggops + "L=2500,o=1500,g=1000,G=6,S=65535": "a machine, LogGOPS parameters",
	} {
		p := &Problem{}
		m, err := p.ReadMachine(name)
		if err != nil {
			t.Fatal(err)
		}
		if text := MachineText(name, m); !strings.HasPrefix(text, want) || (p.Options().Machine != "") != (name != "") {
			t.Errorf("%q: %s, with prices for plans: %v", name, text, p.Options().Machine != "")
		}
	}
	for _, name := range []string{"missing.json", loggops + "L=1"} {
		if _, err := ReadMachine("simulate", name); err == nil || !strings.HasPrefix(err.Error(), "--simulate: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
