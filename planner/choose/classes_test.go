package choose

import (
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// A size is near the one that stands for it, and that one stands for itself.
func TestClassesAreNear(t *testing.T) {
	seen := map[int64]bool{}
	for n := range int64(100_000) {
		as, shared := classify(tasks.Request{Coll: tasks.Bcast, Count: n, Pitch: n})
		again, _ := classify(as)
		if !shared || again != as || 8*max(as.Count-n, n-as.Count) > n || as.Pitch != 0 {
			t.Fatalf("%d elements: as %+v, %v, then %+v", n, as, shared, again)
		}
		seen[as.Count] = true
	}
	if len(seen) > 4*17 {
		t.Errorf("%d classes", len(seen))
	}
}

// On numbers of a hasty measurement near sizes share a choice, and Explain says so; on others each
// size has its own.
func TestNearSizesShareChoices(t *testing.T) {
	on := tasktest.Topology(t, "4x2")
	for method, shared := range map[string]int{"described": 0, Hastily + "3 ms": 1} {
		known := *machine.Assumed()
		known.Provenance.Method = method
		m := &Machine{Machine: &known, Origin: "here"}
		for _, n := range []int64{1000, 1010, 1024} {
			q, err := Ask(tasks.Request{Coll: tasks.Bcast, Count: n, Type: tasks.Float32}, on, all.Submodules(), "")
			if err != nil {
				t.Fatal(err)
			}
			a, err := m.Choose(q)
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			a.Explain(&text)
			if says := strings.Contains(text.String(), "decided as for 1024 elements"); says != (shared > 0 && n != 1024) {
				t.Errorf("%s, %d elements:\n%s", method, n, &text)
			}
		}
		if len(m.classes) != shared {
			t.Errorf("%s: %d choices are kept, want %d", method, len(m.classes), shared)
		}
	}
}
