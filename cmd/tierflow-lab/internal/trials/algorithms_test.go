package trials

import (
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// Each algorithm that can do the task between nodes has a line, with a number for each size, and a
// result for each in JSON.
func TestAlgorithms(t *testing.T) {
	args := strings.Fields("algorithms gather,scatter --topo 2x1 --link none --bytes 64,256 --time 1us")
	text := lab.Succeeds(t, args...)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) < 2 || strings.Join(strings.Fields(lines[1]), " ") != "collective task algorithm 64B 256B" {
		t.Fatalf("printed\n%s", text)
	}
	seen := map[string]int{}
	for _, line := range lines[2:] {
		cells := strings.Fields(line)
		if len(cells) != 5 {
			t.Fatalf("line %q has %d cells", line, len(cells))
		}
		seen[cells[0]+" "+cells[1]]++
	}
	b := &benchAlgorithms{}
	b.Registry = all.Submodules()
	for name, op := range map[string]tasks.Collective{"gather ig": tasks.Gather, "scatter is": tasks.Scatter} {
		if want := len(b.listChoices(op, levels.Level{Symbol: 'i'})); seen[name] != want || want < 2 {
			t.Errorf("%s has %d lines, want %d", name, seen[name], want)
		}
	}
	args = strings.Fields("algorithms gather --topo 2x1 --link none --bytes 64 --time 1us --json")
	results := kittest.Decode[struct{ Results []row }](t, lab.Succeeds(t, args...)).Results
	if len(results) != seen["gather ig"] || results[0].Algorithm == "" || results[0].Task != "ig" || results[0].P50 <= 0 {
		t.Errorf("%d results, want %d; first %+v", len(results), seen["gather ig"], results[0])
	}
	if len(seen) != 2 {
		t.Errorf("lines of %v", seen)
	}
	if s := lab.Run(t, "algorithms", "barrier"); s.Status != 2 || !strings.Contains(s.Errors, "no algorithms to compare") {
		t.Errorf("%+v", s)
	}
}

// Submodules in the memory of a node serve its level alone. Numbers and inner segments of an algorithm
// follow it.
func TestListChoices(t *testing.T) {
	b := &benchAlgorithms{}
	b.Registry = all.Submodules()
	for _, test := range []struct {
		level levels.Level
		want  bool // whether there is sm
	}{{levels.Level{Symbol: levels.NodeSymbol}, true}, {levels.Level{Symbol: 'i'}, false}} {
		has, last := false, tasks.Choice{}
		for _, c := range b.listChoices(tasks.Bcast, test.level) {
			has = has || c.Submodule == "sm"
			if (c.N > 0 || c.Inner > 0) && (c.Submodule != last.Submodule || c.Algorithm != last.Algorithm) {
				t.Errorf("%v follows %v", c, last)
			}
			last = c
		}
		if has != test.want {
			t.Errorf("sm between ranks of level %v: %v", test.level, has)
		}
	}
}
