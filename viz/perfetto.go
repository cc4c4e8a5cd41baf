package viz

import (
	"bytes"
	"fmt"

	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
)

// traceEvent is one line of a Chrome trace, see [Perfetto].
type traceEvent struct {
	Name string       `json:"name"`
	Cat  string       `json:"cat,omitempty"`
	Ph   string       `json:"ph"`
	ID   string       `json:"id,omitempty"` // of an arrow: both ends have it
	BP   string       `json:"bp,omitempty"` // e: an arrow ends in the slice around it
	Ts   *microsecond `json:"ts,omitempty"`
	Dur  *microsecond `json:"dur,omitempty"`
	Pid  int32        `json:"pid"`
	Tid  int          `json:"tid"`
	Args any          `json:"args"`
}

type stepArgs struct {
	Task  string `json:"task"`
	Bytes int64  `json:"bytes"`
	Run   uint32 `json:"run"`
	Pass  uint32 `json:"pass"`
}

type pathArgs struct {
	Cause string      `json:"cause"`
	Task  string      `json:"task"`
	Rank  levels.Rank `json:"rank"`
}

type nameArgs struct {
	Name string `json:"name"`
}

type indexArgs struct {
	Index int `json:"sort_index"`
}

// microsecond is nanoseconds that print as the microseconds the format wants.
type microsecond int64

// MarshalJSON writes a number with three decimals.
func (m microsecond) MarshalJSON() ([]byte, error) {
	sign, ns := "", uint64(m)
	if m < 0 {
		sign, ns = "-", -ns
	}
	return fmt.Appendf(nil, "%s%d.%03d", sign, ns/1000, ns%1000), nil
}

// Perfetto writes step events in the Chrome trace event format, which Perfetto
// and chrome://tracing open. A rank is a process, a level a thread of it with the
// level's symbol for a name; where steps of a level overlap, further threads
// "i +1", "i +2" … hold what the first can't. Slices are named by the step's label,
// their category is the task kind. Events for whole runs are left out. The critical path,
// if it is given, is a process of its own above all ranks.
func Perfetto(events []trace.Event, path ...PathPiece) []byte {
	lines := pathLines(path)
	all := tracks(events)
	thread := 0 // ids count from 1 in each process
	for i := range all {
		t := &all[i]
		if i == 0 || all[i-1].rank != t.rank {
			thread = 0
			lines = append(lines, t.processLines(fmt.Sprintf("rank %d", t.rank), int(t.rank))...)
		}
		lane, n := t.lanes()
		for k := range n {
			lines = append(lines, t.threadLines(t.laneName(k), thread+1+k)...)
		}
		for j := range t.slices {
			s := &t.slices[j]
			lines = append(lines, t.makeSlice(s.label, s.kind(), s.Begin, s.End, thread+1+lane[j], s.args(s.Run)))
		}
		thread += n
	}
	return writeTrace(lines)
}

// writeTrace writes the events of a trace.
func writeTrace(lines []any) []byte {
	var b bytes.Buffer
	b.WriteString(`{"displayTimeUnit": "ns", "traceEvents": `)
	writeLines(&b, lines, nil)
	b.WriteString("}\n")
	return b.Bytes()
}

// pathProcess is the process of the critical path: no rank has that number.
const pathProcess = levels.MaxRanks

// pathLines are the events of the process that is the critical path.
func pathLines(path []PathPiece) (lines []any) {
	if len(path) == 0 {
		return nil
	}
	t := track{rank: pathProcess}
	lines = t.processLines("critical path", -1)
	for i := range path {
		p := &path[i]
		lines = append(lines, t.makeSlice(p.Label, kindOf(p.Task), p.Begin, p.End, 1, pathArgs{p.Cause, p.Task, p.Rank}))
	}
	return lines
}

func (t *track) laneName(lane int) string {
	if lane == 0 {
		return string(rune(t.level))
	}
	return fmt.Sprintf("%c +%d", t.level, lane)
}

// processLines are the events with the name of the track's process and its place among all.
func (t *track) processLines(name string, index int) []any {
	return []any{t.meta("process_name", 0, nameArgs{name}), t.meta("process_sort_index", 0, indexArgs{index})}
}

// threadLines are the events with the name of a thread and its place in the process: its number.
func (t *track) threadLines(name string, thread int) []any {
	return []any{t.meta("thread_name", thread, nameArgs{name}), t.meta("thread_sort_index", thread, indexArgs{thread})}
}

// meta is an event that says how to show a process or a thread.
func (t *track) meta(name string, thread int, args any) traceEvent {
	return traceEvent{Name: name, Ph: "M", Pid: int32(t.rank), Tid: thread, Args: args}
}

// makeSlice returns a slice of a thread.
func (t *track) makeSlice(name, category string, begin, end int64, thread int, args any) traceEvent {
	return traceEvent{
		Name: name, Cat: category, Ph: "X", Ts: new(microsecond(begin)), Dur: new(microsecond(end - begin)),
		Pid: int32(t.rank), Tid: thread, Args: args,
	}
}

// args are those of the slice of a step in a run.
func (s *slice) args(run uint32) stepArgs { return stepArgs{s.task, s.bytes, run, s.Pass} }
