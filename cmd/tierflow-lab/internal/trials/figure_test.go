package trials

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/bench"
	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/submodules/all"
)

// measure is the commands of tierflow bench.
var measure kittest.Runner = func() *cobra.Command { return kit.NewRoot("bench", "", bench.Commands(all.Submodules())...) }

// What tierflow bench prints is drawn.
func TestFigureOfBench(t *testing.T) {
	dir := t.TempDir()
	file, svg := filepath.Join(dir, "a.json"), filepath.Join(dir, "a.svg")
	for line, want := range map[string][]string{
		"coll bcast,reduce --topo 8x3 --bytes 64KiB --root all/5": {">8x3<", ">root<", ">20<", "bcast of 64KiB: slowest root to fastest", "reduce of 64KiB", ">chosen<", ">flat<"},
		"coll bcast,reduce --topo 8x3 --bytes 4,64KiB --root all": {">bytes<", ">64KiB<", ">bcast<"},
		"coll allreduce --topo 4x2 --plan shape=han,fs=64KiB":     {">bytes<", ">8B<", ">4MiB<", ">han fs=64KiB<"},
		"task sbib --topo 12x2 --plan i=adapt/chain":              {">sbib, segments of 64KiB, 12x2<", ": settled from", "occurrence", ">r0<", "µs"},
	} {
		text := measure.Run(t, strings.Fields(line+" --simulate assumed --json")...).Out
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		lab.Succeeds(t, "figure", file, "-o", svg)
		kittest.CheckDrawing(t, svg, want...)
	}
	text := measure.Run(t, strings.Fields("task ib --topo 4x2 --simulate assumed --json")...).Out
	if _, err := drawFile([]byte(text)); err == nil || !strings.Contains(err.Error(), "ib occurs once") {
		t.Errorf("of a task that occurs once: %v", err)
	}
}

// Curves of programs are drawn. What can't be is an error.
func TestDrawFile(t *testing.T) {
	svg, err := drawFile([]byte(`{"title": "bits", "x": "step", "y": "bits", "series": [{"name": "mean", "values": [3, 2.5]}]}`))
	if err != nil || !strings.Contains(string(svg), ">bits<") || !strings.Contains(string(svg), ">step<") {
		t.Errorf("%v: %s", err, svg)
	}
	for text, want := range map[string]string{
		`{}`:                              "nothing to draw",
		`{"results": []}`:                 "nothing to draw",
		`{"results": [{}]}`:               "nothing to draw",
		`{"results": [{"task": "sbib"}]}`: "sbib occurs once",
		`{"results": [{"task": "sbib", "leader_ranks": [0], "series": [{"leader": 1, "ns": [1, 2]}]}]}`: "leader 1; there are 1",
		`{"results": 1}`: "cannot unmarshal",
		`# 4x2`:          "invalid character",
	} {
		if _, err := drawFile([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
}

// A figure of sizes has a point for each row and a gap where a plan was not measured with a size. Of
// roots it has a line with as many points as there are roots. Streams are not drawn. What was chosen is one line, of
// whatever shapes.
func TestDrawRows(t *testing.T) {
	var rows []bench.Result
	err := json.Unmarshal([]byte(`[
		{"collective": "wire", "shape": "tcp", "bytes": 8},
		{"collective": "bcast", "shape": "han", "bytes": 8, "p50_us": 1, "min_us": 0.5, "p99_us": 3},
		{"collective": "bcast", "shape": "flat", "bytes": 8, "p50_us": 2, "asked": "shape=flat"},
		{"collective": "bcast", "shape": "ar", "bytes": 64, "p50_us": 4},
		{"collective": "bcast", "shape": "ar", "bytes": 64, "p50_us": 5, "tls": "job"},
		{"collective": "bcast", "shape": "tcp", "bytes": 512, "p50_us": 4},
		{"collective": "reduce", "shape": "han", "bytes": 8, "roots": {"p50_us": [1, 2, 4, 8], "max_to_min": 8, "every": 2}}]`), &rows)
	if err != nil {
		t.Fatal(err)
	}
	f := drawRows("2x2", rows)
	if len(f.Plots) != 2 {
		t.Fatalf("%d panels, want one of sizes and one of roots", len(f.Plots))
	}
	sizes, roots := f.Plots[0], f.Plots[1]
	if len(sizes.Names) != 2 || len(sizes.Series) != 3 || !slices.Equal(sizes.Series[0].Values, []float64{1, 4}) || sizes.Series[0].Low[0] != 0.5 || sizes.Series[0].High[0] != 3 || !math.IsNaN(sizes.Series[1].Values[1]) {
		t.Errorf("%+v", sizes)
	}
	if len(roots.Series) != 1 || len(roots.Series[0].Values) != 4 || roots.Step != 2 || !strings.Contains(roots.Title, "slowest root to fastest 8.00") {
		t.Errorf("%+v", roots)
	}
}

// Of few leaders all are drawn, of many as many as can be told apart, the first among them.
func TestDrawnLeaders(t *testing.T) {
	for n := range 100 {
		drawn := drawnLeaders(n)
		if len(drawn) != min(n, mostDrawn) || !slices.IsSorted(drawn) || len(slices.Compact(slices.Clone(drawn))) != len(drawn) {
			t.Errorf("of %d leaders %v are drawn", n, drawn)
		}
		if n > 0 && (drawn[0] != 0 || drawn[len(drawn)-1] >= n) {
			t.Errorf("of %d leaders %v are drawn", n, drawn)
		}
	}
}

// A title says of a plan what decides the kinds of tasks that are drawn.
func TestPlanTitle(t *testing.T) {
	for _, test := range []struct {
		plan  string
		names []string
		want  string
	}{
		{"shape=han,fs=64KiB,i=adapt/chain,s=sm", []string{"sbib"}, "i=adapt/chain s=sm"},
		{"shape=han,i=adapt/chain,sb=sm,sr=solo", []string{"sbib"}, "i=adapt/chain sb=sm"},
		{"shape=han,i=adapt/chain,s=sm", []string{"ib", "sb"}, "i=adapt/chain s=sm"},
		{"shape=han", []string{"ib"}, ""},
		{"no plan", []string{"ib"}, "no plan"},
	} {
		got := strings.Fields(planTitle(test.plan, test.names...))
		slices.Sort(got)
		if text := strings.Join(got, " "); test.plan != "no plan" && text != test.want || test.plan == "no plan" && planTitle(test.plan) != test.want {
			t.Errorf("%s, %v: %q; want %q", test.plan, test.names, text, test.want)
		}
	}
}
