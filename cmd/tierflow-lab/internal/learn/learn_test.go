package learn

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
)

// lab is the command with what is in this package.
var lab = kittest.Of("tierflow-lab", Command)

// record records a set, and returns its file and what is in there.
func record(t *testing.T, args ...string) (name string, s *recordedSet) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "set.json")
	lab.Succeeds(t, append([]string{"learn", "--record", name}, args...)...)
	s, err := parseSet(name, []byte(kittest.Contents(t, name)))
	if err != nil {
		t.Fatal(err)
	}
	return name, s
}

// replay replays a set, and returns how the ways do.
func replay(t *testing.T, set string, args ...string) []wayResult {
	t.Helper()
	out := lab.Succeeds(t, append([]string{"learn", "--replay", set, "--json"}, args...)...)
	return kittest.Decode[[]setResult](t, out)[0].Ways
}

// What is recorded is read again, replayed and drawn, the same each time. What learns does better
// at last than what draws points at random does at first.
func TestRecordAndReplay(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "set.svg")
	set, s := record(t, "--topo", "4x2", "--op", "allreduce", "--bytes", "8:64KiB:x4")
	data, err := s.encode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(kittest.Contents(t, set), string(data)); diff != "" {
		t.Errorf("read and written again: %s", diff)
	}
	one := replay(t, set, "--seeds", "1", "--svg", svg)
	if diff := cmp.Diff(one, replay(t, set, "--seeds", "1", "--svg", svg), cmp.AllowUnexported(wayResult{})); diff != "" {
		t.Errorf("a second replay differs: %s", diff)
	}
	for _, way := range one {
		if way.Slowdown < 1 || way.Seconds > 1.001*one[0].Seconds || way.Name == "learn" && (way.Slowdown > 1.05 || way.To < 0) {
			t.Errorf("%+v", way)
		}
	}
	if drawing := kittest.Contents(t, svg); !strings.Contains(drawing, "random") || !strings.Contains(drawing, "learn") {
		t.Error("the drawing names no ways")
	}
}

// A catalogue has all plans, and the tuner's other methods beside.
func TestRecordCatalogue(t *testing.T) {
	_, s := record(t, "--topo", "2x1", "--op", "reduce", "--bytes", "1KiB", "--catalogue")
	if len(s.Plans) < 10 || len(s.Points) != 1 || len(s.Methods) != 2 || s.Methods[0].NS[0] < s.Points[0].best() {
		t.Errorf("%d plans, points %+v, methods %+v", len(s.Plans), s.Points, s.Methods)
	}
}

func TestReplayErrors(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	lab.RefusesAll(t, "learn", map[string]string{
		"":                     "give either --record FILE or --replay FILES",
		"--replay nosuch.json": "open nosuch.json",
		"--replay " + write("a.json", `{"tierflow_set":9}`):                                                                "tierflow_set is 9; allowed is 1",
		"--replay " + write("b.json", `{"tierflow_set":1}`):                                                                "0 points and 0 plans",
		"--replay " + write("c.json", `{"tierflow_set":1,"plans":["shape=round"],"points":[{}]}`):                          "round",
		"--replay " + write("d.json", `{"tierflow_set":1,"plans":["shape=flat"],"points":[{"nodes":1,"ppn":1,"ns":[0]}]}`): "one above 0",
		"--record x.json --op scan": "MPICH's plans are known of",
		"--replay x.json --seeds 0": "--seeds 0: from 1 on",
	})
}
