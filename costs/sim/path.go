package sim

import (
	"slices"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
)

// Piece is a part of the critical path: from Begin to End something held up everything after it.
// Each piece begins at the end of the one before it.
type Piece struct {
	Cause      Cause
	Begin, End Time
	Rank       levels.Rank // of the act; of a message the receiver
	Pass       int64
	Step       int32 // of the act; of a message the receiver's step for it; -1: none
}

// Cause is the activity during a piece. The zero value is invalid.
type Cause uint8

// The causes.
const (
	_         Cause = iota
	Handling        // a processor handles a step, or a message for it
	Copying         // a processor copies, or waits for the node's memory
	Combining       // the same of a reduction
	Queueing        // a message waits for a wire
	Sending         // a wire carries a message
	Latency         // a message is on its way
	Switching       // a rank waits for a processor, or a processor for its rank
	maxCause
)

var causeNames = [maxCause]string{
	Handling: "handling", Copying: "copying", Combining: "combining", Queueing: "queueing", Sending: "sending",
	Latency: "latency", Switching: "switching",
}

// String returns the cause's name.
func (c Cause) String() string {
	if c == 0 || c >= maxCause {
		return "invalid"
	}
	return causeNames[c]
}

// log is the acts of processors, and their causes.
type log struct {
	chunks []*[chunk]act // all full, except the last one: acts are never copied
	count  int32         // of acts
	last   []int32       // by rank: its latest act; -1: none
	ready  [][]trigger   // by rank and step of the running pass
	finals []trigger     // by rank: the end of its last act
}

// act is the execution of a step by a processor, or the taking of a message. It waits for several
// things and has one cause: the last of these.
type act struct {
	begin, end Time
	cause      trigger
	came       Time // arrival of the message that is the cause; the cause's time without one
	waited     Time // of that message, for wires
	latency    Time // of that message
	rank, step int32
	pass       int32
	what       Cause
}

// trigger is a moment during an act.
type trigger struct {
	at  Time
	act int32 // -1: the start
}

// chunk is how many acts are allocated at a time.
const chunk = 1 << 14

// at returns an act by its number.
func (l *log) at(i int32) *act { return &l.chunks[i/chunk][i%chunk] }

// addAct adds an act and returns its number.
func (l *log) addAct(a act) int32 {
	if l.count%chunk == 0 {
		l.chunks = append(l.chunks, new([chunk]act))
	}
	l.count++
	*l.at(l.count - 1) = a
	return l.count - 1
}

func newLog(ranks int) *log {
	l := &log{last: make([]int32, ranks), ready: make([][]trigger, ranks), finals: make([]trigger, ranks)}
	for r := range l.last {
		l.last[r] = -1
	}
	return l
}

// loadForm makes the first steps of a pass ready.
func (l *log) loadForm(r *rank) {
	l.ready[r.id] = sized(l.ready[r.id], r.form.len())
	for _, id := range r.form.first {
		l.noteReady(r, id)
	}
}

// noteReady notes the cause of a step's becoming ready.
func (l *log) noteReady(r *rank, id int32) { l.ready[r.id][id] = trigger{r.clock, l.last[r.id]} }

// noteEnd notes the cause of a rank's end.
func (l *log) noteEnd(r *rank) { l.finals[r.id] = trigger{r.clock, l.last[r.id]} }

// openStep opens the act of executing a step.
func (l *log) openStep(r *rank, id int32) {
	what := Handling
	switch r.form.steps[id].kind {
	case submodules.CopyStep, submodules.ShareStep:
		what = Copying
	case submodules.ReduceStep:
		what = Combining
	}
	cause := l.ready[r.id][id]
	l.openAct(r, act{cause: cause, came: cause.at, step: id, pass: int32(r.pass), what: what})
}

// openMessage opens the act of taking a message.
func (l *log) openMessage(r *rank, m *message, p *prices) {
	a := act{cause: trigger{m.cpuEnd, m.by}, came: m.came, waited: m.waited, step: m.step, pass: m.pass, what: Handling}
	if m.kind != left {
		a.latency = p.links[r.pairs[m.conn].link].latency
	}
	l.openAct(r, a)
}

// openAct adds an act. If the processor was busy until now, with something more recent than the cause,
// that is the cause.
func (l *log) openAct(r *rank, a act) {
	a.rank, a.begin = r.id, r.clock
	if before := l.last[r.id]; before >= 0 && l.at(before).end == a.begin && a.came < a.begin {
		a.cause = trigger{a.begin, before}
		a.came, a.waited, a.latency = a.begin, 0, 0
	}
	l.last[r.id] = l.addAct(a)
}

// closeAct ends the latest act of a rank.
func (l *log) closeAct(r *rank) { l.at(l.last[r.id]).end = r.clock }

// tracePath returns the chain of causes up to the end of the last rank, of several the lowest one. It
// begins at the start of a rank: starts are by rank, nil if all are 0.
func (l *log) tracePath(end Time, starts []Time) (all []Piece) {
	rank := slices.IndexFunc(l.finals, func(t trigger) bool { return t.at == end })
	t := l.finals[rank]
	for ; t.act >= 0; t = l.at(t.act).cause {
		a := l.at(t.act)
		rank = int(a.rank)
		until := t.at
		add := func(c Cause, begin Time) {
			if begin < until {
				all = append(all, Piece{c, begin, until, levels.Rank(a.rank), int64(a.pass), a.step})
				until = begin
			}
		}
		add(a.what, a.begin)
		add(Switching, a.came)
		add(Latency, max(a.cause.at, a.came-a.latency))
		add(Sending, a.cause.at+a.waited)
		add(Queueing, a.cause.at)
	}
	start := Time(0)
	if starts != nil {
		start = max(0, starts[rank])
	}
	if start < t.at { // the rank waited for a processor to start on
		all = append(all, Piece{Switching, start, t.at, levels.Rank(rank), 0, -1})
	}
	slices.Reverse(all)
	return all
}
