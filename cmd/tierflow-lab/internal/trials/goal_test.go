package trials

import (
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/goal"
)

// The programs in GOAL are those that would be simulated.
func TestGoal(t *testing.T) {
	shared := strings.Fields("goal allreduce --topo 4x2 --bytes 64KiB")
	lab.Refuses(t, "--plan s=adapt/binomial has messages inside nodes too", shared...)
	lab.Refuses(t, "GOAL has messages and computations only", strings.Fields("goal bcast --topo 2x2 --plan s=sm")...)
	if s, err := goal.Parse("stdout", []byte(lab.Succeeds(t, append(shared, "--plan", "s=adapt/binomial")...))); err != nil || len(s.Ranks) != 8 {
		t.Errorf("with messages inside nodes: %v", err)
	}
	text := lab.Succeeds(t, strings.Fields("goal bcast --topo 4x1 --bytes 64KiB --plan shape=flat,fs=all,w=1,i=adapt/chain")...)
	s, err := goal.Parse("stdout", []byte(text))
	if err != nil || len(s.Ranks) != 4 || len(s.Ranks[1]) != 3 || s.Ranks[1][1].Kind != goal.Send {
		t.Errorf("%v\n%s", err, text)
	}
}
