package costs_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/costs"
)

// broken are books with what is wrong with them.
var broken = []struct{ name, text, want string }{
	{"syntax", "{\n\"costs\": [}", "book.json:2: invalid character '}'"},
	{"nothing", "", "book.json:1: unexpected end of JSON input"},
	{"array", "\n[]", "book.json:2: a book must be an object"},
	{"missing", `{"costs": []}`, `book.json:1: key "provenance" is missing; a book needs provenance, costs, pipelines
book.json:1: key "pipelines" is missing; a book needs provenance, costs, pipelines`},
	{"unknown", "{\"provenance\": {},\n\"colour\": {}, \"costs\": [], \"pipelines\": []}", `book.json:2: unknown key "colour" in a book; known are provenance, costs, pipelines`},
	{"twice", "{\"provenance\": {}, \"costs\": [],\n \"costs\": [], \"pipelines\": []}", `book.json:2: key "costs" is given twice`},
	{"no array", "{\"provenance\": {}, \"pipelines\": [],\n\"costs\": {\"a\": 1}}", `book.json:2: "costs" must be an array`},
	{"field", one(`"key": "` + good + `", "n": 1, "middle_ns": 3`), `book.json:3: a cost: unknown key "middle_ns"`},
	{"type", one(`"key": "` + good + `", "n": "many"`), `book.json:3: a cost: "n" is a string`},
	{"no key", one(`"n": 1`), "book.json:3: key is missing"},
	{"bad key", one(`"key": "shape=han"`), `book.json:3: key "shape=han": task= is missing`},
	{"no samples", one(`"key": "` + good + `"`), "book.json:3: n 0, outliers 0"},
	{"order", one(`"key": "` + good + `", "n": 2, "min_ns": 3, "p50_ns": 2, "p95_ns": 4, "max_ns": 4, "mean_ns": 3`), "book.json:3: min 3, p50 2"},
	{"negative", one(`"key": "` + good + `", "n": 1, "leaders_ns": [1, -1]`), "book.json:3: leaders_ns: -1"},
	{"same key", one(`"key": "` + good + `", "n": 1}, {"key": "` + good + `", "n": 1`), "book.json:3: key \"" + good + "\" is given twice"},
	{"pipeline", "{\"provenance\": {}, \"costs\": [], \"pipelines\": [\n{\"key\": \"" + good + "\", \"whole\": {\"n\": 1}, \"segments\": 2, \"phases\": 2, \"leaders\": [{\"done_ns\": [1]}]}]}", "book.json:2: leader 0: 1 times for 2 segments"},
}

const good = "shape=han-lockstep task=ib levels=i4,s2 fs=64KiB by=ib:adapt/chain"

// one is a book with one cost, on line 3.
func one(cost string) string {
	return "{\"provenance\": {},\n\"costs\": [\n{" + cost + "}],\n\"pipelines\": []}"
}

func TestLoadRefuses(t *testing.T) {
	for _, test := range broken {
		_, err := costs.Load("book.json", []byte(test.text))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v\nwant %s", test.name, err, test.want)
		}
	}
	entry := `{"key": "` + good + `"}`
	_, err := costs.Load("book.json", []byte(`{"provenance": {}, "pipelines": [], "costs": [`+strings.Repeat(entry+",", 99)+entry+"]}"))
	if n := strings.Count(err.Error(), "\n"); n != 10 {
		t.Errorf("%d lines of complaints about a hundred errors", n+1)
	}
}

func TestBookReadsBack(t *testing.T) {
	data, err := os.ReadFile("../testdata/costs/4x2.json")
	if err != nil {
		t.Fatal(err)
	}
	book, err := costs.Load("4x2.json", data)
	if err != nil {
		t.Fatal(err)
	}
	first, err := json.Marshal(book)
	if err != nil {
		t.Fatal(err)
	}
	back, err := costs.Load("again", first)
	if err != nil {
		t.Fatal(err)
	}
	second, err := json.Marshal(back)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(first), string(second)); diff != "" {
		t.Error(diff)
	}
	if len(book.Keys()) == 0 || len(book.PipelineKeys()) == 0 {
		t.Errorf("%d costs, %d pipelines", len(book.Keys()), len(book.PipelineKeys()))
	}
}

// The first measurement stays; of pipelines the longest.
func TestAdd(t *testing.T) {
	var b costs.Book
	key, err := costs.ParseKey(good)
	if err != nil {
		t.Fatal(err)
	}
	if !b.Add(key, costs.Cost{Leaders: []float64{1}}) || b.Add(key, costs.Cost{Leaders: []float64{2}}) {
		t.Error("the second cost is new, or the first is not")
	}
	if c, _ := b.Cost(key); c.Leaders[0] != 1 {
		t.Errorf("cost %v; the first must stay", c)
	}
	for _, n := range []int{3, 2, 10, 9} {
		b.AddPipeline(key, costs.Pipeline{Segments: n})
	}
	if p, _ := b.Pipeline(key); p.Segments != 10 {
		t.Errorf("a pipeline of %d segments; want the longest", p.Segments)
	}
}

// What loads can be written, and reads back the same.
func FuzzLoad(f *testing.F) {
	for _, test := range broken {
		f.Add([]byte(test.text))
	}
	f.Add([]byte(one(`"key": "` + good + `", "n": 2, "min_ns": 1, "p50_ns": 2, "p95_ns": 3, "max_ns": 3, "mean_ns": 2, "leaders_ns": [1, 2]`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		book, err := costs.Load("fuzz", data)
		if err != nil {
			return
		}
		first, err := json.Marshal(book)
		if err != nil {
			t.Fatal(err)
		}
		back, err := costs.Load("again", first)
		if err != nil {
			t.Fatalf("%v in\n%s", err, first)
		}
		if second, err := json.Marshal(back); err != nil || string(first) != string(second) {
			t.Errorf("%s\nreads back as\n%s, %v", first, second, err)
		}
	})
}
