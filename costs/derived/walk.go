package derived

import (
	"container/heap"
	"fmt"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Walk returns the longest path through the programs of all ranks, by rank. The longest path
// depends on the time of a message: at gives it. If all messages are equally long and nothing is
// combined, any line gives the same path. The package comment has the rules. Programs that don't
// fit together are an error.
func Walk(progs []*submodules.Program, g Gamma, at Line) (Coeff, error) {
	w := &walker{gamma: g, at: at, ends: make([]moment, len(progs))}
	err := w.run(progs)
	return latestOf(w.ends).path, err
}

// run walks the programs of all ranks. Each begins where it ended before.
func (w *walker) run(progs []*submodules.Program) error {
	w.ranks = make([]walked, len(progs))
	for i, p := range progs {
		if int(p.Rank) != i || p.Size != len(progs) {
			return fmt.Errorf("walk: a program of rank %d of %d in place %d of %d", p.Rank, p.Size, i, len(progs))
		}
		w.enterRank(i, p)
	}
	for len(w.queue) > 0 {
		now := w.queue[0].at
		for len(w.queue) > 0 && w.queue[0].at.time == now.time {
			w.takeEvent(heap.Pop(&w.queue).(event))
		}
		w.settleBursts(now)
	}
	for i := range w.ranks {
		if left := w.ranks[i].left; left > 0 {
			return fmt.Errorf("walk: rank %d has %d steps that never begin", i, left)
		}
	}
	return nil
}

// latestOf returns the latest of all moments, of equal ones the first.
func latestOf(all []moment) (last moment) {
	for _, m := range all {
		last = laterOf(last, m)
	}
	return last
}

// WalkRequest compiles a request for all ranks of t and returns its longest path. Passes
// come one after the other.
func WalkRequest(r tasks.Request, t *levels.Topology, p tasks.Plan, reg submodules.Registry, g Gamma, at Line) (Coeff, error) {
	ends, err := walkRequest(r, t, p, reg, &walker{gamma: g, at: at})
	return latestOf(ends).path, err
}

// WalkRanks returns the longest path to the end of each rank, by rank. Here the messages of a burst
// come one after the other: the first one after one message's time. That is nearer to reality, and
// tells early ranks from late ones.
func WalkRanks(r tasks.Request, t *levels.Topology, p tasks.Plan, reg submodules.Registry, g Gamma, at Line) ([]Coeff, error) {
	ends, err := walkRequest(r, t, p, reg, &walker{gamma: g, at: at, isStaggered: true})
	if err != nil {
		return nil, err
	}
	all := make([]Coeff, len(ends))
	for rank := range ends {
		all[rank] = ends[rank].path
	}
	return all, nil
}

// walkRequest returns when each rank ends.
func walkRequest(r tasks.Request, t *levels.Topology, p tasks.Plan, reg submodules.Registry, w *walker) ([]moment, error) {
	whole, rest := make([]*submodules.Program, t.Size()), make([]*submodules.Program, t.Size())
	passes := int64(0)
	for rank := range whole {
		c, err := submodules.CompileRequest(r, t, p, levels.Rank(rank), reg)
		if err != nil {
			return nil, err
		}
		whole[rank], rest[rank], passes = c.Whole, c.Rest, c.Passes
	}
	w.ends = make([]moment, t.Size())
	if passes > 0 {
		if err := w.run(whole); err != nil {
			return nil, err
		}
		more := latestOf(w.ends)
		for rank := range w.ends { // the other passes are as long
			w.ends[rank] = moment{more.time * passes, more.path.Times(float64(passes))}
		}
	}
	if rest[0] != nil {
		if err := w.run(rest); err != nil {
			return nil, err
		}
	}
	return w.ends, nil
}

// moment is when something happens, and the path to it.
type moment struct {
	time int64 // in units of 1/resolution ns: sums of them don't depend on their order
	path Coeff
}

// resolution is how many units of time a nanosecond has.
const resolution = 1 << 10

// endMoment returns the moment at the end of a path from m.
func (w *walker) endMoment(m moment, c Coeff) moment {
	return moment{m.time + int64(w.at.NS(c)*resolution), m.path.plus(c)}
}

// laterOf returns the later one of two moments.
func laterOf(a, b moment) moment {
	if b.time > a.time {
		return b
	}
	return a
}

// walker follows programs.
type walker struct {
	gamma Gamma
	at    Line
	ranks []walked
	queue queue
	count int64    // events made
	dirty []int    // ranks with a reason to begin a burst
	ends  []moment // by rank: when its last step until now has ended

	isStaggered bool // a burst's messages come one after the other, see [WalkRanks]
}

// walked is one rank's state.
type walked struct {
	prog    *submodules.Program
	waits   []int32  // by step: how many things it still waits for
	ready   []moment // by step: the latest moment of those things until now
	left    int      // steps still to end
	sends   []dag.ID // ready, in the order of steps
	busy    bool     // a burst is under way
	freed   moment   // when the last burst ends
	isDirty bool
	worker  moment // when its last reduction ends
	port    inlet
}

// event is the end of a burst or of a step.
type event struct {
	at     moment
	count  int64 // earlier events of one moment come first
	rank   int
	burst  []dag.ID // nil: step ends
	began  moment   // of a burst
	isPart bool     // others of the burst end later
	step   dag.ID   // None: the rank begins
}

// enterRank brings in a rank. A receive waits for its message beside its predecessors. A step
// without predecessors waits for the rank to begin.
func (w *walker) enterRank(rank int, p *submodules.Program) {
	r := &w.ranks[rank]
	*r = walked{prog: p, waits: make([]int32, p.Len()), ready: make([]moment, p.Len()), left: p.Len()}
	for id := range dag.ID(p.Len()) {
		r.waits[id] = int32(max(1, len(p.Pred(id))))
		if p.Step(id).Kind.Incoming() {
			r.waits[id]++
		}
	}
	w.push(event{at: w.ends[rank], rank: rank, step: submodules.None})
}

// beginRank lets a rank begin.
func (w *walker) beginRank(rank int, at moment) {
	p := w.ranks[rank].prog
	for id := range dag.ID(p.Len()) {
		if len(p.Pred(id)) == 0 {
			w.releaseStep(rank, id, at)
		}
	}
}

// beginStep begins a step. It waits for nothing any more.
func (w *walker) beginStep(rank int, id dag.ID) {
	r := &w.ranks[rank]
	switch s := r.prog.Step(id); {
	case s.Kind.Outgoing():
		r.sends = append(r.sends, id)
		w.noteReady(rank)
	case s.Kind == submodules.ReduceStep:
		r.worker = w.endMoment(laterOf(r.ready[id], r.worker), Coeff{Combined: float64(s.Len())})
		w.push(event{at: r.worker, rank: rank, step: id})
	default:
		w.push(event{at: r.ready[id], rank: rank, step: id})
	}
}

// noteReady notes that a rank may begin a burst.
func (w *walker) noteReady(rank int) {
	if r := &w.ranks[rank]; !r.isDirty {
		r.isDirty = true
		w.dirty = append(w.dirty, rank)
	}
}

func (w *walker) push(e event) {
	w.count++
	e.count = w.count
	heap.Push(&w.queue, e)
}

// takeEvent takes an event.
func (w *walker) takeEvent(e event) {
	switch {
	case e.step == submodules.None:
		w.beginRank(e.rank, e.at)
		return
	case e.burst == nil:
		w.endStep(e.rank, e.step, e.at)
		return
	}
	r := &w.ranks[e.rank]
	if !e.isPart {
		r.busy = false
		w.noteReady(e.rank)
	}
	for _, id := range e.burst {
		w.deliverMessage(r.prog, id, e.began, e.at)
		w.endStep(e.rank, id, e.at)
	}
}

// deliverMessage brings a message to its peer.
func (w *walker) deliverMessage(from *submodules.Program, id dag.ID, began, ended moment) {
	s := from.Step(id)
	to := int(from.Peers[s.Peer].Rank)
	r := &w.ranks[to]
	back := r.prog.PeerIndex(from.Rank)
	if back < 0 || int(s.Edge) >= len(r.prog.Peers[back].In) {
		return // that rank has no step for it: run complains of steps that never begin
	}
	there := r.port.hearMessage(w, began, ended, float64(s.Len()))
	w.releaseStep(to, r.prog.Peers[back].In[s.Edge], there)
}

// endStep ends a step.
func (w *walker) endStep(rank int, id dag.ID, at moment) {
	r := &w.ranks[rank]
	r.left--
	w.ends[rank] = laterOf(w.ends[rank], at)
	for _, next := range r.prog.Succ(id) {
		w.releaseStep(rank, next, at)
	}
}

// releaseStep counts down the things a step waits for.
func (w *walker) releaseStep(rank int, id dag.ID, at moment) {
	r := &w.ranks[rank]
	r.ready[id] = laterOf(r.ready[id], at)
	if r.waits[id]--; r.waits[id] == 0 {
		w.beginStep(rank, id)
	}
}

// settleBursts begins the bursts of this moment.
func (w *walker) settleBursts(now moment) {
	for _, rank := range w.dirty {
		r := &w.ranks[rank]
		r.isDirty = false
		if !r.busy && len(r.sends) > 0 {
			w.beginBurst(rank, now)
		}
	}
	w.dirty = w.dirty[:0]
}

// queue is a heap of events.
type queue []event

// Len is how many events wait.
func (q queue) Len() int { return len(q) }

// Less orders by time.
func (q queue) Less(i, j int) bool {
	if q[i].at.time != q[j].at.time {
		return q[i].at.time < q[j].at.time
	}
	return q[i].count < q[j].count
}

// Swap swaps two events.
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push adds an event.
func (q *queue) Push(x any) { *q = append(*q, x.(event)) }

// Pop takes the last one off.
func (q *queue) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}
