package learn

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/cmd/tierflow/kit"
	"github.com/tierflow/tierflow/cmd/tierflow/kit/kittest"
	"github.com/tierflow/tierflow/submodules/all"
)

// lab runs the command.
func lab(t *testing.T, args ...string) (status int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	root := kit.NewRoot("lab", "", Command(all.Submodules()))
	status = kit.Execute(t.Context(), root, args, strings.NewReader(""), &o, &e)
	return status, o.String(), e.String()
}

// What is recorded is read again, replayed and drawn, the same each time. What learns does better
// at last than what draws points at random does at first.
func TestRecordAndReplay(t *testing.T) {
	set, svg := filepath.Join(t.TempDir(), "set.json"), filepath.Join(t.TempDir(), "set.svg")
	if status, _, errs := lab(t, "learn", "--record", set, "--topo", "4x2", "--op", "allreduce", "--bytes", "8:64KiB:x4"); status != 0 {
		t.Fatal(errs)
	}
	s, err := ReadSet(set)
	if err != nil {
		t.Fatal(err)
	}
	data, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(kittest.Contents(t, set), string(data)); diff != "" {
		t.Errorf("read and written again: %s", diff)
	}
	replay := func() []Compared {
		status, out, errs := lab(t, "learn", "--replay", set, "--seeds", "1", "--json", "--svg", svg)
		if status != 0 {
			t.Fatal(errs)
		}
		return kittest.Decode[[]Compared](t, out)
	}
	one := replay()
	if diff := cmp.Diff(one, replay(), cmp.AllowUnexported(Way{})); diff != "" {
		t.Errorf("a second replay differs: %s", diff)
	}
	for _, way := range one[0].Ways {
		if way.Slowdown < 1 || way.Seconds > 1.001*one[0].Ways[0].Seconds || way.Name == "learn" && (way.Slowdown > 1.05 || way.To < 0) {
			t.Errorf("%+v", way)
		}
	}
	if drawing := kittest.Contents(t, svg); !strings.Contains(drawing, "random") || !strings.Contains(drawing, "learn") {
		t.Error("the drawing names no ways")
	}
}

// A catalogue has all plans, and the tuner's other methods beside.
func TestRecordCatalogue(t *testing.T) {
	set := filepath.Join(t.TempDir(), "set.json")
	if status, _, errs := lab(t, "learn", "--record", set, "--topo", "2x1", "--op", "reduce", "--bytes", "1KiB", "--catalogue"); status != 0 {
		t.Fatal(errs)
	}
	s, err := ReadSet(set)
	if err != nil {
		t.Fatal(err)
	}
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
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "give either --record FILE or --replay FILES"},
		{[]string{"--replay", "nosuch.json"}, "open nosuch.json"},
		{[]string{"--replay", write("a.json", `{"tierflow_set":9}`)}, "tierflow_set is 9; allowed is 1"},
		{[]string{"--replay", write("b.json", `{"tierflow_set":1}`)}, "0 points and 0 plans"},
		{[]string{"--replay", write("c.json", `{"tierflow_set":1,"plans":["shape=round"],"points":[{}]}`)}, "round"},
		{[]string{"--replay", write("d.json", `{"tierflow_set":1,"plans":["shape=flat"],"points":[{"nodes":1,"ppn":1,"ns":[0]}]}`)}, "one above 0"},
		{[]string{"--record", "x.json", "--op", "scan"}, "MPICH's plans are known of"},
		{[]string{"--replay", "x.json", "--seeds", "0"}, "--seeds 0: from 1 on"},
	} {
		if status, _, errs := lab(t, append([]string{"learn"}, c.args...)...); status != 2 || !strings.Contains(errs, c.want) {
			t.Errorf("%v: status %d, %q, want %q", c.args, status, errs, c.want)
		}
	}
}
