package ballot

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
)

// paper is a network of voters. Those in lost count as lost everywhere, and say nothing.
type paper struct {
	voters  []*Voter
	members []levels.Rank
	lost    []levels.Rank
	gone    atomic.Bool                     // the end of the lost can be proven
	drop    func(from, to levels.Rank) bool // nil: nothing is lost
	passes  bool                            // what is sent straight isn't
	silent  func(r levels.Rank) bool        // who answers no question; nil: all do
	muted   atomic.Int32                    // ranks that count as lost because of it, each once for each that says so
	decided atomic.Int32
}

var topic = Topic{Comm: 7}

func newPaper(n int, lost ...levels.Rank) *paper {
	p := &paper{lost: lost}
	for r := range levels.Rank(n) {
		p.members = append(p.members, r)
		p.voters = append(p.voters, NewVoter(r, Port{
			Send: func(to levels.Rank, t Topic, b []byte, straight bool) {
				if !slices.Contains(lost, to) && (p.drop == nil || !p.drop(r, to) || straight && p.passes) {
					go p.hear(to, r, t, b, straight)
				}
			},
			Lost: func(Topic) (suspects, ended, left []levels.Rank) { return lost, nil, nil },
			Gone: func(_ context.Context, to levels.Rank) bool {
				return p.gone.Load() && (slices.Contains(lost, to) || p.drop != nil && p.drop(to, r))
			},
			Silent: func(ranks []levels.Rank, _ func() bool) (silent []levels.Rank) {
				for _, of := range ranks {
					if p.silent != nil && p.silent(of) {
						silent = append(silent, of)
					}
				}
				if len(silent) > 0 {
					time.Sleep(askTime) // so long it takes to know
				}
				return silent
			},
			Muted:   func(levels.Rank) { p.muted.Add(1) },
			Draw:    func() uint64 { return uint64(100 + r) },
			Decided: func(*Agreement) { p.decided.Add(1) },
		}))
	}
	return p
}

// hear lets a rank hear of the agreement as a library does: it votes at once.
func (p *paper) hear(to, from levels.Rank, t Topic, b []byte, straight bool) {
	if m := p.voters[to].Open(t, p.members); m != nil {
		m.Begin(0, true)
		_ = m.Hear(from, b, straight)
	}
}

// begin lets one rank begin, and returns its part.
func (p *paper) begin(r levels.Rank) *Agreement {
	m := p.voters[r].Open(topic, p.members)
	m.Begin(0, true)
	return m
}

func (p *paper) stop() {
	for _, v := range p.voters {
		v.Stop()
	}
}

// want looks at what was decided everywhere.
func (p *paper) want(t *testing.T, members ...levels.Rank) {
	t.Helper()
	for _, r := range members {
		m := p.voters[r].Find(topic)
		if m == nil || m.Decision() == nil {
			t.Errorf("rank %d has no decision", r)
			continue
		}
		if id, ranks := m.Next(); !slices.Equal(ranks, members) || id < 100 {
			t.Errorf("rank %d goes on with %v on %v; want %v", r, ranks, id, members)
		}
		if !m.Decision().Members.Has(m.rank()) {
			t.Errorf("rank %d does not go on", r)
		}
	}
	if got := int(p.decided.Load()); got != len(members) {
		t.Errorf("%d ranks have taken a decision; want %d", got, len(members))
	}
}

// One rank begins; all decide without the lost one, in no time.
func TestDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaper(5, 2)
		defer p.stop()
		began := time.Now()
		<-p.begin(4).Known()
		synctest.Wait()
		p.want(t, 0, 1, 3, 4)
		if d := time.Since(began); d != 0 {
			t.Errorf("it took %v, though nothing was lost", d)
		}
	})
}

// Messages that were lost are said again: after a while, and at once when a loss becomes known.
func TestSaidAgain(t *testing.T) {
	for _, nudged := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := newPaper(4, 0)
			defer p.stop()
			var broken atomic.Bool
			broken.Store(true)
			p.drop = func(_, _ levels.Rank) bool { return broken.Load() }
			began := time.Now()
			for _, r := range []levels.Rank{1, 2, 3} {
				p.begin(r)
			}
			synctest.Wait()
			if p.decided.Load() != 0 {
				t.Error("decided without a message")
			}
			broken.Store(false)
			if nudged {
				for _, r := range []levels.Rank{1, 2, 3} {
					p.voters[r].Nudge()
				}
			}
			<-p.voters[3].Find(topic).Known()
			synctest.Wait()
			p.want(t, 1, 2, 3)
			switch d := time.Since(began); {
			case nudged && d != 0:
				t.Errorf("said again after %v; want at once", d)
			case !nudged && (d < againTime || d > 2*againTime):
				t.Errorf("said again after %v; want about %v", d, againTime)
			}
		})
	}
}

// Half of the ranks without the lowest go on only when the ends of the others are proven.
func TestProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaper(4, 0, 1)
		defer p.stop()
		m := p.begin(3)
		clocktest.Pass(time.Minute)
		since, lost := m.State()
		if m.Decision() != nil || since.IsZero() || !slices.Equal(lost, []levels.Rank{0, 1}) {
			t.Errorf("decided %v, in a minority since %v, without %v", m.Decision(), since, lost)
		}
		p.gone.Store(true)
		<-m.Known()
		clocktest.Pass(mostAgain)
		p.want(t, 2, 3)
	})
}

// The decision has the fewest and the most calls of all votes. That holds where the numbers begin anew, too.
func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaper(3)
		defer p.stop()
		var begun atomic.Bool // before, a message would let its receiver begin with no call
		p.drop = func(_, _ levels.Rank) bool { return !begun.Load() }
		for r, calls := range []uint32{1, 1<<32 - 1, 0} {
			p.voters[r].Open(topic, p.members).Begin(calls, true)
		}
		begun.Store(true)
		<-p.voters[2].Find(topic).Known()
		if d := p.voters[2].Find(topic).Decision(); d == nil || d.Calls != [2]uint32{1<<32 - 1, 1} {
			t.Errorf("decided %+v; want calls from 1<<32 - 1 to 1", d)
		}
	})
}

// A rank whose end nobody has told of is looked for when it says nothing. The others soon go on if its end can be proven at
// once, and not before it can.
func TestUnheardEnd(t *testing.T) {
	for _, unknown := range []time.Duration{0, time.Minute} { // time without a proof
		synctest.Test(t, func(t *testing.T) {
			p := newPaper(3)
			defer p.stop()
			p.drop = func(from, to levels.Rank) bool { return from == 0 || to == 0 }
			p.gone.Store(unknown == 0) // of whom it is asked
			began := time.Now()
			m := p.begin(1)
			p.begin(2)
			if unknown > 0 {
				clocktest.Pass(unknown)
				if m.Decision() != nil {
					t.Error("decided without one that may live")
				}
				p.gone.Store(true)
			}
			<-m.Known()
			if took := time.Since(began); unknown == 0 && took > 2*quietTime {
				t.Errorf("decided after %v", took)
			}
			clocktest.Pass(mostAgain)
			p.want(t, 1, 2)
		})
	}
}

// A rank that says nothing, and answers no question, counts as lost after about ten seconds, whether it is the lowest or not. One that
// answers may take its time: it is in a long operation. None of that needs a way through a third rank.
func TestSilence(t *testing.T) {
	for _, mute := range []levels.Rank{0, 2} {
		for _, answers := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				p := newPaper(4)
				defer p.stop()
				p.silent = func(r levels.Rank) bool { return r == mute && !answers }
				p.passes = true
				p.drop = func(from, to levels.Rank) bool { // 3 is behind another one, until that one counts as lost
					return p.decided.Load() == 0 && (from == 3 || to == 3)
				}
				stopped := func(from, to levels.Rank) bool { return from == mute || to == mute }
				for r := range p.voters {
					send := p.voters[r].port.Send
					p.voters[r].port.Send = func(to levels.Rank, topic Topic, b []byte, straight bool) {
						if !stopped(levels.Rank(r), to) {
							send(to, topic, b, straight)
						}
					}
				}
				began := time.Now()
				m := p.begin(1)
				p.begin(3)
				if answers {
					clocktest.Pass(time.Minute)
					if m.Decision() != nil || p.muted.Load() > 0 {
						t.Errorf("decided %v without one that answers", m.Decision())
					}
					return
				}
				<-m.Known()
				if took := time.Since(began); took < 10*time.Second || took > 12*time.Second {
					t.Errorf("decided after %v", took)
				}
				clocktest.Pass(mostAgain)
				if p.muted.Load() == 0 {
					t.Error("nobody says so")
				}
				p.want(t, slices.DeleteFunc(slices.Clone(p.members), func(r levels.Rank) bool { return r == mute })...)
			})
		}
	}
}

// Where a stopped rank is to be left out, which would pass messages on, they go past it from the start.
func TestGoStraight(t *testing.T) {
	for _, stopped := range []levels.Rank{0, 2} {
		synctest.Test(t, func(t *testing.T) {
			p := newPaper(4)
			defer p.stop()
			p.passes, p.drop = true, func(_, _ levels.Rank) bool { return true }
			others := slices.DeleteFunc(slices.Clone(p.members), func(r levels.Rank) bool { return r == stopped })
			began := time.Now()
			for _, r := range others {
				p.voters[r].port.Lost = func(Topic) (suspects, ended, left []levels.Rank) { return nil, nil, []levels.Rank{stopped} }
				send := p.voters[r].port.Send
				p.voters[r].port.Send = func(to levels.Rank, topic Topic, b []byte, straight bool) {
					if to != stopped {
						send(to, topic, b, straight)
					}
				}
				p.voters[r].Open(topic, p.members).GoStraight()
				p.begin(r)
			}
			for _, r := range others {
				<-p.voters[r].Find(topic).Known()
			}
			if took := time.Since(began); took > 2*againTime {
				t.Errorf("decided after %v", took)
			}
			p.want(t, others...)
		})
	}
}

// A rank that withdraws before the decision counts as silent. After it has quit it opens nothing.
func TestWithdrawal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaper(3)
		defer p.stop()
		m := p.voters[1].Open(topic, p.members)
		if _, onward, owed := p.voters[1].Withdraw(topic); onward || owed {
			t.Error("a rank goes on with what was not decided")
		}
		m.Begin(0, true)
		p.begin(0)
		clocktest.Pass(time.Minute)
		if p.decided.Load() != 0 {
			t.Error("decided without one that counts as here")
		}
		p.voters[1].Open(Topic{Comm: 8}, p.members)
		if all := p.voters[1].FindAll(topic.Comm); len(all) != 1 || all[0] != m {
			t.Errorf("%d agreements of one communicator", len(all))
		}
		p.voters[2].Quit()
		if p.voters[2].Open(Topic{Comm: 8}, p.members) != nil {
			t.Error("a rank that has quit takes part")
		}
	})
}

// An agreement that was forgotten counts as lost to those who ask. Nonsense is an error.
func TestRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaper(3)
		defer p.stop()
		var told atomic.Int32
		p.drop = func(_, to levels.Rank) bool { told.Add(int32(to) + 1); return true }
		m := p.begin(1)
		vote := m.repeats[0][0].Append(nil, 3)
		told.Store(0)
		p.voters[0].Refuse(topic, p.members, 1, vote, false)
		if told.Load() != 2 {
			t.Errorf("rank 1 was not told; sum %d", told.Load())
		}
		if m := p.voters[2].Open(topic, p.members); m.Hear(1, vote, false) == nil || m.Hear(0, vote, false) == nil || m.Hear(0, []byte{1}, false) == nil {
			t.Error("a vote for another rank, from another rank, or nonsense is heard")
		}
	})
}
