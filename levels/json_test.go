package levels_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/levels"
)

const (
	twoLevels = `{"levels": [{"name": "node", "symbol": "s"}, {"name": "network", "symbol": "i"}],`
	samples   = "../testdata/topologies/"
)

func TestParseJSONSamples(t *testing.T) {
	want := map[string]string{
		"2x4-rr.json":  "2x4/rr",
		"unequal.json": "s/node i/network tree: big{0-1,3} small{2,5} lone{4}",
		"gpus.json": "g/gpu m/numa s/node r/rack i/network tree: " +
			"rack0{a{numa0{gpu0{0-1} gpu1{2}} numa1{gpu0{3}}} b{numa0{gpu0{4}} numa1{gpu0{5}}}} " +
			"rack1{c{numa0{gpu0{6} gpu1{7}}}}",
		"numa-unequal.json":  "m/numa s/node i/network tree: a{0{0-1,3} 1{2}} b{0{4}} c{0{5} 1{6-7}}",
		"sites-unequal.json": "m/numa s/node i/network w/site tree: east{a{0{0-1,6} 1{2}} b{0{3}}} west{c{0{4} 1{5,7-8}} d{0{9}}}",
	}
	files, err := filepath.Glob(samples + "*.json")
	if err != nil || len(files) != len(want) {
		t.Fatalf("samples are %v, %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		topo, err := levels.ParseJSON(file, data)
		if err != nil {
			t.Error(err)
		} else if got := topo.String(); got != want[filepath.Base(file)] {
			t.Errorf("%s is %s", file, got)
		}
	}
}

func TestParseJSONOneLevel(t *testing.T) {
	topo, err := levels.ParseJSON("f", []byte(`{"ranks": [[], []], "levels": [{"symbol": "s", "name": "node"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := topo.String(); got != "2" {
		t.Errorf("got %s", got)
	}
}

func TestParseJSONErrors(t *testing.T) {
	for _, tc := range []struct {
		data string
		want []string
	}{
		{"", []string{"f:1: unexpected end of JSON input"}},
		{"{\n\n]", []string{"f:3: invalid character ']'"}},
		{`{"spec": "1"} {}`, []string{"f:1: invalid character '{' after top-level value"}},
		{"\n[]", []string{"f:2: a topology must be an object with the keys spec, levels, ranks"}},
		{"\n{}", []string{`f:2: keys ""; needed are either spec or levels and ranks`}},
		{"{\"spec\":\n\"4y\"}", []string{`f:2: topology "4y": dimension "4y"`}},
		{"{\"spec\": 4}", []string{`f:1: "spec" must be a string`}},
		{"{\n\"spec\": \"4\",\n\"spec\": \"5\"}", []string{`f:3: key "spec" is given twice`}},
		{"{\n\"Spec\": 1e999,\n\"rank\": []}", []string{`f:2: unknown key "Spec" in a topology; known are spec, levels, ranks`, `f:3: unknown key "rank"`}},
		{twoLevels + `"spec": "4"}`, []string{`f:1: keys "spec and levels"; needed`}},
		{twoLevels + "\n\"ranks\": null}", []string{`f:2: "ranks" must be an array`}},
		{twoLevels + "\n\"ranks\": []}", []string{`f:1: 0 ranks; allowed are 1 to 1048576`}},
		{twoLevels + "\n\"ranks\": [\n[\"a\"],\n[],\n[\"a\", \"b\"]]}", []string{"f:4: rank 1: 0 domains; with 2 levels each rank has 1", "f:5: rank 2: 2 domains"}},
		{twoLevels + "\n\"ranks\": [[\"a\"],\n7,\n[\"a\",\nnull]]}", []string{"f:3: rank 1 must be an array", "f:5: a domain's name must be a string"}},
		{twoLevels + "\n\"ranks\": [[\"a/b\"]]}", []string{`f:2: rank 0: level 0: name "a/b" has '/'`}},
		{"{\"levels\": [\n{\"name\": \"x\", \"symbol\": \"s\"},\n{\"name\": \"y\", \"symbol\": \"s\"}], \"ranks\": [[\"a\"]]}", []string{`f:3: level 1: symbol "s" is level 0's already`}},
		{"{\"levels\": [\n{\"name\": \"x\",\n\"symbol\": \"ss\", \"speed\": {}}, []]}", []string{`f:3: symbol "ss"; allowed is one letter`, `f:3: unknown key "speed" in a level; known are name, symbol`, "f:3: a level must be an object"}},
		{"{\"levels\": [\n{\"name\": \"x\"}], \"ranks\": [[]]}", []string{`f:2: level 0: symbol "\x00"; allowed is one letter a to z`}},
	} {
		_, err := levels.ParseJSON("f", []byte(tc.data))
		wantError(t, err, tc.want...)
	}
	_, err := levels.ParseJSON("", nil)
	wantError(t, err, "topology:1: ")
}

func FuzzParseJSON(f *testing.F) {
	files, err := filepath.Glob(samples + "*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, s := range []string{"", "{}", "[", `{"spec":1e999}`, `{"levels":[{}],"ranks":[[],null]}`, `{"levels":{"a":[1]},"spec":"1"}`, "{\"\\ud800\":\n0}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		topo, err := levels.ParseJSON("file.json", data)
		if err != nil {
			if topo != nil || !strings.HasPrefix(err.Error(), "file.json:") {
				t.Fatalf("%v with the error %v", topo, err)
			}
			return
		}
		if topo.Size() > 1<<10 {
			t.Skip("big topologies are right or wrong as small ones are, only slower")
		}
		checkNumbers(t, topo)
		checkHierarchy(t, topo.Hierarchy(levels.Rank(topo.Size()-1)))
	})
}
