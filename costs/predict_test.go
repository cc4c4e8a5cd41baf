package costs_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

const lockstep = "shape=han-lockstep,fs=64KiB,w=4,i=adapt/chain,s=sm"

// request is one of so many segments of 64 KiB.
func request(coll tasks.Collective, segments int64) tasks.Request {
	r := tasks.Request{Coll: coll, Type: tasks.Uint8, Count: segments << 16}
	if r.Reduces() {
		r.Op = tasks.Sum
	}
	return r
}

// price puts a cost into the book for each stage of r on each leader: the length of
// the name is its cost, times 10 to the leader's group.
func price(t testing.TB, b *costs.Book, r tasks.Request, topo *levels.Topology, p tasks.Plan) {
	t.Helper()
	h, err := tasks.Hierarchy(r, topo, p)
	if err != nil {
		t.Fatal(err)
	}
	groups := h.Groups(0)
	for _, group := range groups {
		g, err := tasks.Expand(r, topo, p, group.Lead())
		if err != nil {
			t.Fatal(err)
		}
		stages, keys, err := costs.StageKeys(g)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range stages {
			c := costs.Cost{Summary: costs.Summary{N: 1}}
			for group := range groups {
				c.Leaders = append(c.Leaders, float64(len(s.Name))*[]float64{1, 10}[group%2])
			}
			b.Add(keys[i], c)
		}
	}
}

func formula(p costs.Prediction) string {
	var words []string
	for _, t := range p.Terms {
		words = append(words, fmt.Sprintf("%d·%s", t.Count, t.Name))
	}
	return strings.Join(words, " + ")
}

// HAN's equations 3 and 4, term by term, from the graphs of the collectives. With
// fewer segments than phases the pipeline is never full; these are the stages that
// section III-B's figure 5 leaves.
func TestPaperEquations(t *testing.T) {
	for _, test := range []struct {
		coll tasks.Collective
		u    int64
		want string
	}{
		{tasks.Bcast, 1, "1·ib + 1·sb"},
		{tasks.Bcast, 2, "1·ib + 1·sbib + 1·sb"},
		{tasks.Bcast, 3, "1·ib + 2·sbib + 1·sb"},
		{tasks.Bcast, 4, "1·ib + 3·sbib + 1·sb"},
		{tasks.Bcast, 8, "1·ib + 7·sbib + 1·sb"},
		{tasks.Bcast, 3000, "3·ib"},
		{tasks.Allreduce, 1, "1·sr + 1·ir + 1·ib + 1·sb"},
		{tasks.Allreduce, 2, "1·sr + 1·irsr + 1·ibir + 1·sbib + 1·sb"},
		{tasks.Allreduce, 3, "1·sr + 1·irsr + 1·ibirsr + 1·sbibir + 1·sbib + 1·sb"},
		{tasks.Allreduce, 4, "1·sr + 1·irsr + 1·ibirsr + 1·sbibirsr + 1·sbibir + 1·sbib + 1·sb"},
		{tasks.Allreduce, 8, "1·sr + 1·irsr + 1·ibirsr + 5·sbibirsr + 1·sbibir + 1·sbib + 1·sb"},
		{tasks.Reduce, 8, "1·sr + 7·irsr + 1·ir"},
		{tasks.Allgather, 8, "1·sg + 1·iagsg + 6·sbiagsg + 1·sbiag + 1·sb"},
	} {
		topo, p, r := tasktest.Topology(t, "4x2"), tasktest.Plan(t, lockstep), request(test.coll, test.u)
		book := &costs.Book{}
		price(t, book, request(test.coll, min(test.u, 20)), topo, p)
		if test.u > tasks.MaxSegments { // passes, one after the other
			test.want = "2·ib + 2046·sbib + 2·sb + 1·ib + 951·sbib + 1·sb"
		}
		got, err := costs.Predict(r, topo, p, book)
		if err != nil {
			t.Fatal(err)
		}
		if formula(got) != test.want || got.Model != costs.StageModel || got.Segments != test.u {
			t.Errorf("%v in %d segments: %s by %s; want %s", test.coll, got.Segments, formula(got), got.Model, test.want)
		}
		sum := 0.0
		for _, term := range got.Terms {
			sum += float64(term.Count) * 10 * float64(len(term.Name))
		}
		if got.NS != sum || got.Leader != 1 {
			t.Errorf("%v: %v ns on leader %d; want %v on 1, the slowest", r, got.NS, got.Leader, sum)
		}
	}
}

// The formula is that of all stages of the whole graph, one by one: its slow twin.
func TestStagesOneByOne(t *testing.T) {
	for _, spec := range []string{"1", "4", "4x1", "4x2", "2x2x2", "a:3,b:1,c:2", "3x2/rr"} {
		for _, coll := range tasks.Requestable() {
			for _, u := range []int64{1, 2, 3, 5, 17} {
				topo, p, r := tasktest.Topology(t, spec), tasktest.Plan(t, lockstep+",m=sm"), request(coll, u)
				if coll == tasks.Barrier {
					r = tasks.Request{Coll: coll}
				}
				h, err := tasks.Hierarchy(r, topo, p)
				if coll.Scans() && spec == "3x2/rr" && errors.Is(err, tasks.ErrPlan) {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				book := &costs.Book{}
				price(t, book, r, topo, p)
				got, err := costs.Predict(r, topo, p, book)
				if err != nil {
					t.Fatal(err)
				}
				want := 0.0
				for i, group := range h.Groups(0) {
					g, err := tasks.Expand(r, topo, p, group.Lead())
					if err != nil {
						t.Fatal(err)
					}
					stages, err := g.Stages()
					if err != nil {
						t.Fatal(err)
					}
					sum := 0.0
					for _, s := range stages {
						sum += float64(len(s.Name)) * []float64{1, 10}[i%2]
					}
					want = max(want, sum)
				}
				if got.NS != want {
					t.Errorf("%v in %d segments on %s: %v, stage by stage %v", coll, u, spec, got.NS, want)
				}
			}
		}
	}
}

// One segment has no pipeline: a dataflow shape takes what lockstep does.
func TestOneSegmentAlongTheCriticalPath(t *testing.T) {
	topo, book := tasktest.Topology(t, "4x2"), &costs.Book{}
	price(t, book, request(tasks.Allreduce, 1), topo, tasktest.Plan(t, lockstep))
	p := tasktest.Plan(t, strings.Replace(lockstep, "-lockstep", "", 1))
	got, err := costs.Predict(request(tasks.Allreduce, 1), topo, p, book)
	if err != nil {
		t.Fatal(err)
	}
	if got.Model != costs.CriticalModel || formula(got) != "1·sr + 1·ir + 1·ib + 1·sb" || got.NS != 80 {
		t.Errorf("%s = %v by %s", formula(got), got.NS, got.Model)
	}
	_, err = costs.Predict(request(tasks.Allreduce, 2), topo, p, book)
	if !errors.Is(err, costs.ErrUnmeasured) || !strings.Contains(err.Error(), "pipeline shape=han task=allreduce levels=i4,s2 fs=64KiB w=4") {
		t.Errorf("two segments without a pipeline: %v; want the key that is missing", err)
	}
}

func TestFlatAlongTheCriticalPath(t *testing.T) {
	topo, p, book := tasktest.Topology(t, "4x2"), tasktest.Plan(t, "shape=flat,fs=64KiB,w=4,i=adapt/chain"), &costs.Book{}
	r := request(tasks.Bcast, 5)
	g, err := tasks.Expand(r, topo, p, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, keys, err := costs.StageKeys(g)
	if err != nil {
		t.Fatal(err)
	}
	book.Add(keys[0], costs.Cost{Summary: stats.Summarize([]float64{7, 7, 7})})
	got, err := costs.Predict(r, topo, p, book)
	if err != nil || formula(got) != "5·ib" || got.NS != 35 {
		t.Errorf("%s = %v, error %v", formula(got), got.NS, err)
	}
	elsewhere := tasktest.Topology(t, "4x2/rr")
	if _, err := costs.Predict(r, elsewhere, p, book); !errors.Is(err, costs.ErrUnmeasured) {
		t.Errorf("ranks numbered across nodes: %v; a flat shape's costs hold for one layout", err)
	}
}

// uses counts for how many predictions, sizes and collectives each entry of a book serves.
type uses map[costs.Key]*use

type use struct {
	predictions int
	sizes       map[int64]bool
	collectives map[tasks.Collective]bool
}

// add counts a prediction.
func (u uses) add(p costs.Prediction) {
	seen := map[costs.Key]bool{}
	for _, t := range p.Terms {
		if seen[t.Key] {
			continue
		}
		seen[t.Key] = true
		if u[t.Key] == nil {
			u[t.Key] = &use{sizes: map[int64]bool{}, collectives: map[tasks.Collective]bool{}}
		}
		of := u[t.Key]
		of.predictions++
		of.sizes[p.Request.Count], of.collectives[p.Request.Coll] = true, true
	}
}

// Costs don't depend on message sizes and collectives.
func TestReuse(t *testing.T) {
	topo, p, book := tasktest.Topology(t, "4x2"), tasktest.Plan(t, lockstep), &costs.Book{}
	price(t, book, request(tasks.Allreduce, 20), topo, p)
	price(t, book, request(tasks.Bcast, 20), topo, p)
	all := uses{}
	for _, u := range []int64{4, 8, 8, 16} {
		for _, coll := range []tasks.Collective{tasks.Bcast, tasks.Allreduce} {
			predicted, err := costs.Predict(request(coll, u), topo, p, book)
			if err != nil {
				t.Fatal(err)
			}
			all.add(predicted)
		}
	}
	got := map[string]string{}
	for key, u := range all {
		got[key.Task+" "+key.After] = fmt.Sprint(u.predictions, len(u.sizes), len(u.collectives))
	}
	want := map[string]string{
		"ib ": "4 3 1", "sbib ib": "4 3 1", "sb sbib": "8 3 2",
		"sr ": "4 3 1", "irsr sr": "4 3 1", "ibirsr irsr": "4 3 1", "sbibirsr ibirsr": "4 3 1",
		"sbibir sbibirsr": "4 3 1", "sbib sbibir": "4 3 1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("predictions, sizes, collectives by entry (-want +got):\n%s", diff)
	}
}

func TestPredictRefuses(t *testing.T) {
	topo := tasktest.Topology(t, "4x2")
	for _, test := range []struct {
		r    tasks.Request
		plan string
		want string
	}{
		{tasks.Request{Coll: tasks.Bcast, Count: -1, Type: tasks.Uint8}, lockstep, "count -1"},
		{request(tasks.Bcast, 2), "shape=han", "lacks a segment size"},
		{request(tasks.Bcast, 2), lockstep, "has not been measured: shape=han-lockstep task=ib levels=i4,s2 fs=64KiB by=ib:adapt/chain"},
	} {
		_, err := costs.Predict(test.r, topo, tasktest.Plan(t, test.plan), &costs.Book{})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v with %s: error %v, want %q", test.r, test.plan, err, test.want)
		}
	}
	if p, err := costs.Predict(request(tasks.Bcast, 0), topo, tasktest.Plan(t, lockstep), &costs.Book{}); err != nil || p.NS != 0 {
		t.Errorf("no bytes: %+v, %v; want nothing to pay", p, err)
	}
}
