package choose_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/plans"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// On a known machine a plan that a table only predicts is left to the machine's prices, and measured ones decide.
func TestPredictedEntries(t *testing.T) {
	const measured, predicted = table.FromMeasured, table.FromPredicted
	known := &choose.Machine{Machine: machine.Assumed(), Origin: "assumed"}
	on := tasktest.Topology(t, "8x2")
	var listed []tasks.Plan
	for _, ib := range []string{"nbc/linear", "nbc/binomial", "adapt/chain"} { // the fastest one first
		listed = append(listed, tasktest.Plan(t, "shape=han,fs=all,w=1,sb=sm/rings,ib="+ib))
	}
	const own, linear, binomial, chain = -1, 0, 1, 2
	finished := table.Provenance{Method: "tasks"}
	const leaves, left = "some.json leaves it open: ", "table: plans that it only predicts are left out"
	for _, test := range []struct {
		what   string
		made   table.Provenance
		known  *choose.Machine
		forced string
		times  [3]float64          // of the plans, as shares of what they take
		from   map[int64][3]string // by bytes
		want   map[int64]int       // by bytes of a request
		says   map[int64]string    // of a part of these
	}{
		{
			"all is predicted", finished, known, "",
			[3]float64{3, 3, 1},
			map[int64][3]string{64: {predicted, predicted, predicted}},
			map[int64]int{64: own, 32: own},
			map[int64]string{64: leaves + "it only predicts here, and the prices of this machine decide\n"},
		},
		{
			"no machine", finished, nil, "",
			[3]float64{9, 9, 1},
			map[int64][3]string{64: {predicted, predicted, predicted}},
			map[int64]int{64: chain},
			map[int64]string{64: "table: some.json, of single calls\n"},
		},
		{
			"a machine that could not be measured", finished, &choose.Machine{Why: "only ranks can"}, "",
			[3]float64{9, 9, 1},
			map[int64][3]string{64: {predicted, predicted, predicted}},
			map[int64]int{64: chain},
			nil,
		},
		{
			"made to predict",
			table.Provenance{Method: table.Models},
			known, "",
			[3]float64{9, 9, 1},
			map[int64][3]string{64: {predicted, predicted, predicted}},
			map[int64]int{64: chain},
			nil,
		},
		{
			"all is measured", finished, known, "",
			[3]float64{9, 9, 1},
			map[int64][3]string{64: {measured, measured, measured}},
			map[int64]int{64: chain},
			nil,
		},
		{
			"the fastest is measured", finished, known, "",
			[3]float64{9, 9, 1},
			map[int64][3]string{64: {predicted, predicted, measured}},
			map[int64]int{64: chain},
			nil,
		},
		{
			"two are measured", finished, known, "",
			[3]float64{2, 2, 0.1},
			map[int64][3]string{64: {measured, measured, predicted}},
			map[int64]int{64: linear},
			map[int64]string{64: left},
		},
		{
			"a slow one is measured", finished, known, "",
			[3]float64{0.1, 0.1, 2},
			map[int64][3]string{64: {predicted, predicted, measured}},
			map[int64]int{64: own},
			map[int64]string{64: leaves + "the fastest plan that it has measured takes "},
		},
		{
			"a slow one is measured before the search was cut short",
			table.Provenance{Method: "exhaustive", Configurations: 1, Planned: 99},
			known, "",
			[3]float64{9, 9, 2},
			map[int64][3]string{64: {predicted, predicted, measured}},
			map[int64]int{64: own},
			map[int64]string{64: leaves + "the fastest plan that it has measured takes "},
		},
		{
			"the best is measured before the search was cut short",
			table.Provenance{Method: "exhaustive", Configurations: 2, Planned: 99},
			known, "",
			[3]float64{2, 2, 9},
			map[int64][3]string{64: {measured, measured, predicted}},
			map[int64]int{64: linear},
			map[int64]string{64: left},
		},
		{
			"between sizes", finished, known, "",
			[3]float64{4, 1, 0.1},
			map[int64][3]string{64: {measured, measured, measured}, 256: {measured, measured, predicted}, 1024: {predicted, predicted, predicted}},
			map[int64]int{64: chain, 128: binomial, 256: binomial, 512: own, 1024: own},
			map[int64]string{128: left, 512: leaves + "it only predicts here"},
		},
		{
			"forced words", finished, known, "ib=adapt/chain",
			[3]float64{1, 1, 1},
			map[int64][3]string{64: {measured, measured, predicted}},
			map[int64]int{64: own},
			map[int64]string{64: leaves + "it only predicts here"},
		},
		{
			"a forced order, of which the machine knows nothing", finished, known, "order=tree",
			[3]float64{9, 9, 1},
			map[int64][3]string{64: {predicted, predicted, predicted}},
			map[int64]int{64: chain},
			nil,
		},
	} {
		made := &table.Table{Version: table.Version, Provenance: test.made}
		for bytes, from := range test.from {
			r := tasktest.Request(tasks.Bcast, bytes)
			var times []float64
			for i, p := range listed {
				times = append(times, test.times[i]*drawn{r, on, known}.simulate(t, p))
			}
			made.Entries = append(made.Entries, tableOf(t, r, on, listed, times, from[:]...).Entries...)
		}
		made.Sort()
		forced, err := tasks.ParseForced(test.forced)
		if err != nil {
			t.Fatal(err)
		}
		for bytes, want := range test.want {
			r := tasktest.Request(tasks.Bcast, bytes)
			q, err := choose.Ask(r, on, all.Submodules(), "")
			if err != nil {
				t.Fatal(err)
			}
			prices := choose.Chain{choose.Forced{Plans: forced}, cmp.Or(test.known, &choose.Machine{}), choose.Rule{}}
			d, err := slices.Insert(slices.Clone(prices), 1, choose.Chooser(&choose.Table{Table: made, Origin: "some.json", Machine: test.known})).Choose(q)
			if err != nil {
				t.Fatal(err)
			}
			text := d.Explain(builtin.Ask(r, on), all.Submodules())
			wanted, err := prices.Choose(q)
			if want != own {
				wanted.Plan = forced.For(r.Coll).Over(listed[want])
			}
			name := func(p tasks.Plan) tasks.Plan {
				return table.Canonical(plans.Named(builtin.Ask(r, on), p, all.Submodules()), r.Bytes())
			}
			if err != nil || !name(d.Plan).Equal(name(wanted.Plan)) || !strings.Contains(text, test.says[bytes]) {
				t.Errorf("%s, %d bytes: want %v, and %q\n%s", test.what, bytes, wanted.Plan, test.says[bytes], text)
			}
			if _, known := d.FromTable().Plan(); known != (want != own) {
				t.Errorf("%s, %d bytes: from the table: %v", test.what, bytes, known)
			}
		}
	}
}
