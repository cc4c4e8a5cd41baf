package viz_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/viz"
)

// A job that was simulated, with late ranks, is predicted exactly. A step that is made longer is the surplus.
func TestPredict(t *testing.T) {
	for _, plan := range []string{"shape=han,fs=8KiB,w=4,i=adapt,s=sm", "shape=flat,fs=64KiB,w=4,i=adapt,s=adapt", "shape=ar,fs=4KiB,w=2,i=nbc/recdoubling,s=solo"} {
		for _, topo := range []string{"2x2", "4x2"} {
			j := playSimulated(t, topo, plan)
			p := viz.Predict(j, machine.Assumed(), all.Submodules())
			if len(p.Left) > 0 || len(p.Calls) < 1 || len(p.Calls) > 3 {
				t.Fatalf("%s %s: %d predictions, left %q", topo, plan, len(p.Calls), p.Left)
			}
			for _, c := range p.Calls {
				i := slices.IndexFunc(j.Calls, func(o viz.TracedCall) bool { return o.Seq == c.Seq })
				if d := c.Length() - j.Calls[i].Length(); d.Abs() > 2 || len(c.Events) != len(j.Calls[i].Events) {
					t.Errorf("%s %s, call %d: predicted %v, took %v", topo, plan, c.Seq, c.Length(), j.Calls[i].Length())
				}
			}
			slow := slowStep(&j.Calls[slices.IndexFunc(j.Calls, func(o viz.TracedCall) bool { return o.Seq == p.Calls[0].Seq })])
			text := string(viz.PredictionText(j, p, "m"))
			_, listed, _ := strings.Cut(text, "longest beyond that")
			_, first, _ := strings.Cut(listed, "\n")
			if !strings.HasPrefix(first, slow) {
				t.Errorf("%s %s: %q takes longer, not first in\n%s", topo, plan, slow, text)
			}
			counts := checkSchema(t, viz.JobPerfetto(j, p))
			if alone := checkSchema(t, viz.JobPerfetto(j, nil)); counts["X"] <= alone["X"] || counts["s"] <= alone["s"] {
				t.Errorf("nothing is drawn of the prediction: %v, without %v", counts, alone)
			}
		}
	}
}

// playSimulated is a job of five calls on the assumed machine. Ranks enter at different times.
func playSimulated(t *testing.T, topo, plan string) *viz.JobTrace {
	j := play(t, topo, plan, 8192)
	for call := range 5 {
		j.run(call)
	}
	trace := j.merged(t, nil)
	for i := range trace.Calls {
		c := &trace.Calls[i]
		for r := range c.Begins {
			c.Begins[r] += int64(10_000_000*i + 1000*(r*(i+1)%7)) // a call is over when the next begins
		}
		one := viz.Predict(&viz.JobTrace{Nodes: trace.Nodes, Calls: []viz.TracedCall{*c}}, machine.Assumed(), all.Submodules())
		if len(one.Calls) != 1 {
			t.Fatalf("%s %s: %q", topo, plan, one.Left)
		}
		c.Events, c.Ends = one.Calls[0].Events, one.Calls[0].Ends
	}
	return trace
}

// slowStep makes the last step of a call's rank 1 take a millisecond more, within the call's time, and returns its label.
func slowStep(c *viz.TracedCall) string {
	at := -1
	for i, e := range c.Events {
		if e.Rank == 1 {
			at = i
		}
	}
	c.Events[at].End += int64(time.Millisecond)
	_, label, _, _, _ := c.Events[at].Source.Describe(c.Events[at].Step)
	return label
}

// What can't be compiled as it was is left out, and said.
func TestPredictLeaves(t *testing.T) {
	for name, change := range map[string]func(j *viz.JobTrace){
		"unknown operation":        func(j *viz.JobTrace) { j.Calls[0].Request = "allreduce 8192 f32 mine" },
		"compiled otherwise":       func(j *viz.JobTrace) { j.Calls[0].Request = "allreduce 8193 f32 sum" },
		`plan "shape=none"`:        func(j *viz.JobTrace) { j.Calls[0].Plan = "shape=none" },
		"by another version":       func(j *viz.JobTrace) { j.Calls[0].Events = j.Calls[0].Events[1:] },
		"for other levels":         func(j *viz.JobTrace) { j.Nodes = []string{"a", "b", "c", "d"} },
		"root 9: ranks are 0 to 3": func(j *viz.JobTrace) { j.Calls[0].Request = "bcast 8192 f32 root 9" },
	} {
		j := play(t, "2x2", "shape=han,fs=8KiB,w=4,i=adapt,s=sm", 8192)
		j.run(0)
		m := j.merged(t, nil)
		change(m)
		p := viz.Predict(m, machine.Assumed(), all.Submodules())
		text := string(viz.PredictionText(m, p, "m"))
		if len(p.Calls) > 0 || len(p.Left) != 1 || !strings.Contains(p.Left[0], name) || !strings.Contains(text, "not predicted: "+p.Left[0]) {
			t.Errorf("%s: %d predictions, left %q\n%s", name, len(p.Calls), p.Left, text)
		}
	}
	if p := viz.Predict(&viz.JobTrace{}, machine.Assumed(), nil); len(p.Calls)+len(p.Left) > 0 {
		t.Errorf("of nothing: %+v", p)
	}
}
