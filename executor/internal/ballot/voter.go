package ballot

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tierflow/tierflow/executor/internal/agree"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// Voter is one rank's part in all its agreements. Its methods may be called by any goroutine.
type Voter struct {
	port Port
	me   levels.Rank // of the world

	life    context.Context // ends with Stop
	endLife context.CancelFunc
	running sync.WaitGroup

	mu   sync.Mutex
	all  map[Topic]*Agreement
	quit bool // no vote is given any more
}

// NewVoter returns the voter of a rank of the world.
func NewVoter(me levels.Rank, p Port) *Voter {
	v := &Voter{port: p, me: me, all: map[Topic]*Agreement{}}
	v.life, v.endLife = context.WithCancel(context.Background())
	return v
}

// Open returns the agreement on a topic among members, ranks of the world. nil: this rank votes no
// more.
func (v *Voter) Open(t Topic, members []levels.Rank) *Agreement {
	v.mu.Lock()
	defer v.mu.Unlock()
	if m := v.all[t]; m != nil {
		return m
	}
	if v.quit {
		return nil
	}
	m := &Agreement{
		voter: v, Topic: t, Members: members, known: make(chan struct{}), nudge: make(chan struct{}, 1), repeats: map[int][]agree.Message{},
		opened: time.Now(), heard: map[int]time.Time{}, unanswered: map[int]int{},
		machine: agree.New(agree.Config{Size: len(members), Rank: slices.Index(members, v.me), ID: v.port.Draw()}),
	}
	v.all[t] = m
	v.running.Go(m.tend)
	return m
}

// Refuse answers a message about a forgotten agreement, on the way that it came: its sender counted as lost when
// the next one was decided.
func (v *Voter) Refuse(t Topic, members []levels.Rank, from levels.Rank, b []byte, straight bool) {
	msg, err := agree.Parse(b, len(members))
	if err != nil || members[msg.From] != from {
		return
	}
	machine := agree.New(agree.Config{Size: len(members), Rank: slices.Index(members, v.me)})
	machine.Lose(msg.From, false)
	for _, answer := range machine.Hear(msg) {
		v.port.Send(from, t, answer.Append(nil, len(members)), straight)
	}
}

// Find returns the agreement on a topic; nil: there is none.
func (v *Voter) Find(t Topic) *Agreement {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.all[t]
}

// FindAll returns the agreements of a communicator, in any order.
func (v *Voter) FindAll(id wire.CommID) (all []*Agreement) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for t, m := range v.all {
		if t.Comm == id {
			all = append(all, m)
		}
	}
	return all
}

// Forget forgets a decided agreement. Nobody asks about it any more.
func (v *Voter) Forget(t Topic) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if m := v.all[t]; m != nil && m.decision != nil {
		delete(v.all, t)
	}
}

// ForgetAll forgets the agreements of a communicator that all members have left, unless a rank that was left out may
// still ask.
func (v *Voter) ForgetAll(id wire.CommID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for t, m := range v.all {
		if t.Comm == id && m.decision != nil && !m.mayBeAsked() {
			delete(v.all, t)
		}
	}
}

// Nudge lets the agreements look for lost ranks at once.
func (v *Voter) Nudge() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, m := range v.all {
		if m.isOpen() {
			select {
			case m.nudge <- struct{}{}:
			default:
			}
		}
	}
}

// Quit withdraws from all agreements, and from later ones.
func (v *Voter) Quit() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.quit = true
	for _, m := range v.all {
		m.withdrawn = m.withdrawn || m.decision == nil
	}
}

// Stop is Quit, and returns when nothing of the voter runs any more.
func (v *Voter) Stop() {
	v.Quit()
	v.endLife()
	v.running.Wait()
}

// Withdraw ends this rank's part in an agreement, if it isn't decided yet: this rank counts as ended for
// the others then. onward: it is decided, and this rank is a member; owed: and its program
// doesn't know.
func (v *Voter) Withdraw(t Topic) (m *Agreement, onward, owed bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	m = v.all[t]
	switch {
	case m == nil:
		return nil, false, false
	case m.decision == nil:
		m.withdrawn = true
		return m, false, false
	}
	onward = m.decision.Members.Has(m.rank())
	return m, onward, onward && !m.taken
}
