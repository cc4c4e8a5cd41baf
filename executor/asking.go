package executor

import (
	"time"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/levels"
)

// The wait for states is bounded by stateTime, and by lateTime after a deadline, because the answer
// then breaks a communicator. Ranks silent for straightAfter are asked again, past the control
// tree.
const (
	stateTime     = 2 * time.Second
	lateTime      = 5 * time.Second
	straightAfter = 200 * time.Millisecond
)

// patience is the longest wait.
func (a *askReason) patience() time.Duration {
	if a.forLate {
		return lateTime
	}
	return stateTime
}

// askStates asks ranks of the world for their states, and calls take with each answer. It returns
// when all have answered, the time is over, or isOver reports true.
func (c *control) askStates(whom rankSet, left map[levels.Rank]bool, about askReason, isOver func() bool, take func(flight.State)) {
	answers := make(chan flight.State, 2*len(left)) // a rank may be asked twice
	c.mu.Lock()
	c.lastQuestion++
	q := c.lastQuestion
	c.states[q] = answers
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.states, q)
	}()
	n := note{Question: q, To: whom, Comm: about.comm, Seq: about.seq, ForLate: about.forLate, ForCall: about.call}
	begin := time.Now()
	c.broadcast(stateQuestionControl, n)
	until, end := begin.Add(straightAfter), begin.Add(about.patience())
	for len(left) > 0 {
		s, ok := awaitState(answers, until, isOver)
		switch {
		case ok:
			if r := levels.Rank(s.Rank); left[r] {
				delete(left, r)
				take(s)
			}
		case isOver(), until == end:
			return
		default:
			until = end
			c.askStraight(left, n)
		}
	}
}

// mostStraight bounds the ranks asked past the control tree.
const mostStraight = 32

// askStraight asks ranks over connections of their own: the tree may end at a stopped rank.
func (c *control) askStraight(left map[levels.Rank]bool, n note) {
	n.Straight, n.To = true, nil
	b, count := n.bytes(), 0
	for r := range left {
		if count++; count > mostStraight {
			return
		}
		c.runApart(func() { _ = c.deliverDirect(directNote{r, stateQuestionControl, b}) }) // a rank out of reach is silent
	}
}

// awaitState waits for an answer.
func awaitState(answers <-chan flight.State, end time.Time, isOver func() bool) (s flight.State, ok bool) {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case s := <-answers:
			return s, true
		case now := <-look.C:
			if now.After(end) || isOver() {
				return s, false
			}
		}
	}
}

// answerState answers with this rank's state, on a goroutine of its own: reading the program's place takes a while.
func (c *control) answerState(from levels.Rank, n note) {
	e := c.world.endpoints[c.me]
	c.runApart(func() {
		e.mu.Lock()
		e.noteAsked(n)
		e.mu.Unlock()
		s := c.world.states([]levels.Rank{c.me}, askReason{n.Comm, n.Seq, n.ForCall, n.ForLate}, func() bool { return false })[0]
		s.Near = c.world.lookNear(c.me)
		answer := note{Question: n.Question, Is: &s}
		if n.Straight {
			_ = c.deliverDirect(directNote{from, stateAnswerControl, answer.bytes()}) // a rank out of reach asks in vain
			return
		}
		c.retry(func() error { return c.send(from, stateAnswerControl, answer) })
	})
}

// noteAsked notes the time of another process's question about a communicator. The lock is held.
func (e *Endpoint) noteAsked(n note) {
	defer e.tellNews()
	if one := e.comms[n.Comm]; one != nil && n.ForLate {
		one.askedLate = time.Now()
	} else if one != nil {
		one.askedStall = time.Now()
	}
}

// takeState takes a rank's answer to a question for its state.
func (c *control) takeState(from levels.Rank, n note) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answers := c.states[n.Question]; answers != nil && n.Is != nil && n.Is.Rank == int(from) {
		select {
		case answers <- *n.Is:
		default: // a further answer to the same question
		}
	}
}

// States returns the states of some ranks of the world; nil: of all. Ranks of other processes count
// as silent if they have not answered within two seconds. It disturbs no call, but stops the
// program for about a microsecond for each goroutine.
func (w *World) States(ranks []levels.Rank) []flight.State {
	if ranks == nil {
		ranks = w.everyRank()
	}
	return w.states(ranks, askReason{comm: noComm}, func() bool { return false })
}

// noComm is the communicator of a question that takes no other question's place.
const noComm = ^CommID(0)

// askReason is the reason for a question about states.
type askReason struct {
	comm    CommID // listed first; its ranks leave the next question to this one
	seq     uint32 // of the call, if call is set
	call    bool   // a collective: ranks already in it need not say where their programs stand
	forLate bool   // a deadline has passed, and the answer will break the communicator
}

// states is [World.States] for a reason, until isOver reports true.
func (w *World) states(ranks []levels.Rank, about askReason, isOver func() bool) []flight.State {
	all := make([]flight.State, len(ranks))
	var stacks []stack
	var departed rankSet // nil: not looked up yet
	at, left, far := map[levels.Rank]int{}, map[levels.Rank]bool{}, newRankSet(w.Size())
	for i, r := range ranks {
		if e := w.endpoints[r]; e != nil {
			all[i] = e.State(about.comm)
			if come, _ := all[i].HasCome(uint64(about.comm), about.seq); about.call && come {
				continue
			}
			if stacks == nil {
				stacks = w.stacks.read()
			}
			all[i].At = findProgram(stacks, e.caller.Load(), w.control != nil)
			is := w.config.elsewhere()
			is.tell(&all[i])
			continue
		}
		if s, ok := w.lookAt(r); ok {
			all[i] = s
			continue
		}
		if departed == nil {
			departed = w.departedRanks()
		}
		if departed.has(int32(r)) {
			all[i] = flight.State{Rank: int(r), Doing: flight.Left}
			continue
		}
		all[i] = flight.State{Rank: int(r), Doing: flight.Silent}
		at[r], left[r] = i, true
		far.set(int32(r))
	}
	if len(at) > 0 && w.control != nil && !w.control.ended.Load() { // who has said goodbye to the job gets no answer
		w.control.askStates(far, left, about, isOver, func(s flight.State) { all[at[levels.Rank(s.Rank)]] = s })
	}
	return all
}

// departedRanks returns the ranks of other processes with a goodbye to all.
func (w *World) departedRanks() rankSet {
	all := newRankSet(w.Size())
	if w.control == nil {
		return all
	}
	e := w.endpoints[w.control.me]
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.comms[0]
	if c == nil {
		return all
	}
	for r := range c.byeHalves {
		all.set(int32(r))
	}
	for _, r := range c.outsiders() {
		all.set(int32(r))
	}
	return all
}

// lookAt returns the state of a rank of another process that can't answer for itself.
func (w *World) lookAt(r levels.Rank) (s flight.State, ok bool) {
	if w.config.Neighbor == nil {
		return s, false
	}
	return w.config.Neighbor(r)
}

// mostNear bounds the states of neighbors in one answer.
const mostNear = 8

// lookNear returns the states of this node's ranks that can't answer for themselves.
func (w *World) lookNear(me levels.Rank) (all []flight.State) {
	nodes := w.config.Nodes
	for r := range nodes {
		if nodes[r] == nodes[me] && r != int(me) && len(all) < mostNear {
			if s, ok := w.lookAt(levels.Rank(r)); ok {
				s.Open = s.Open[:min(1, len(s.Open))]
				all = append(all, s)
			}
		}
	}
	return all
}

// localStates is [World.States] of the ranks of this process.
func (w *World) localStates() []flight.State {
	var ranks []levels.Rank
	w.eachLocal(func(e *Endpoint) { ranks = append(ranks, e.rank) })
	return w.States(ranks)
}
