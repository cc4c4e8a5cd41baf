package viz

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
)

// mostLanes bounds the threads of a level. A step for which none is free is shown from when one
// is.
const mostLanes = 3

// mostArrows bounds the arrows of a trace, about. Beyond it only those of long messages and of
// critical paths are drawn.
const (
	mostArrows = 20_000
	longBytes  = 64 << 10
)

// callArgs is what is known of a rank's part of a call.
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
	messageKey
}

// flowEnd is where an arrow begins or ends: in a slice of a thread, at a time.
type flowEnd struct {
	rank   levels.Rank
	thread int
	at     int64
	bytes  int64
}

// jobDrawing is the state of [JobPerfetto].
type jobDrawing struct {
	j           *JobTrace
	first       levels.Rank // the process of rank 0
	prefix      string      // of processes' names
	lines       []any
	sent, heard map[flowKey]flowEnd
	order       []flowKey // of sent
	sends       map[flowKey]int64
	critical    map[flowKey]bool
}

// JobPerfetto writes a job's trace in the Chrome trace event format, see [Perfetto]. A rank is a process.
// Its thread "call" has a slice for each call, from when it is the only one; below that are up to three
// threads for each level. Arrows lead from the send of a message to its receive. The critical paths of all
// calls are a process of their own above all ranks. Below each rank is what is predicted of it, where
// there is a prediction.
func JobPerfetto(j *JobTrace, p *Prediction) []byte {
	lines := drawJob(j, 0, "")
	if p != nil {
		as := *j
		as.Calls = p.Calls
		lines = append(lines, drawJob(&as, predictedProcess, "predicted: ")...)
	}
	var b bytes.Buffer
	b.WriteString(`{"displayTimeUnit": "ns", "traceEvents": `)
	writeLines(&b, lines, nil)
	b.WriteString("}\n")
	return b.Bytes()
}

// predictedProcess is the process of what is predicted of rank 0.
const predictedProcess = pathProcess + 1

// drawJob draws calls on processes from a number on.
func drawJob(j *JobTrace, first levels.Rank, prefix string) []any {
	d := jobDrawing{
		j: j, first: first, prefix: prefix,
		sent: map[flowKey]flowEnd{}, heard: map[flowKey]flowEnd{}, sends: map[flowKey]int64{}, critical: map[flowKey]bool{},
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

// key returns which message a step of a call speaks or hears.
func (d *jobDrawing) key(call int, e *trace.Event) (key flowKey, outgoing, ok bool) {
	k, outgoing, ok := message(e)
	if !ok {
		return key, false, false
	}
	members := d.j.Calls[call].Members
	k.from, k.to = members[k.from], members[k.to]
	return flowKey{call, k}, outgoing, true
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
		begin, length := microsecond(from), microsecond(c.Ends[me]-from)
		calls = append(calls, traceEvent{
			Name: c.Request, Cat: "call", Ph: "X", Ts: &begin, Dur: &length, Pid: int32(d.first + r), Tid: 1,
			Args: callArgs{c.Plan, c.Comm, c.Seq, c.Bytes},
		})
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
	d.lines = append(d.lines,
		head.meta("process_name", 0, nameArgs{fmt.Sprintf("%srank %d (%s)", d.prefix, r, d.j.Nodes[r])}),
		head.meta("process_sort_index", 0, indexArgs{2*int(r) + min(1, int(d.first))}),
		head.meta("thread_name", 1, nameArgs{"call"}), head.meta("thread_sort_index", 1, indexArgs{1}))
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
	for _, t := range byLevel { // of a rank that has several numbers there are several
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
	slices.SortStableFunc(all, func(a, b shown) int { return int(min(1, max(-1, a.from-b.from))) })
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
		begin, length := microsecond(s.from), microsecond(s.End-s.from)
		d.lines = append(d.lines, traceEvent{
			Name: s.label, Cat: s.kind(), Ph: "X", Ts: &begin, Dur: &length, Pid: int32(t.rank), Tid: thread + lane,
			Args: sinceArgs{stepArgs{s.task, s.bytes, d.j.Calls[s.Run].Seq, s.Pass}, microsecond(s.Begin)},
		})
		switch {
		case !s.message:
		case s.outgoing:
			d.order = append(d.order, s.key)
			d.sent[s.key] = flowEnd{t.rank, thread + lane, s.from, s.bytes}
		default:
			d.heard[s.key] = flowEnd{t.rank, thread + lane, max(s.from, s.End-1), s.bytes}
		}
	}
	for lane := range free {
		d.lines = append(d.lines, t.meta("thread_name", thread+lane, nameArgs{t.laneName(lane)}),
			t.meta("thread_sort_index", thread+lane, indexArgs{thread + lane}))
	}
	return len(free)
}

// addArrows draws arrows from each send to its recv.
func (d *jobDrawing) addArrows() {
	for _, key := range d.order {
		from := d.sent[key]
		to, ok := d.heard[key]
		if !ok || to.at < from.at { // by clocks that are not exact a message may come early
			continue
		}
		if len(d.order) > mostArrows && to.bytes < longBytes && !d.critical[key] {
			continue
		}
		h := fnv.New64a()
		c := &d.j.Calls[key.call]
		fmt.Fprintln(h, d.prefix, c.Comm, c.Seq, key.pass, key.from, key.to, key.edge)
		id := fmt.Sprintf("%016x", h.Sum64())
		begin, end := microsecond(from.at), microsecond(to.at)
		d.lines = append(
			d.lines,
			traceEvent{Name: "message", Cat: "message", Ph: "s", ID: id, Ts: &begin, Pid: int32(from.rank), Tid: from.thread, Args: struct{}{}},
			traceEvent{Name: "message", Cat: "message", Ph: "f", BP: "e", ID: id, Ts: &end, Pid: int32(to.rank), Tid: to.thread, Args: struct{}{}},
		)
	}
}

// JobText says what a job's trace has and where the time of its calls went, a line for each
// request.
func JobText(j *JobTrace) []byte {
	var b bytes.Buffer
	b.WriteString(j.Summary())
	for _, a := range Accounts(j) {
		fmt.Fprintln(&b, a.String())
	}
	if len(j.Calls) > 0 {
		slowest := slices.MaxFunc(j.Calls, func(x, y TracedCall) int { return int(min(1, max(-1, x.Length()-y.Length()))) })
		fmt.Fprintf(&b, "slowest: %s, call %d, %v at %v\n", slowest.Request, slowest.Seq, slowest.Length(), time.Duration(slowest.Begin()))
	}
	return b.Bytes()
}
