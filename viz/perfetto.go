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
			lines = append(lines, t.meta("process_name", 0, nameArgs{fmt.Sprintf("rank %d", t.rank)}),
				t.meta("process_sort_index", 0, indexArgs{int(t.rank)}))
		}
		lane, n := t.lanes()
		for k := range n {
			lines = append(lines, t.meta("thread_name", thread+1+k, nameArgs{t.laneName(k)}),
				t.meta("thread_sort_index", thread+1+k, indexArgs{thread + 1 + k}))
		}
		for j := range t.slices {
			lines = append(lines, t.slices[j].event(thread+1+lane[j]))
		}
		thread += n
	}
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
	lines = append(lines, t.meta("process_name", 0, nameArgs{"critical path"}), t.meta("process_sort_index", 0, indexArgs{-1}))
	for i := range path {
		p := &path[i]
		begin, length := microsecond(p.Begin), microsecond(p.End-p.Begin)
		lines = append(lines, traceEvent{
			Name: p.Label, Cat: p.kind(), Ph: "X", Ts: &begin, Dur: &length, Pid: pathProcess, Tid: 1,
			Args: pathArgs{p.Cause, p.Task, p.Rank},
		})
	}
	return lines
}

func (t *track) laneName(lane int) string {
	if lane == 0 {
		return string(rune(t.level))
	}
	return fmt.Sprintf("%c +%d", t.level, lane)
}

// meta is an event that says how to show a process or a thread.
func (t *track) meta(name string, thread int, args any) traceEvent {
	return traceEvent{Name: name, Ph: "M", Pid: int32(t.rank), Tid: thread, Args: args}
}

func (s *slice) event(thread int) traceEvent {
	begin, length := microsecond(s.Begin), microsecond(s.End-s.Begin)
	return traceEvent{
		Name: s.label, Cat: s.kind(), Ph: "X", Ts: &begin, Dur: &length, Pid: int32(s.Rank), Tid: thread,
		Args: stepArgs{s.task, s.bytes, s.Run, s.Pass},
	}
}
