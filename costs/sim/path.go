package sim

import (
	"slices"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
)

// Piece is a part of the critical path: from Begin to End something held up everything
// that comes after it. Each piece begins when the one before it ends.
type Piece struct {
	Cause      Cause
	Begin, End Time
	Rank       levels.Rank // on which something was done; of a message the receiver
	Pass       int64
	Step       int32 // which was done; of a message the step that it is for; -1: none
}

// Cause is what goes on during a piece. The zero value is invalid.
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

// log is what processors did, and because of what.
type log struct {
	chunks []*[chunk]act // all full, except the last one: what is there is never copied
	count  int32         // of acts
	last   []int32       // by rank: its latest act; -1: none
	ready  [][]trigger   // by rank and step of the running pass
	finals []trigger     // by rank: what finished it
}

// act is one thing that a processor did: to execute a step, or to take a message. It
// has one cause: whatever came last of all that it waited for.
type act struct {
	begin, end Time
	cause      trigger
	came       Time // when the message arrived that is the cause; the cause's time if there is none
	waited     Time // that message, for wires
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

// add adds an act and returns its number.
func (l *log) add(a act) int32 {
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

// load makes the first steps of a pass ready.
func (l *log) load(r *rank) {
	l.ready[r.id] = sized(l.ready[r.id], r.form.len())
	for _, id := range r.form.first {
		l.release(r, id)
	}
}

// release notes what made a step ready.
func (l *log) release(r *rank, id int32) { l.ready[r.id][id] = trigger{r.clock, l.last[r.id]} }

// finish notes what finished a rank.
func (l *log) finish(r *rank) { l.finals[r.id] = trigger{r.clock, l.last[r.id]} }

// execute opens the act of executing a step.
func (l *log) execute(r *rank, id int32) {
	what := Handling
	switch r.form.steps[id].kind {
	case submodules.CopyStep, submodules.ShareStep:
		what = Copying
	case submodules.ReduceStep:
		what = Combining
	}
	cause := l.ready[r.id][id]
	l.open(r, act{cause: cause, came: cause.at, step: id, pass: int32(r.pass), what: what})
}

// hear opens the act of taking a message.
func (l *log) hear(r *rank, m *message, p *prices) {
	a := act{cause: trigger{m.cpuEnd, m.by}, came: m.came, waited: m.waited, step: m.step, pass: m.pass, what: Handling}
	if m.kind != left {
		a.latency = p.links[r.pairs[m.conn].link].latency
	}
	l.open(r, a)
}

// open adds an act. If the processor was busy until now, and with something that is more
// recent than the cause, this is the cause.
func (l *log) open(r *rank, a act) {
	a.rank, a.begin = r.id, r.clock
	if before := l.last[r.id]; before >= 0 && l.at(before).end == a.begin && a.came < a.begin {
		a.cause = trigger{a.begin, before}
		a.came, a.waited, a.latency = a.begin, 0, 0
	}
	l.last[r.id] = l.add(a)
}

// close ends the latest act of a rank.
func (l *log) close(r *rank) { l.at(l.last[r.id]).end = r.clock }

// path returns the chain of causes that leads to the rank that finished last, the lowest
// one if several did. It begins when a rank starts: starts are by rank, nil if all are 0.
func (l *log) path(end Time, starts []Time) (all []Piece) {
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
