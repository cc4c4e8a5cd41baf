package price_test

import (
	"slices"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/price"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// numberless is a submodule whose algorithms have no usual number.
type numberless struct{ submodules.Submodule }

func (n numberless) Algorithms() []submodules.Algorithm {
	list := slices.Clone(n.Submodule.Algorithms())
	for i := range list {
		list[i].Number = submodules.Number{}
	}
	return list
}

// A tree without a number is a chain of ranks, and costs some time.
func TestTreesWithoutANumber(t *testing.T) {
	reg := slices.Clone(all.Submodules())
	for i, s := range reg {
		if s.Name() == "adapt" {
			reg[i] = numberless{s}
		}
	}
	for _, name := range []string{"binary", "kchain"} {
		p, err := price.New(machine.Assumed(), tasktest.Topology(t, "8x1"), tasktest.Request(tasks.Bcast, 4096), reg)
		if err != nil {
			t.Fatal(err)
		}
		got, known := p.Plan(tasktest.Plan(t, "shape=han,fs=all,w=1,i=adapt/"+name))
		if known && got.NS <= 0 {
			t.Errorf("%s takes %v ns", name, got.NS)
		}
	}
}
