package costs_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// The segments of a cut have the bytes of the message, and the last one is no longer than the others.
func TestCutOf(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		r := tasktest.Request(tasks.Bcast, 4*rng.Int64N(1<<rng.IntN(24)+1))
		p := tasks.Plan{Shape: tasks.Han, Segment: 1 + rng.Int64N(1<<rng.IntN(24)+1), Window: 4}
		c := costs.CutOf(r, p)
		if c.Segments < 1 || c.Last <= 0 || c.Last > 1 {
			t.Fatalf("%v by %v: %+v", r, p, c)
		}
		if sum := (float64(c.Segments-1) + c.Last) * float64(c.Bytes); math.Abs(sum-float64(r.Bytes())) > 0.5 {
			t.Errorf("%v by %v: %+v has %.1f bytes", r, p, c, sum)
		}
	}
}

// Each further segment of a pass adds its time, the last one in part. A second pass fills the pipeline again.
func TestTimeOfACut(t *testing.T) {
	const most = tasks.MaxSegments
	for _, test := range []struct {
		segments int64
		last     float64
		want     float64
	}{
		{1, 1, 100},
		{1, 0.25, 100},
		{2, 1, 110},
		{2, 0.5, 105},
		{5, 0.5, 135},
		{most, 1, 100 + 10*(most-1)},
		{most + 1, 1, 200 + 10*(most-1)},
		{2*most + 2, 0.5, 305 + 20*(most-1)},
	} {
		c := costs.Cut{Bytes: 1000, Segments: test.segments, Last: test.last}
		if got := c.Time(100, 10); math.Abs(got-test.want) > 1e-6 {
			t.Errorf("%+v takes %v, want %v", c, got, test.want)
		}
	}
}

// fillUnits puts a time for each unit of a plan into a book: fill for one segment of one phase, and half of
// that for each further segment.
func fillUnits(t *testing.T, book *costs.Book, units []costs.Unit, fill float64) {
	t.Helper()
	for _, u := range units {
		n := u.Segments(0)
		done := make([]float64, n)
		for i := range done {
			done[i] = fill * float64(len(u.Phases)) * (1 + float64(i)/2)
		}
		book.AddPipeline(u.Key, costs.Pipeline{
			Whole: costs.Summary{N: 1}, Segments: int(n), Phases: len(u.Phases),
			Leaders: []costs.Completion{costs.NewCompletion(done[0], done, done[n-1], max(u.Key.Window, 1))},
		})
	}
}

// A message takes the fill of all phases and, for each further segment, the slowest level.
func TestPredictionByTasks(t *testing.T) {
	on, plan := tasktest.Topology(t, "4x2"), tasktest.Plan(t, "shape=han,fs=64KiB,w=4,i=adapt/chain,s=sm")
	m, err := costs.MakeupOf(request(tasks.Bcast, 20), on, plan)
	if err != nil {
		t.Fatal(err)
	}
	book := &costs.Book{}
	priced := m.On(book)
	if u, missing := priced.Missing(true); !missing || u.Key != m.Singles[0].Key {
		t.Errorf("of an empty book %v is missing, %t", u.Key, missing)
	}
	fillUnits(t, book, m.Singles, 1000)
	if u, missing := priced.Missing(true); !missing || u.Key != m.Flows[0][0].Key {
		t.Errorf("without flows %v is missing, %t", u.Key, missing)
	}
	if _, missing := priced.Missing(false); missing {
		t.Error("one segment needs no flows")
	}
	if _, err := costs.PredictByTasks(request(tasks.Bcast, 20), on, plan, book); !errors.Is(err, costs.ErrUnmeasured) || !strings.Contains(err.Error(), m.Flows[0][0].Key.String()) {
		t.Errorf("without flows: %v", err)
	}
	fillUnits(t, book, m.Units(), 1000)
	for _, segments := range []int64{1, 2, 7, 20, 3000} {
		r := request(tasks.Bcast, segments)
		cut := costs.CutOf(r, plan)
		ns, known := priced.NS(cut)
		fill, _ := priced.Fill(cut.Bytes)
		each, _ := priced.Each(cut.Bytes)
		if !known || fill != 1000*float64(len(m.Singles)) || !(each > 0) || ns != cut.Time(fill, each) {
			t.Errorf("%v: %v ns of %v and %v, known %t", r, ns, fill, each, known)
		}
		p, err := costs.PredictByTasks(r, on, plan, book)
		if err != nil || math.Abs(p.NS-ns) > 1e-6*ns || p.Model != costs.TaskModel || p.Segments != segments {
			t.Errorf("%v: %+v, %v; want %v ns", r, p, err, ns)
		}
		sum := 0.0
		for _, term := range p.Terms {
			sum += float64(term.Count) * term.NS
		}
		if math.Abs(sum-p.NS) > 1e-6*p.NS {
			t.Errorf("%v: terms of %v ns make up %v", r, p.NS, sum)
		}
	}
}

// All phases measured together serve in place of the units by themselves.
func TestPredictionByTasksTogether(t *testing.T) {
	on, plan := tasktest.Topology(t, "4x2"), tasktest.Plan(t, "shape=han,fs=64KiB,w=4,i=adapt/chain,s=sm")
	r := request(tasks.Bcast, 10)
	m, err := costs.MakeupOf(r, on, plan)
	if err != nil {
		t.Fatal(err)
	}
	book := &costs.Book{}
	priced := m.On(book)
	if _, _, known := priced.Together(64 << 10); known {
		t.Error("an empty book knows the phases together")
	}
	fillUnits(t, book, []costs.Unit{m.One, m.Many}, 1000)
	first, each, known := priced.Together(64 << 10)
	if !known || first != 2000 || math.Abs(each-1000) > 1e-9 {
		t.Errorf("together the first segment takes %v ns and each further one %v, known %t", first, each, known)
	}
	if _, _, known := priced.Together(32 << 10); known {
		t.Error("a size that was not measured is known")
	}
	if p, err := costs.PredictByTasks(r, on, plan, book); err != nil || math.Abs(p.NS-(2000+9*1000)) > 1e-6 {
		t.Errorf("%+v, %v", p, err)
	}
}

// A unit is measured with enough segments to see its pace, and with no more bytes than a measurement takes.
func TestSegmentsOfUnits(t *testing.T) {
	on := tasktest.Topology(t, "4x2")
	for _, text := range []string{"shape=han,fs=4KiB,w=4,i=adapt/chain,s=sm", "shape=han,fs=1MiB,w=8,i=adapt/binomial,s=sm", "shape=han-lockstep,fs=64KiB,w=2,i=adapt/chain,s=sm"} {
		plan := tasktest.Plan(t, text)
		m, err := costs.MakeupOf(tasktest.Request(tasks.Allreduce, 64<<20), on, plan)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range m.Singles {
			if n := u.Segments(0); n != 1 || u.Plan(plan).Window != 1 {
				t.Errorf("%s: %v has %d segments", text, u.Key, n)
			}
		}
		for _, u := range append(m.On(&costs.Book{}).Flows(), m.Many) {
			n, few := u.Segments(0), int64(costs.Extra+len(u.Phases))
			if n < few || n > few && n*u.Key.Segment > 1<<20 && n > 4*int64(u.Key.Window) {
				t.Errorf("%s: %v has %d segments of %d bytes", text, u.Key, n, u.Key.Segment)
			}
			if p := u.Plan(plan); p.Segment != u.Key.Segment || p.Window != u.Key.Window {
				t.Errorf("%s: %v is measured by %v", text, u.Key, p)
			}
			if more := u.Segments(1 << 20); more < n {
				t.Errorf("%s: %v has %d segments for long messages, %d for unknown ones", text, u.Key, more, n)
			}
		}
	}
}
