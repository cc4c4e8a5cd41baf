package solo_test

import (
	"testing"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/submodules/internal/solo"
	"github.com/tierflow/tierflow/submodules/submoduletest"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

func TestConformance(t *testing.T) { submoduletest.Run(t, solo.Solo{}) }

// The root of a bcast copies nothing into its buffer: that must outlive a call that
// fails, and the others may have reused their memory by then.
func TestRootReadsNothingBack(t *testing.T) {
	topo := tasktest.Topology(t, "1x4")
	p := tasktest.Plan(t, "shape=sag,fs=4KiB,w=2,ss=solo,sag=solo,s=solo")
	for root := range levels.Rank(4) {
		r := tasks.Request{Coll: tasks.Bcast, Count: 10_000, Type: tasks.Uint8, Root: root}
		for rank, prog := range submoduletest.Compile(t, r, topo, p, all.Submodules()) {
			copies := 0
			for _, s := range prog.Steps() {
				if s.Kind == submodules.CopyStep && s.Dst.Region == tasks.Recv {
					copies++
				}
			}
			if (copies > 0) != (levels.Rank(rank) != root) {
				t.Errorf("root %d: rank %d copies %d times into its buffer", root, rank, copies)
			}
		}
	}
}
