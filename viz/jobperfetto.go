package viz

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
)

// mostLanes bounds the threads of a level. If none is free for a step, it is shown from the time
// that one is.
const mostLanes = 3

// mostArrows bounds the arrows of a trace, about. Beyond it only those of long messages and of
// critical paths are drawn.
const (
	mostArrows = 20_000
	longBytes  = 64 << 10
)

// callArgs is the facts about a rank's part of a call.
type callArgs struct {
	Plan  string `json:"plan"`
	Comm  uint64 `json:"comm"`
	Seq   uint32 `json:"seq"`
	Bytes int64  `json:"bytes"`
}

// sinceArgs are those of a step in a job's trace. A message is shown from when both ends
// could go on; this end could since then.
type sinceArgs struct {
	stepArgs
	Since microsecond `json:"since"`
}

// flowKey is a message of one of a job's calls. Ranks are the world's.
type flowKey struct {
	call int
	TracedMessage
}

// flowEnd is an end of an arrow: in a slice of a thread, at a time.
type flowEnd struct {
	rank   levels.Rank
	thread int
	at     int64
	bytes  int64
}

// jobDrawing is the state of [JobPerfetto].
type jobDrawing struct {
	j            *JobTrace
	first        levels.Rank // the process of rank 0
	prefix       string      // of processes' names
	lines        []any
	tails, heads map[flowKey]flowEnd // of arrows
	order        []flowKey           // of tails
	sends        map[flowKey]int64
	critical     map[flowKey]bool
}

// JobPerfetto writes a job's trace in the Chrome trace event format, see [Perfetto]. A rank is a
// process. Its thread "call" has a slice for each call, from when it is the only one; below are
// up to three threads for each level. Arrows lead from the send of a message to its receive. The
// critical paths of all calls are a process of their own above all ranks. A rank's prediction,
// if there is one, is below it.
func JobPerfetto(j *JobTrace, p *Prediction) []byte {
	lines := drawJob(j, 0, "")
	if p != nil {
		as := *j
		as.Calls = p.Calls
		lines = append(lines, drawJob(&as, predictedProcess, "predicted: ")...)
	}
	return writeTrace(lines)
}

// predictedProcess is the process of rank 0's prediction.
const predictedProcess = pathProcess + 1

// drawJob draws calls on processes from a number on.
func drawJob(j *JobTrace, first levels.Rank, prefix string) []any {
	d := jobDrawing{
		j: j, first: first, prefix: prefix,
		tails: map[flowKey]flowEnd{}, heads: map[flowKey]flowEnd{}, sends: map[flowKey]int64{}, critical: map[flowKey]bool{},
	}
	if first == 0 {
		d.addPaths()
	}
	for i := range j.Calls {
		c := &j.Calls[i]
		for k := range c.Events {
			if key, outgoing, ok := d.key(i, &c.Events[k]); ok && outgoing {
				d.sends[key] = c.Events[k].Begin
			}
		}
	}
	for r := range levels.Rank(len(j.Nodes)) {
		d.addRank(r)
	}
	d.addArrows()
	return d.lines
}

// key returns the message that a step of a call speaks or hears.
func (d *jobDrawing) key(call int, e *trace.Event) (key flowKey, outgoing, ok bool) {
	m, outgoing, ok := MessageOf(e)
	if !ok {
		return key, false, false
	}
	members := d.j.Calls[call].Members
	m.From, m.To = members[m.From], members[m.To]
	return flowKey{call, m}, outgoing, true
}

// addPaths draws the critical paths.
func (d *jobDrawing) addPaths() {
	var all []PathPiece
	for i := range d.j.Calls {
		c := &d.j.Calls[i]
		path := TracePath(c.Events)
		for _, p := range path {
			if p.Cause == causeMessage {
				d.noteCritical(i, &p)
			}
			p.Rank = c.Members[p.Rank]
			all = append(all, p)
		}
	}
	d.lines = append(d.lines, pathLines(all)...)
}

// noteCritical keeps the message of a piece in mind.
func (d *jobDrawing) noteCritical(call int, p *PathPiece) {
	for k := range d.j.Calls[call].Events {
		e := &d.j.Calls[call].Events[k]
		if e.Rank == p.Rank && e.Step == p.Step && e.End >= p.End {
			if key, _, ok := d.key(call, e); ok {
				d.critical[key] = true
			}
			return
		}
	}
}

// addRank draws the process of a rank.
func (d *jobDrawing) addRank(r levels.Rank) {
	head := track{rank: d.first + r}
	var events []trace.Event
	var calls []any
	var shown int64 // until when the thread has a call
	for i := range d.j.Calls {
		c := &d.j.Calls[i]
		me := slices.Index(c.Members, r)
		if me < 0 {
			continue
		}
		from := min(max(c.Begins[me], shown), c.Ends[me]) // calls may run at the same time
		shown = max(shown, c.Ends[me])
		calls = append(calls, head.makeSlice(c.Request, "call", from, c.Ends[me], 1, callArgs{c.Plan, c.Comm, c.Seq, c.Bytes}))
		for _, e := range c.Events {
			if int(e.Rank) == me {
				e.Run = uint32(i)
				events = append(events, e)
			}
		}
	}
	if len(calls) == 0 {
		return
	}
	name := fmt.Sprintf("%srank %d (%s)", d.prefix, r, d.j.Nodes[r])
	d.lines = append(d.lines, head.processLines(name, 2*int(r)+min(1, int(d.first)))...)
	d.lines = append(d.lines, head.threadLines("call", 1)...)
	d.lines = append(d.lines, calls...)
	thread := 1
	for _, t := range levelTracks(d.first+r, events) {
		thread += d.addTrack(&t, thread+1)
	}
}

// levelTracks sorts the steps of one rank of the world by level. Their own ranks are those of
// communicators.
func levelTracks(r levels.Rank, events []trace.Event) []track {
	byLevel := tracks(events)
	var all []track
	for _, t := range byLevel { // of a rank with several numbers there are several
		i := slices.IndexFunc(all, func(o track) bool { return o.level == t.level })
		if i < 0 {
			i = len(all)
			all = append(all, track{rank: r, level: t.level})
		}
		all[i].slices = append(all[i].slices, t.slices...)
	}
	slices.SortStableFunc(all, func(a, b track) int { return outside(a.level) - outside(b.level) })
	return all
}

// addTrack draws a level of a rank, from a thread on, and returns how many it takes.
func (d *jobDrawing) addTrack(t *track, thread int) (threads int) {
	type shown struct {
		*slice
		key      flowKey
		outgoing bool
		message  bool
		from     int64
	}
	var all []shown
	for i := range t.slices {
		s := shown{slice: &t.slices[i], from: t.slices[i].Begin}
		s.key, s.outgoing, s.message = d.key(int(s.Run), &s.Event)
		if sent, known := d.sends[s.key]; s.message && !s.outgoing && known {
			s.from = min(max(s.from, sent), s.End)
		}
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(a, b shown) int { return cmp.Compare(a.from, b.from) })
	var free []int64 // by lane, when its last slice ends
	for _, s := range all {
		lane := slices.IndexFunc(free, func(end int64) bool { return end <= s.from })
		switch {
		case lane >= 0:
		case len(free) < mostLanes:
			lane = len(free)
			free = append(free, 0)
		default:
			lane = slices.Index(free, slices.Min(free))
			s.from = min(free[lane], s.End)
		}
		free[lane] = max(free[lane], s.End)
		d.lines = append(d.lines, t.makeSlice(s.label, s.kind(), s.from, s.End, thread+lane, sinceArgs{s.args(d.j.Calls[s.Run].Seq), microsecond(s.Begin)}))
		switch {
		case !s.message:
		case s.outgoing:
			d.order = append(d.order, s.key)
			d.tails[s.key] = flowEnd{t.rank, thread + lane, s.from, s.bytes}
		default:
			d.heads[s.key] = flowEnd{t.rank, thread + lane, max(s.from, s.End-1), s.bytes}
		}
	}
	for lane := range free {
		d.lines = append(d.lines, t.threadLines(t.laneName(lane), thread+lane)...)
	}
	return len(free)
}

// addArrows draws arrows from each send to its recv.
func (d *jobDrawing) addArrows() {
	for _, key := range d.order {
		from := d.tails[key]
		to, ok := d.heads[key]
		if !ok || to.at < from.at { // by inexact clocks a message may come early
			continue
		}
		if len(d.order) > mostArrows && to.bytes < longBytes && !d.critical[key] {
			continue
		}
		h := fnv.New64a()
		c := &d.j.Calls[key.call]
		fmt.Fprintln(h, d.prefix, c.Comm, c.Seq, key.Pass, key.From, key.To, key.Edge)
		id := fmt.Sprintf("%016x", h.Sum64())
		d.lines = append(
			d.lines,
			traceEvent{Name: "message", Cat: "message", Ph: "s", ID: id, Ts: new(microsecond(from.at)), Pid: int32(from.rank), Tid: from.thread, Args: struct{}{}},
			traceEvent{Name: "message", Cat: "message", Ph: "f", BP: "e", ID: id, Ts: new(microsecond(to.at)), Pid: int32(to.rank), Tid: to.thread, Args: struct{}{}},
		)
	}
}

// JobText describes a job's trace and the causes of its calls' time, a line for each request.
func JobText(j *JobTrace) []byte {
	var b bytes.Buffer
	b.WriteString(j.Summary())
	for _, a := range Accounts(j) {
		fmt.Fprintln(&b, a.String())
	}
	if len(j.Calls) > 0 {
		slowest := j.Slowest()
		fmt.Fprintf(&b, "slowest: %s, call %d, %v at %v\n", slowest.Request, slowest.Seq, slowest.Length(), time.Duration(slowest.Begin()))
	}
	return b.Bytes()
}
