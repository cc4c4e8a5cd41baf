package viz

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock"
)

// JobTrace is the ranks' records of a sample of a job's calls, on one clock.
type JobTrace struct {
	Job   string
	Every int      // one call of so many is in the sample
	Nodes []string // of all ranks
	// Program is the executable of the first rank there is, and Date when its trace began: UTC, RFC 3339. Empty: unknown.
	Program, Date string
	Absent        []int // ranks without a file
	Calls         []TracedCall
	Partly        int // calls missing on some of their ranks
	// Clocks says of each node's clock how far off its times may be.
	Clocks []ClockBound
	// Early counts messages that came before they were sent, by no more than the bounds. Wrong
	// counts those that came even earlier.
	Early, Wrong int
}

// ClockBound says how far off the times of a node's ranks may be, on rank 0's clock.
type ClockBound struct {
	Node  string
	Off   time.Duration
	Known bool // false: it was never compared, and its ranks' calls are left out
}

// TracedCall is a call on all its ranks. Times are nanoseconds since the first of all calls.
type TracedCall struct {
	Comm          uint64
	Seq           uint32
	Request, Plan string
	Reasons       []string // for the plan; none: unknown
	Bytes         int64
	Members       []levels.Rank // ranks of the world, by rank of the communicator
	Begins, Ends  []int64       // by rank of the communicator
	Events        []trace.Event // by rank and then by end; ranks are the communicator's
}

// Begin is when the first rank has entered the call, End when the last one has left it.
func (c *TracedCall) Begin() int64 { return slices.Min(c.Begins) }

// End is when the last rank has left the call.
func (c *TracedCall) End() int64 { return slices.Max(c.Ends) }

// Length is the time between.
func (c *TracedCall) Length() time.Duration { return time.Duration(c.End() - c.Begin()) }

// aligned is the files of a job with the maps of their times to rank 0's.
type aligned struct {
	files []*trace.File // by rank; nil: none
	maps  []*clock.Map  // by rank; nil: not comparable
}

// MergeTraces makes one trace of the files of a job's ranks. They must be of one job, one of
// each rank; rank 0's must be among them unless all have one clock.
func MergeTraces(files []*trace.File) (*JobTrace, error) {
	if len(files) == 0 {
		return nil, errors.New("no traces of ranks")
	}
	j := &JobTrace{Job: files[0].Job, Every: files[0].Every, Nodes: files[0].Nodes, Program: files[0].Program, Date: files[0].Date}
	a := aligned{files: make([]*trace.File, len(j.Nodes))}
	for _, f := range files {
		switch {
		case f.Job != j.Job || !slices.Equal(f.Nodes, j.Nodes):
			return nil, fmt.Errorf("rank %d is of job %s on %d ranks, rank %d of job %s on %d", files[0].Rank, j.Job, len(j.Nodes), f.Rank, f.Job, len(f.Nodes))
		case a.files[f.Rank] != nil:
			return nil, fmt.Errorf("two files are of rank %d", f.Rank)
		}
		a.files[f.Rank] = f
	}
	for r, f := range a.files {
		if f == nil {
			j.Absent = append(j.Absent, r)
		}
	}
	if err := a.align(files); err != nil {
		return nil, err
	}
	j.addCalls(&a)
	j.addClocks(&a)
	j.countEarly(&a)
	return j, nil
}

// align finds how each rank's clock is compared with rank 0's.
func (a *aligned) align(files []*trace.File) error {
	first := a.files[0]
	if first == nil {
		first = files[0]
		for _, f := range files {
			if f.Clock != first.Clock {
				return errors.New("the file of rank 0 is missing: other nodes have compared their clocks with its")
			}
		}
	}
	a.maps = make([]*clock.Map, len(a.files))
	for r, f := range a.files {
		switch {
		case f == nil:
		case f.Clock == first.Clock:
			a.maps[r] = &clock.Map{}
		default:
			if i := slices.IndexFunc(files, func(g *trace.File) bool { return g.Clock == f.Clock && len(g.Ahead.Fixes) > 0 }); i >= 0 {
				a.maps[r] = &files[i].Ahead
			}
		}
	}
	return nil
}

// callKey is the identity of a call on all its ranks.
type callKey struct {
	comm uint64
	seq  uint32
}

// addCalls adds the whole calls.
func (j *JobTrace) addCalls(a *aligned) {
	type part struct {
		f    *trace.File
		call *trace.Call
	}
	found := map[callKey][]part{}
	for r, f := range a.files {
		if f == nil || a.maps[r] == nil {
			continue
		}
		for i := range f.Calls {
			key := callKey{f.Kinds[f.Calls[i].Kind].Comm, f.Calls[i].Seq}
			found[key] = append(found[key], part{f, &f.Calls[i]})
		}
	}
	for key, parts := range found {
		k := &parts[0].f.Kinds[parts[0].call.Kind]
		n := len(k.Members)
		c := TracedCall{
			Comm: key.comm, Seq: key.seq, Request: k.Request, Plan: k.Plan, Reasons: k.Reasons, Bytes: k.Bytes,
			Members: k.Members, Begins: make([]int64, n), Ends: make([]int64, n),
		}
		whole := len(parts) == n
		for _, p := range parts { // one of each rank, as files are
			k := &p.f.Kinds[p.call.Kind]
			if whole = whole && slices.Equal(k.Members, c.Members); whole {
				c.Bytes = max(c.Bytes, k.Bytes)
				c.add(p.f, p.call, a.maps[p.f.Rank])
			}
		}
		if !whole {
			j.Partly++
			continue
		}
		j.Calls = append(j.Calls, c)
	}
	slices.SortFunc(j.Calls, func(a, b TracedCall) int {
		return cmp.Or(cmp.Compare(a.Begin(), b.Begin()), cmp.Compare(a.Comm, b.Comm), cmp.Compare(a.Seq, b.Seq))
	})
	if len(j.Calls) > 0 {
		first := j.Calls[0].Begin()
		for i := range j.Calls {
			j.Calls[i].shift(-first)
		}
	}
}

// add adds one rank's part.
func (c *TracedCall) add(f *trace.File, call *trace.Call, m *clock.Map) {
	k := &f.Kinds[call.Kind]
	c.Begins[k.Rank], _ = m.Global(call.Begin)
	c.Ends[k.Rank], _ = m.Global(call.End)
	from := len(c.Events)
	for _, s := range call.Steps {
		begin, _ := m.Global(s[2])
		end, _ := m.Global(s[3])
		c.Events = append(c.Events, trace.Event{
			Source: f.Programs[k.Program(s[0])], Rank: k.Rank, Run: call.Seq, Pass: uint32(s[0]), Step: int32(s[1]),
			Begin: begin, End: max(begin, end),
		})
	}
	slices.SortStableFunc(c.Events[from:], func(a, b trace.Event) int { return cmp.Compare(a.End, b.End) })
}

// shift moves the call in time.
func (c *TracedCall) shift(by int64) {
	for i := range c.Begins {
		c.Begins[i] += by
		c.Ends[i] += by
	}
	for i := range c.Events {
		c.Events[i].Begin += by
		c.Events[i].End += by
	}
}

// addClocks says how far off times are.
func (j *JobTrace) addClocks(a *aligned) {
	for r, f := range a.files {
		if f == nil || slices.ContainsFunc(j.Clocks, func(c ClockBound) bool { return c.Node == j.Nodes[r] }) {
			continue
		}
		b := ClockBound{Node: j.Nodes[r], Known: a.maps[r] != nil}
		if b.Known {
			b.Off = time.Duration(a.off(r))
		}
		j.Clocks = append(j.Clocks, b)
	}
}

// off returns the largest error of a rank's times.
func (a *aligned) off(r int) (worst int64) {
	for i := range a.files[r].Calls {
		_, at := a.maps[r].Global(a.files[r].Calls[i].Begin)
		_, until := a.maps[r].Global(a.files[r].Calls[i].End)
		worst = max(worst, at, until)
	}
	return worst
}

// countEarly counts messages that come before they are sent.
func (j *JobTrace) countEarly(a *aligned) {
	bounds := make([]int64, len(a.files))
	for r, f := range a.files {
		if f != nil && a.maps[r] != nil {
			bounds[r] = a.off(r)
		}
	}
	for i := range j.Calls {
		c := &j.Calls[i]
		t := newTraced(c.Events)
		if t == nil {
			continue
		}
		for m, ends := range t.messages {
			if ends.send < 0 || ends.recv < 0 {
				continue
			}
			early := t.events[ends.send].Begin - t.events[ends.recv].End
			switch {
			case early > bounds[c.Members[m.From]]+bounds[c.Members[m.To]]:
				j.Wrong++
			case early > 0:
				j.Early++
			}
		}
	}
}

// Slowest returns the first of the longest calls; there must be one.
func (j *JobTrace) Slowest() *TracedCall {
	slowest := &j.Calls[0]
	for i := range j.Calls {
		if c := &j.Calls[i]; c.Length() > slowest.Length() {
			slowest = c
		}
	}
	return slowest
}

// Longest keeps the n longest calls, in the order of time.
func (j *JobTrace) Longest(n int) {
	if n >= len(j.Calls) {
		return
	}
	byLength := slices.Clone(j.Calls)
	slices.SortStableFunc(byLength, func(a, b TracedCall) int { return cmp.Compare(b.Length(), a.Length()) })
	j.Calls = byLength[:n]
	slices.SortStableFunc(j.Calls, func(a, b TracedCall) int { return cmp.Compare(a.Begin(), b.Begin()) })
}

// Between keeps the calls from one to before another, counted in the order of time from 0.
func (j *JobTrace) Between(from, to int) {
	to = max(0, min(to, len(j.Calls)))
	j.Calls = j.Calls[min(max(0, from), to):to]
}

// Summary describes the trace in some lines, and how far off its times may be.
func (j *JobTrace) Summary() string {
	if len(j.Nodes) == 0 {
		return "no rank has kept a trace\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "job %s: %d calls on %d ranks, one of %d", j.Job, len(j.Calls), len(j.Nodes), j.Every)
	if j.Partly > 0 {
		fmt.Fprintf(&b, "; %d more are not there on all their ranks", j.Partly)
	}
	if len(j.Absent) > 0 {
		fmt.Fprintf(&b, "; no file of ranks %s", numbers(j.Absent))
	}
	b.WriteString("\nclocks:")
	for i, c := range j.Clocks {
		if i > 0 {
			b.WriteString(",")
		}
		if c.Known {
			fmt.Fprintf(&b, " %s ±%v", c.Node, c.Off)
		} else {
			fmt.Fprintf(&b, " %s never compared, its ranks are left out", c.Node)
		}
	}
	if j.Early+j.Wrong > 0 {
		fmt.Fprintf(&b, "; %d messages came before they were sent by these times", j.Early+j.Wrong)
	}
	if j.Wrong > 0 {
		fmt.Fprintf(&b, ", %d by more than the bounds: a clock has stepped", j.Wrong)
	}
	return b.String() + "\n"
}

// numbers lists some ranks.
func numbers(ranks []int) string {
	const most = 8
	var words []string
	for i, r := range ranks {
		if i == most {
			words = append(words, fmt.Sprintf("and %d more", len(ranks)-most))
			break
		}
		words = append(words, fmt.Sprint(r))
	}
	return strings.Join(words, ", ")
}
