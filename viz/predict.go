package viz

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Prediction is some of a job's calls as a described machine would have run them.
type Prediction struct {
	Calls []TracedCall // as the job's, on its axis of time: the ranks enter when they did
	// Left says of requests why they have no prediction.
	Left []string
}

// mostPredicted bounds the steps of a simulated call.
const mostPredicted = 1 << 20

// Predict simulates, of each request, the slowest of a job's calls, the one in the middle and the first. They are compiled anew
// from the texts in the trace. Programs other than those of the ranks have no prediction. Ranks are
// taken to be on two levels, as the trace has the names of nodes alone.
func Predict(j *JobTrace, m *machine.Machine, reg submodules.Registry) *Prediction {
	p := &Prediction{}
	type key struct {
		comm          uint64
		request, plan string
	}
	for _, same := range groupBy(j.Calls, func(c *TracedCall) key { return key{c.Comm, c.Request, c.Plan} }) {
		first := &j.Calls[same[0]]
		c, err := recompile(j, first, reg)
		if err != nil {
			p.Left = append(p.Left, fmt.Sprintf("%s, %s: %v", first.Request, first.Plan, err))
			continue
		}
		for _, i := range typical(j, same) {
			call, err := c.predict(&j.Calls[i], m)
			if err != nil {
				p.Left = append(p.Left, fmt.Sprintf("%s, %s, call %d: %v", first.Request, first.Plan, j.Calls[i].Seq, err))
				continue
			}
			p.Calls = append(p.Calls, call)
		}
	}
	slices.SortStableFunc(p.Calls, func(a, b TracedCall) int { return cmp.Compare(a.Begin(), b.Begin()) })
	return p
}

// typical chooses the slowest of some calls, the one in the middle and the first.
func typical(j *JobTrace, calls []int) []int {
	byLength := slices.Clone(calls)
	slices.SortStableFunc(byLength, func(a, b int) int { return cmp.Compare(j.Calls[a].Length(), j.Calls[b].Length()) })
	some := []int{calls[0], byLength[len(byLength)/2], byLength[len(byLength)-1]}
	slices.Sort(some)
	return slices.Compact(some)
}

// recompiled is a request as it was compiled for the job.
type recompiled struct {
	job      *sim.Job
	programs []submodules.Compiled // by rank
}

// recompile compiles a call from its texts, and checks that its ranks ran just these programs.
func recompile(j *JobTrace, c *TracedCall, reg submodules.Registry) (*recompiled, error) {
	request, err := tasks.ParseRequest(c.Request)
	if err != nil {
		return nil, err
	}
	plan, err := tasks.ParsePlan(c.Plan)
	if err != nil {
		return nil, err
	}
	var paths [][]string
	for _, r := range c.Members {
		paths = append(paths, []string{j.Nodes[r]})
	}
	on, err := levels.Named(levels.Standard(2), paths)
	if err != nil {
		return nil, err
	}
	if err := request.Validate(on.Size()); err != nil {
		return nil, err
	}
	for _, request.InPlace = range []bool{true, false} { // the text doesn't say
		if request.InPlace && !request.Coll.HasInPlace() {
			continue
		}
		if all, ok := compileLike(c, request, on, plan, reg); ok {
			job, err := sim.New(on, all)
			return &recompiled{job, all}, err
		}
	}
	return nil, errors.New("it was compiled otherwise: by another version, for other levels, or with an operation of the program's own")
}

// compileLike compiles a request for all ranks. ok: the call ran just these steps.
func compileLike(c *TracedCall, r tasks.Request, on *levels.Topology, plan tasks.Plan, reg submodules.Registry) (all []submodules.Compiled, ok bool) {
	steps := int64(0)
	for rank := range levels.Rank(on.Size()) {
		one, err := submodules.CompileRequest(r, on, plan, rank, reg)
		if err != nil {
			return nil, false
		}
		all = append(all, one)
		if one.Whole != nil {
			steps += one.Passes * int64(one.Whole.Len())
		}
		if one.Rest != nil {
			steps += int64(one.Rest.Len())
		}
	}
	if int64(len(c.Events)) != steps || steps > mostPredicted {
		return nil, false
	}
	for i := range c.Events {
		e := &c.Events[i]
		p := programOf(&all[e.Rank], int64(e.Pass))
		if p == nil || int(e.Step) >= p.Len() {
			return nil, false
		}
		_, was, _, _, _ := e.Source.Describe(e.Step)
		if _, is, _, _, _ := p.Describe(e.Step); is != was {
			return nil, false
		}
	}
	return all, true
}

// programOf returns the program of a pass.
func programOf(c *submodules.Compiled, pass int64) *submodules.Program {
	if pass < c.Passes {
		return c.Whole
	}
	return c.Rest
}

// predict simulates a call.
func (c *recompiled) predict(call *TracedCall, m *machine.Machine) (TracedCall, error) {
	begin := call.Begin()
	o := sim.Options{Start: make([]sim.Time, len(call.Begins))}
	for r, at := range call.Begins {
		o.Start[r] = sim.Time(at-begin) * sim.Nanosecond
	}
	as := *call
	as.Events, as.Ends = nil, slices.Clone(call.Begins)
	o.Watch = func(e sim.Event) {
		as.Events = append(as.Events, trace.Event{
			Source: programOf(&c.programs[e.Rank], e.Pass), Rank: e.Rank, Run: call.Seq, Pass: uint32(e.Pass), Step: e.Step,
			Begin: begin + int64(e.Begin.Duration()), End: begin + int64(e.End.Duration()),
		})
	}
	result, err := c.job.Run(m, o)
	if err != nil {
		return TracedCall{}, err
	}
	for r, end := range result.End {
		as.Ends[r] = max(as.Ends[r], begin+int64(end.Duration()))
	}
	slices.SortStableFunc(as.Events, func(a, b trace.Event) int { return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.End, b.End)) })
	return as, nil
}
