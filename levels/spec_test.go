package levels_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tierflow/tierflow/levels"
)

var specs = []string{
	"1", "8", "4x2", "1x4", "4x1", "2x4/rr", "2x2x4", "2x3x4/rr", "2x3x2x4", "2x1x2x2/rr",
	"a:3,b:1,c:2", "a:3,b:1,c:2/rr", "fe80::1:2,node-7.lan:1", "a:8", "node2:2,node0:1",
}

func TestParseStringRoundTrip(t *testing.T) {
	for _, spec := range specs {
		if got := parse(t, spec).String(); got != spec {
			t.Errorf("%s reads back as %s", spec, got)
		}
	}
	for spec, want := range map[string]string{
		"4x2/block": "4x2", "8/rr": "8", "4x1/rr": "4x1", "1x4/rr": "1x4", "node0:2,node1:2": "2x2", "node0:2,node1:1": "node0:2,node1:1",
	} {
		if got := parse(t, spec).String(); got != want {
			t.Errorf("%s is written as %s, want %s", spec, got, want)
		}
	}
}

// Every spec that Parse reads comes back from String as an equal topology.
func TestParseStringProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		spec := rapid.StringMatching(`([1-4]x){0,3}[1-4](/rr|/block)?|[a-c]:[1-4],d:[1-4],node1:[1-4](/rr)?`).Draw(rt, "spec")
		checkRoundTrip(rt, spec)
	})
}

func checkRoundTrip(t failer, spec string) {
	t.Helper()
	topo, err := levels.Parse(spec)
	if err != nil {
		t.Fatalf("%v", err)
	}
	back, err := levels.Parse(topo.String())
	if err != nil || !back.Equal(topo) {
		t.Fatalf("%s is written as %v, which is %v, %v", spec, topo, back, err)
	}
}

func TestParsePlacesRanks(t *testing.T) {
	for _, tc := range []struct {
		spec   string
		level  int
		symbol byte
		want   string
	}{
		{"2x3", 0, 's', "[0 0 0 1 1 1]"},
		{"2x3", 1, 'i', "[0 0 0 0 0 0]"},
		{"2x3/rr", 0, 's', "[0 1 0 1 0 1]"},
		{"a:1,b:3,c:2/rr", 0, 's', "[0 1 2 1 2 1]"},
		{"2x2x2", 0, 'm', "[0 0 1 1 2 2 3 3]"},
		{"2x2x2/rr", 0, 'm', "[0 2 1 3 0 2 1 3]"},
		{"2x2x2/rr", 1, 's', "[0 1 0 1 0 1 0 1]"},
		{"2x2x1x2", 2, 'i', "[0 0 0 0 1 1 1 1]"},
		{"2x2x1x2", 3, 'w', "[0 0 0 0 0 0 0 0]"},
	} {
		topo := parse(t, tc.spec)
		var got []int32
		for _, r := range everyone(topo) {
			got = append(got, topo.Domain(r, tc.level))
		}
		if fmt.Sprint(got) != tc.want || topo.Level(tc.level).Symbol != tc.symbol {
			t.Errorf("%s level %d (%v): %v, want %s", tc.spec, tc.level, topo.Level(tc.level), got, tc.want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for spec, want := range map[string][]string{
		"":                            {`topology "": dimension ""; allowed are numbers from 1 to 1048576 with x between them`},
		"2y2":                         {`dimension "2y2"; allowed are numbers from 1 to 1048576 with x between them, as in 4x2, or nodes as in a:3,b:1`},
		"0x2xq/zz":                    {`order "/zz"; allowed are /block and /rr`, `dimension "0"`, `dimension "q"`},
		"4x2/":                        {`order "/"`},
		"-4x+2":                       {`dimension "-4"`, `dimension "+2"`},
		"1x1x1x1x1":                   {"5 dimensions; allowed are 1 to 4", "JSON"},
		"2048x1024":                   {"2097152 ranks or more; allowed are at most 1048576"},
		"99999999999999999999":        {`dimension "99999999999999999999"`},
		"1048576x1048576x1048576x1":   {"allowed are at most 1048576"},
		"a:3,b,a:0,c d:1":             {`"b"; each node is name:ranks`, `node "a" is given twice`, `ranks "0"; allowed are numbers from 1`, `name "c d" has ' '`},
		"a:1048576,b:1":               {"1048577 ranks; allowed are at most 1048576"},
		"a:1,":                        {`""; each node is name:ranks`},
		":3":                          {`name "" has 0 characters`},
		strings.Repeat("é:1,", 30):    {"…", "has 'é'", "and "},
		"@machine.json":               {`dimension "@machine.json"`},
		strings.Repeat("x", 1000):     {"1001 dimensions"},
		strings.Repeat("1", 100) + "": {"…"},
	} {
		_, err := levels.Parse(spec)
		wantError(t, err, want...)
	}
}

func FuzzParse(f *testing.F) {
	for _, spec := range append(specs, "", "x", "4x", ":", "a:1,a:1", "1048577", "2x2/rr/rr", "a:1,,b:2", "@x.json") {
		f.Add(spec)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		topo, err := levels.Parse(spec)
		if err != nil {
			if topo != nil || len(err.Error()) > 8000 {
				t.Fatalf("%v with an error of %d bytes", topo, len(err.Error()))
			}
			return
		}
		if topo.Size() > 1<<10 {
			t.Skip("big topologies are right or wrong as small ones are, only slower")
		}
		checkRoundTrip(t, spec)
		checkNumbers(t, topo)
	})
}
