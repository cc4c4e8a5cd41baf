package trials

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/labkit"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// topology parses a topology that is right.
func topology(t *testing.T, spec string) *levels.Topology {
	t.Helper()
	on := tasktest.Topology(t, spec)
	return on
}

// The worst predictions come last, the farthest first, whether they are too long or too short.
func TestRecordingText(t *testing.T) {
	rec := &recording{Cells: []cell{
		{Collective: "bcast", Bytes: 64, Plan: "good", Measured: 1000, Half: 10, Simulated: 1100},
		{Collective: "bcast", Bytes: 64, Plan: "short", Measured: 1000, Simulated: 250},
		{Collective: "bcast", Bytes: 64, Plan: "long", Measured: 1000, Simulated: 3000},
	}}
	rec.Summary = sumUpAccuracy(rec.Cells)
	var text strings.Builder
	if err := labkit.Print(&text, false, rec, labkit.Left, func(w io.Writer) { rec.print(w, 2) }); err != nil {
		t.Fatal(err)
	}
	cells, worst, found := strings.Cut(text.String(), "\nworst predictions:\n")
	if lines := strings.Split(strings.TrimSpace(worst), "\n"); !found || len(lines) != 2 || !strings.HasSuffix(lines[0], "short") || !strings.HasSuffix(lines[1], "long") {
		t.Errorf("the worst are\n%s", worst)
	}
	for _, want := range []string{"bcast       64B    1.0          0.0  1.1           1.10         good", "3 predictions: median error 75.0%"} {
		if !strings.Contains(cells, want) {
			t.Errorf("no %q in\n%s", want, cells)
		}
	}
}

// A row has dashes for what was not measured or has no model.
func TestShareCells(t *testing.T) {
	for _, test := range []struct {
		row  shareRow
		want string
	}{
		{shareRow{"bcast", 64, "p", 3000, 1000, 1500, 4000, 2000, 0}, "bcast 64B 3.0 1.0 1.50 1.5 2.00 4.0 2.0 2.00 p"},
		{shareRow{"alltoall", 64, "p", 3000, 0, 1500, 0, 0, 2}, "alltoall 64B 3.0 - - 1.5 2.00 - - - 2.00 p"},
		{shareRow{"bcast", 64, "p", 3000, 3000, 1500, 0, 0, 0}, "bcast 64B 3.0 3.0 - 1.5 2.00 - - - p"},
	} {
		if got := strings.Join(strings.Fields(strings.Join(test.row.cells(), " ")), " "); got != test.want {
			t.Errorf("%+v: %s, want %s", test.row, got, test.want)
		}
	}
}

// The first plan has one segment, and trees for chains unless chains are given; the second one is as
// the rule cuts, if it does.
func TestSharePlans(t *testing.T) {
	b, on := &benchShare{}, topology(t, "4x2")
	for _, test := range []struct {
		bytes   int64
		forced  string
		plans   int
		between string // the algorithm of the first plan's bcast between nodes
	}{
		{4 << 20, "", 2, "adapt/binomial"},
		{64, "", 1, ""}, // whatever the rule has for a plan in one segment
		{4 << 20, "i=adapt/chain", 2, "adapt/chain"},
		{4 << 20, "fs=all", 1, "adapt/binomial"},
	} {
		forced, err := tasks.ParseForced(test.forced)
		if err != nil {
			t.Fatal(err)
		}
		plans, err := b.plans(labkit.Request(tasks.Bcast, test.bytes), on, forced)
		if err != nil || len(plans) != test.plans || plans[0].Segment != tasks.Whole || test.plans > 1 && plans[1].Segment >= test.bytes {
			t.Errorf("%+v: %v, %v", test, plans, err)
			continue
		}
		if !strings.Contains(plans[0].String(), "="+test.between) {
			t.Errorf("%+v: first %v", test, plans[0])
		}
	}
}

// Leaders are one rank of each node. One node has none.
func TestPickLeaders(t *testing.T) {
	if ranks, err := pickLeaders(topology(t, "3x2")); err != nil || !slices.Equal(ranks, []levels.Rank{0, 2, 4}) {
		t.Errorf("%v, %v", ranks, err)
	}
	if ranks, err := pickLeaders(topology(t, "4x2/rr")); err != nil || !slices.Equal(ranks, []levels.Rank{0, 1, 2, 3}) {
		t.Errorf("round robin: %v, %v", ranks, err)
	}
	if _, err := pickLeaders(topology(t, "1x4")); err == nil {
		t.Error("a node by itself has leaders")
	}
}

// How much of the shorter task is hidden is told if it is long enough.
func TestHiddenText(t *testing.T) {
	for _, test := range []struct {
		a, b, together float64
		want           string
	}{{100, 50, 100, "100%"}, {100, 50, 150, "0%"}, {50, 100, 125, "50%"}, {100, 9, 100, "-"}} {
		if got := hiddenText(test.a, test.b, test.together); got != test.want {
			t.Errorf("%v and %v in %v: %s, want %s", test.a, test.b, test.together, got, test.want)
		}
	}
	if at([]float64{3}, 0) != 3 || at([]float64{3}, 1) != 0 || at(nil, 0) != 0 {
		t.Error("values beyond the end")
	}
}

// A collective without data has one request, others one for each size.
func TestReadWork(t *testing.T) {
	read := func(operand string, args ...string) ([]tasks.Request, error) {
		p := &kit.Problem{}
		var all []tasks.Request
		c := &cobra.Command{SilenceErrors: true, SilenceUsage: true, RunE: func(c *cobra.Command, _ []string) (err error) {
			if p.Job, err = p.ReadGoroutines(); err == nil {
				all, err = readWork(p, operand)
			}
			return err
		}}
		p.AddJobFlags(c)
		p.AddRequestFlags(c, "64,1KiB", "sizes")
		c.SetArgs(append([]string{"--topo", "2x2"}, args...))
		err := c.Execute()
		return all, err
	}
	for _, test := range []struct {
		args string
		want string // numbers of bytes, or an error
	}{
		{"bcast", "[64 1024]"},
		{"bcast,barrier,reduce", "[64 1024 0 64 1024]"},
		{"bcast --bytes 8", "[8]"},
		{"bcast --bytes x", "--bytes: "},
		{"nosuch", "nosuch"},
		{"allreduce --root 1", "--root: allreduce has no such thing"},
		{"bcast --root 9", "root"},
	} {
		words := strings.Fields(test.args)
		all, err := read(words[0], words[1:]...)
		got := fmt.Sprint(err)
		if err == nil {
			var bytes []int64
			for _, r := range all {
				bytes = append(bytes, r.Bytes())
			}
			got = fmt.Sprint(bytes)
		}
		if !strings.Contains(got, test.want) {
			t.Errorf("%s: %s, want %s", test.args, got, test.want)
		}
	}
}
