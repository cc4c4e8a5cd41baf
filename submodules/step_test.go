package submodules_test

import (
	"strings"
	"testing"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

func TestStepKinds(t *testing.T) {
	seen := map[string]bool{}
	for k := submodules.SendStep; k <= submodules.JoinStep; k++ {
		if strings.HasPrefix(k.String(), "StepKind(") || k.String() == "" || seen[k.String()] {
			t.Errorf("step kind %d is called %q, like another or nothing", uint8(k), k)
		}
		seen[k.String()] = true
		if k.Outgoing() && k.Incoming() {
			t.Errorf("%v both speaks and hears", k)
		}
	}
	for k, want := range map[submodules.StepKind]string{0: "StepKind(0)", submodules.JoinStep + 1: "StepKind(9)"} {
		if k.String() != want {
			t.Errorf("got %v, want %s", k, want)
		}
	}
}

func TestStepLen(t *testing.T) {
	span := tasks.Span{Region: tasks.Recv, Len: 3}
	for _, s := range []submodules.Step{
		{Kind: submodules.SendStep, A: span},
		{Kind: submodules.RecvStep, Dst: span},
		{Kind: submodules.CopyStep, Dst: span, A: span},
		{Kind: submodules.ReduceStep, Dst: span, A: span, B: span},
	} {
		if s.Len() != 3 {
			t.Errorf("%v works on %d bytes, want 3", s.Kind, s.Len())
		}
	}
}
