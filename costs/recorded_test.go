package costs_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"text/tabwriter"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/dag/dagtest"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// recorded is a collective that was measured as a whole, beside the book.
type recorded struct {
	Collective string        `json:"collective"`
	Plan       string        `json:"plan"`
	Bytes      int64         `json:"bytes"` // of f32, summed up
	Time       costs.Summary `json:"time"`
}

func readRecording(t *testing.T) (*costs.Book, []recorded) {
	t.Helper()
	read := func(name string) []byte {
		data, err := os.ReadFile("../testdata/costs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	book, err := costs.Load("4x2.json", read("4x2.json"))
	if err != nil {
		t.Fatal(err)
	}
	var measured []recorded
	if err := json.Unmarshal(read("4x2_measured.json"), &measured); err != nil {
		t.Fatal(err)
	}
	return book, measured
}

func (r recorded) request(t *testing.T) tasks.Request {
	t.Helper()
	coll, err := tasks.ParseCollective(r.Collective)
	if err != nil {
		t.Fatal(err)
	}
	request := tasks.Request{Coll: coll, Type: tasks.Float32, Count: r.Bytes / 4}
	if request.Reduces() {
		request.Op = tasks.Sum
	}
	return request
}

// Figures 4 and 7 of the paper in numbers: what a recorded book predicts beside
// what was measured.
func TestRecordedPredictions(t *testing.T) {
	book, measured := readRecording(t)
	topo := tasktest.Topology(t, "4x2")
	var out bytes.Buffer
	all := uses{}
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "collective\tbytes\tmodel\tpredicted µs\tmeasured µs\terror\t plan")
	for _, m := range measured {
		p, err := costs.Predict(m.request(t), topo, tasktest.Plan(t, m.Plan), book)
		if err != nil {
			t.Fatal(err)
		}
		all.add(p)
		fmt.Fprintf(w, "%s\t%s\t%s\t%.0f\t%.0f\t%+.0f%%\t %s\n", m.Collective, tasks.FormatBytes(m.Bytes), p.Model,
			p.NS/1e3, m.Time.P50/1e3, 100*(p.NS/m.Time.P50-1), m.Plan)
	}
	w.Flush()
	for _, key := range slices.SortedFunc(maps.Keys(all), costs.Key.Compare) {
		u := all[key]
		fmt.Fprintf(&out, "used for %d predictions, %d sizes, %d collectives: %v\n", u.predictions, len(u.sizes), len(u.collectives), key)
	}
	dagtest.Golden(t, "../testdata/costs/4x2_predictions.txt", out.Bytes())
}

// What predictions are for is the choice: what they find best is nearly so.
func TestRecordedChoices(t *testing.T) {
	book, measured := readRecording(t)
	topo := tasktest.Topology(t, "4x2")
	type problem struct {
		coll  string
		bytes int64
	}
	by := map[problem][]recorded{}
	for _, m := range measured {
		by[problem{m.Collective, m.Bytes}] = append(by[problem{m.Collective, m.Bytes}], m)
	}
	for which, all := range by {
		predicted := func(m recorded) float64 {
			p, err := costs.Predict(m.request(t), topo, tasktest.Plan(t, m.Plan), book)
			if err != nil {
				t.Fatal(err)
			}
			return p.NS
		}
		chosen := slices.MinFunc(all, func(a, b recorded) int { return cmp.Compare(predicted(a), predicted(b)) })
		best := slices.MinFunc(all, func(a, b recorded) int { return cmp.Compare(a.Time.P50, b.Time.P50) })
		if chosen.Time.P50 > 1.3*best.Time.P50 {
			t.Errorf("%v: %s was predicted best and took %.0f µs; %s took %.0f", which, chosen.Plan, chosen.Time.P50/1e3, best.Plan, best.Time.P50/1e3)
		}
	}
}
