package simulate

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/costs/machine"
)

// tierflow is the command with what is in this package.
var tierflow = kittest.Of("tierflow", Command)

const smallPlan = "shape=han,fs=32KiB,w=2,i=adapt/chain,s=sm"

func TestSimulate(t *testing.T) {
	args := []string{"simulate", "allreduce", "--topo", "2x2", "--bytes", "64KiB", "--plan", smallPlan}
	kittest.CheckGolden(t, "simulate.txt", tierflow.Succeeds(t, append(args, "--path", "6")...))
	r := kittest.Decode[report](t, tierflow.Succeeds(t, append(args, "--json")...))
	if r.Ranks != 4 || r.NS <= 0 || len(r.Links) != 2 || r.Path[len(r.Path)-1].EndNS != r.NS || r.Machine != "a machine, assumed" {
		t.Errorf("%+v", r)
	}
}

// A machine file counts, and its noise only with a seed.
func TestMachineFile(t *testing.T) {
	m := machine.Assumed()
	m.Links[1].Latency, m.Noise = 10e6, 0.5
	data, err := m.Format()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "m.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	simulated := func(more ...string) float64 {
		args := append([]string{"simulate", "bcast", "--topo", "2x1", "--bytes", "4", "--json", "--machine", file}, more...)
		return kittest.Decode[report](t, tierflow.Succeeds(t, args...)).NS
	}
	quiet, noisy := simulated(), simulated("--seed", "1")
	if quiet < 10e6 || quiet > 10.1e6 || noisy <= quiet || noisy != simulated("--seed", "1") || noisy == simulated("--seed", "2") {
		t.Errorf("quiet %v ns, noisy %v ns", quiet, noisy)
	}
}

// A library's name is no plan here, and the answer says where it is one.
func TestLibraries(t *testing.T) {
	for _, name := range libraries {
		tierflow.Refuses(t, "tierflow-lab decisions", "simulate", "bcast", "--plan", name)
	}
}

func TestAllPlans(t *testing.T) {
	args := []string{"simulate", "bcast", "--topo", "8x2", "--bytes", "64KiB", "--plan", "all"}
	text := tierflow.Succeeds(t, args...)
	rows := kittest.Decode[[]row](t, tierflow.Succeeds(t, append(args, "--json")...))
	rules, chosen := 0, 0
	for i, r := range rows {
		if r.Rule {
			rules++
		}
		if r.Chosen {
			chosen++
		}
		if r.Ratio < 1 || i > 0 && r.NS < rows[i-1].NS || !strings.Contains(text, r.Plan) {
			t.Errorf("row %d is %+v, after %+v", i, r, rows[max(i-1, 0)])
		}
	}
	for _, want := range []string{"adapt/chain", "adapt/binomial", "nbc/binomial", "adapt/linear", "shape=flat", "shape=sag", "(built-in rule)"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if rules != 1 || chosen != 1 || len(rows) < 20 {
		t.Errorf("of %d rows %d are the rule's, and %d are chosen", len(rows), rules, chosen)
	}
}

func TestTrace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.json")
	tierflow.Succeeds(t, "simulate", "bcast", "--topo", "2x2", "--bytes", "64KiB", "--plan", smallPlan, "--trace", file)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var trace struct {
		Events []struct {
			Name string
			Pid  int
			Args map[string]any
		} `json:"traceEvents"`
	}
	if err := json.Unmarshal(data, &trace); err != nil {
		t.Fatal(err)
	}
	path, sends := 0, 0
	for _, e := range trace.Events {
		if e.Args["cause"] != nil {
			path++
		}
		if strings.HasPrefix(e.Name, "ib#1 send r0>r2") && e.Args["run"] != nil {
			sends++
		}
	}
	if path == 0 || sends != 1 {
		t.Errorf("%d pieces of the critical path, %d sends of ib#1 in\n%.3000s", path, sends, data)
	}
}

func TestLogGOPS(t *testing.T) {
	args := []string{"simulate", "bcast", "--topo", "2x1", "--bytes", "1000", "--json", "--machine", "loggops:L=2500,o=1500,g=1000,G=6,S=65535"}
	r := kittest.Decode[report](t, tierflow.Succeeds(t, args...))
	if want := 1500.0 + 1000 + 6*1000 + 2500 + 1500; r.NS != want || r.Machine != "a machine, LogGOPS parameters L=2500,o=1500,g=1000,G=6,S=65535" {
		t.Errorf("%v ns, want %v: %+v", r.NS, want, r)
	}
}

func TestRefusals(t *testing.T) {
	tierflow.RefusesAll(t, "simulate", map[string]string{
		"allreduce --machine none.json": "--machine: open none.json",
		"allreduce --plan all --path 3": "--plan all: --trace and --path show one plan",
		"bcast --machine loggops:L=1":   "--machine: LogGOPS parameter o is missing",
		"allreduce --path -1":           "--path -1: give a number of lines",
		"allreduce --plan shape=star":   "--plan: ",
		"allreduce --plan i=sm":         "sm works between ranks that share memory",
		"sum":                           "sum",
		"bcast --bytes 4MiB --topo 64x1 --plan shape=flat,fs=64,i=adapt/chain --trace x.json": "a trace has at most 5000000",
	})
}

// A rate counts the blocks of all ranks, as bench coll does, and has a unit that fits.
func TestSimulatedRate(t *testing.T) {
	for args, want := range map[string]string{
		"alltoall --topo 4x2 --bytes 1MiB":       ", 79 MB/s\n",
		"bcast --topo 4x2 --bytes 1B --dtype u8": " kB/s\n",
	} {
		if out := tierflow.Succeeds(t, append([]string{"simulate"}, strings.Fields(args)...)...); !strings.Contains(out, want) {
			t.Errorf("%s: want %q in\n%s", args, want, out)
		}
	}
}

// The machine that a topology of racks lacks begins with the printed one; --set changes a number.
func TestPrintMachine(t *testing.T) {
	folder := t.TempDir()
	topo, file := filepath.Join(folder, "racks.json"), filepath.Join(folder, "m.json")
	racks := `{"levels":[{"name":"node","symbol":"s"},{"name":"rack","symbol":"r"},{"name":"network","symbol":"i"}],
		"ranks":[["a","x"],["a","x"],["b","x"],["c","y"],["d","y"]]}`
	if err := os.WriteFile(topo, []byte(racks), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"simulate", "bcast", "--bytes", "4KiB", "--json", "--topo", topo}
	tierflow.Refuses(t, "--print-machine", args...)
	printed := tierflow.Succeeds(t, "simulate", "--print-machine", "--topo", topo, "--set", "r.latency_ns=10")
	if err := os.WriteFile(file, []byte(printed), 0o600); err != nil {
		t.Fatal(err)
	}
	if m, err := machine.Parse(file, []byte(printed)); err != nil || len(m.Links) != 3 || m.Links[1].Latency != 10 || !strings.Contains(printed, `"gap_ns": 0`) {
		t.Errorf("%v in\n%s", err, printed)
	}
	args = append(args, "--machine", file)
	simulated := func(more ...string) float64 {
		return kittest.Decode[report](t, tierflow.Succeeds(t, append(args, more...)...)).NS
	}
	if as, slow := simulated(), simulated("--set", "i.latency_ns=9e6"); as >= 9e6 || slow < 9e6 {
		t.Errorf("%v ns as printed, %v ns with 9 ms between racks", as, slow)
	}
	tierflow.RefusesAll(t, "simulate", map[string]string{
		"bcast --set i.byte=1":              "--set \"i.byte=1\": there is no key \"byte\"; known are buffer_bytes",
		"bcast --set x.byte_ns=1":           "there is no \"x\"; known are cores, i, s, w",
		"bcast --print-machine":             "argument \"bcast\"",
		"--print-machine --set q.byte_ns=1": "there is no \"q\"",
	})
}
