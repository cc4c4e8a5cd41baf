package submodules_test

import (
	"math/rand/v2"
	"testing"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/submodules/check/casegen"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// The tasks of each phase by themselves stay in the memory that their program asks for,
// though what they read there was never written.
func TestOnlyStaysInScratch(t *testing.T) {
	on := tasktest.Topology(t, "2x2x2")
	draw, spans := rand.New(rand.NewPCG(1, 2)), 0
	for _, coll := range tasks.Requestable() {
		for range 30 {
			c := casegen.Options{Coll: coll, Topology: on, Registry: all.Submodules()}.Draw(draw)
			for rank := range levels.Rank(on.Size()) {
				g, err := tasks.Expand(c.Request, on, c.Plan, rank)
				if err != nil {
					break // the plan doesn't fit
				}
				for at, ph := range g.Phases {
					p, err := submodules.Compile(g.Only(func(t *tasks.Task) bool { return int(t.Phase) == at }), on.Size(), all.Submodules())
					if err != nil {
						break // nor do its algorithms
					}
					for _, s := range p.Steps() {
						for _, span := range []tasks.Span{s.A, s.B, s.Dst} {
							if span.Region == tasks.Scratch {
								spans++
								if span.Off < 0 || span.Off+span.Len > p.Scratch {
									t.Fatalf("%v, %v: only %v on rank %d: %v at %d, %d bytes of %d", c.Request, c.Plan, ph.Kind, rank, s.Kind, span.Off, span.Len, p.Scratch)
								}
							}
						}
					}
				}
			}
		}
	}
	if spans < 1000 {
		t.Errorf("only %d spans were looked at", spans)
	}
}
