package executor_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/proc"
	"github.com/tierflow/tierflow/levels"
)

func TestStraightAndTakenOverBetweenProcesses(t *testing.T) {
	straightAndTakenOver(t, func(t *rapid.T, h *levels.Topology, c executor.Config) (*executor.World, func() error) {
		p, err := NewProcesses(h, proc.Config{Config: c}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return p.World, p.Close
	})
}
