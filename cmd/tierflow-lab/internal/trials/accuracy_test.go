package trials

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
)

// A recording is measured once and simulated again as often as wanted.
func TestAccuracy(t *testing.T) {
	args := "accuracy bcast,allreduce --topo 2x2 --bytes 64,64KiB --machine assumed --time 1ms --plans 3 --json"
	text := lab.Run(t, strings.Fields(args)...).Out
	rec := kittest.Decode[recording](t, text)
	if len(rec.Cells) < 12 || rec.Topology != "2x2" || rec.Summary.Cells != len(rec.Cells) || rec.Summary.Sizes != 4 {
		t.Errorf("%+v", rec)
	}
	for _, c := range rec.Cells {
		if c.Measured <= 0 || c.Simulated <= 0 {
			t.Errorf("%+v", c)
		}
	}
	file := filepath.Join(t.TempDir(), "recording.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if again := lab.Succeeds(t, "accuracy", "--from", file, "--json"); again != text {
		t.Errorf("simulated again\n%s\nbefore\n%s", again, text)
	}
	if table := lab.Succeeds(t, "accuracy", "--from", file, "--worst", "2"); strings.Count(table, rec.Cells[0].Plan) == 0 || !strings.Contains(table, "worst predictions") {
		t.Errorf("no table in\n%s", table)
	}
}

func TestAccuracyRefusals(t *testing.T) {
	file := filepath.Join(t.TempDir(), "recording.json")
	if err := os.WriteFile(file, []byte(`{"topology": "2x2", "cell": []}`), 0o600); err != nil {
		t.Fatal(err)
	}
	lab.RefusesAll(t, "accuracy", map[string]string{
		"bcast":                             "--machine: give a file",
		"bcast --machine nowhere.json":      "--machine: open nowhere.json",
		"bcast --machine assumed --plans 0": "--plans 0: give 1 to",
		"bcast --machine assumed --time 0s": "--time 0s: must be above 0",
		"--machine assumed":                 "give collectives such as bcast,allreduce",
		"bcast --from x.json":               "with --from the recording says",
		"--from nowhere.json":               "--from: open nowhere.json",
		"--from " + file:                    `unknown field "cell"`,
	})
}

func TestSumUpAccuracy(t *testing.T) {
	cells := []cell{
		{Collective: "bcast", Bytes: 64, Measured: 100, Simulated: 150},
		{Collective: "bcast", Bytes: 64, Measured: 200, Simulated: 200},
		{Collective: "bcast", Bytes: 64, Measured: 300, Simulated: 300},
		{Collective: "bcast", Bytes: 1 << 20, Measured: 100, Simulated: 110},
		{Collective: "bcast", Bytes: 1 << 20, Measured: 200, Simulated: 100},
		{Collective: "bcast", Bytes: 1 << 20, Measured: 300, Simulated: 303},
	}
	a := sumUpAccuracy(cells)
	want := accuracy{Cells: 6, Median: 0.055, LargeCells: 3, LargeMedian: 0.1, Within: 0.6667, Sizes: 2, Rank: 0.75, RankLeast: 0.5, RankHigh: 0.5}
	if a != want {
		t.Errorf("%+v, want %+v", a, want)
	}
	same := []cell{{Measured: 100, Simulated: 200}, {Measured: 101, Simulated: 300}, {Measured: 102, Simulated: 400}}
	if r := rankCorrelation(same); r != 1 {
		t.Errorf("plans that take equal times have a rank correlation of %v", r)
	}
	if r := rankCorrelation([]cell{{Measured: 1, Simulated: 3}, {Measured: 2, Simulated: 2}, {Measured: 3, Simulated: 1}}); math.Abs(r+1) > 1e-9 {
		t.Errorf("reversed: %v", r)
	}
}
