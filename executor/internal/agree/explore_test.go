package agree

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// This file holds the slow twin of a network: it takes a system of machines through all that can
// happen to it, in every order, and looks at each state.

// long is how much more is explored on demand.
var long = os.Getenv("TIERFLOW_TEST_LONG") != ""

// scene is what may happen in an exploration.
type scene struct {
	size       int
	crashes    int  // whose end is proven to all who live
	vanished   int  // crashes that can only be suspected
	suspicions int  // of ranks that live
	leavings   int  // of ranks that live: they are left out by one that sees a quorum without them
	by, left   int  // who leaves whom out; equal: anybody does anybody
	eager      bool // all have begun before anything happens
}

func (s scene) String() string {
	return fmt.Sprintf("n=%d crashes=%d vanished=%d suspicions=%d leavings=%d", s.size, s.crashes, s.vanished, s.suspicions, s.leavings)
}

// envelope is a message on its way.
type envelope struct {
	Message
	hash uint64
}

// verdict is a decision as its proposer made it.
type verdict struct {
	value     *Decision
	accepters Set
	hash      uint64
}

// node is a rank at some time; it never changes.
type node struct {
	Machine
	hash uint64
}

// system is a state of all ranks and of what is on its way; it never changes.
type system struct {
	scene    *scene
	nodes    [5]*node
	net      []*envelope
	verdicts []verdict
	dead     uint8 // crashed
	provable uint8 // of dead
	left     [4]int8
	path     *step
}

// step is what happened last, and what was before.
type step struct {
	text   func() string
	before *step
}

func (s *step) String() string {
	var lines []string
	for ; s != nil; s = s.before {
		lines = append([]string{s.text()}, lines...)
	}
	return strings.Join(lines, "\n")
}

func newSystem(sc *scene) *system {
	s := &system{scene: sc, left: [4]int8{int8(sc.crashes), int8(sc.vanished), int8(sc.suspicions), int8(sc.leavings)}}
	for r := range sc.size {
		m := New(Config{Size: sc.size, Rank: r, ID: uint64(r)})
		s.nodes[r] = &node{Machine: m, hash: hashMachine(&m)}
	}
	if sc.eager {
		for r := range sc.size {
			s.act(r, func(m *Machine) []Message { return m.Begin(uint32(10+r), true) })
		}
	}
	return s
}

// fork returns a copy to change.
func (s *system) fork(text func() string) *system {
	next := *s
	next.net = append(make([]*envelope, 0, len(s.net)+6), s.net...)
	next.verdicts = s.verdicts[:len(s.verdicts):len(s.verdicts)]
	next.path = &step{text, s.path}
	return &next
}

func (s *system) isDead(r int) bool { return s.dead>>r&1 != 0 }

// act lets a rank do something, and takes what it sends.
func (s *system) act(r int, do func(m *Machine) []Message) {
	m := s.nodes[r].Machine
	for _, msg := range do(&m) {
		if s.isDead(msg.To) {
			continue
		}
		e := &envelope{msg, hashMessage(&msg)}
		known := false
		for _, other := range s.net {
			known = known || other.hash == e.hash
		}
		if !known {
			s.net = append(s.net, e)
		}
	}
	s.nodes[r] = &node{Machine: m, hash: hashMachine(&m)}
}

// deliver delivers message i; twice: it stays on its way.
func (s *system) deliver(i int, twice bool) *system {
	e := s.net[i]
	next := s.fork(func() string {
		return fmt.Sprintf("%d hears %v of %d: lost %v, proven %v, left out %v, ballot %v, value %v", e.To, e.Kind, e.From, e.Lost.Ranks(), e.Proven.Ranks(), e.Left.Ranks(), e.Ballot, e.Value)
	})
	if !twice {
		next.net = append(next.net[:i], next.net[i+1:]...)
	}
	undecided := s.nodes[e.To].decided == nil
	next.act(e.To, func(m *Machine) []Message {
		var out []Message
		if e.Kind != Decide && !m.began {
			out = m.Begin(uint32(10+e.To), true)
		}
		return append(out, m.Hear(e.Message)...)
	})
	next.noteVerdict(e.To, undecided && e.Kind != Decide)
	return next
}

// noteVerdict notes that a proposer has decided.
func (s *system) noteVerdict(r int, undecided bool) {
	m := s.nodes[r]
	if undecided && m.decided != nil {
		v := verdict{value: m.decided, accepters: m.accepters}
		v.hash = hasher(7).set(v.accepters).value(v.value).sum()
		s.verdicts = append(s.verdicts, v)
	}
}

func (s *system) lose(a, b int, proven bool) *system {
	next := s.fork(func() string { return fmt.Sprintf("%d loses %d, proven: %v", a, b, proven) })
	undecided := s.nodes[a].decided == nil
	next.act(a, func(m *Machine) []Message { return m.Lose(b, proven) })
	next.noteVerdict(a, undecided)
	return next
}

func (s *system) leaveOut(a, b int) *system {
	next := s.fork(func() string { return fmt.Sprintf("%d leaves %d out", a, b) })
	next.left[3]--
	undecided := s.nodes[a].decided == nil
	next.act(a, func(m *Machine) []Message { return m.LeaveOut(b) })
	next.noteVerdict(a, undecided)
	return next
}

func (s *system) crash(r, kind int) *system {
	next := s.fork(func() string { return fmt.Sprintf("%d dies", r) })
	next.left[kind]--
	next.dead |= 1 << r
	if kind == 0 {
		next.provable |= 1 << r
	}
	kept := next.net[:0]
	for _, e := range next.net {
		if e.To != r {
			kept = append(kept, e)
		}
	}
	next.net = kept
	return next
}

// steps calls f with what makes each state that may come next, until f returns false; wild: somebody dies there, or is
// suspected. It reports whether nothing has to happen any more: what is on its way from the dead may never arrive, and nobody
// has to die or be suspected.
func (s *system) steps(f func(wild bool, next func() *system) bool) (ended bool) {
	ended = true
	for i, e := range s.net {
		ended = ended && s.isDead(e.From)
		if !f(false, func() *system { return s.deliver(i, false) }) {
			return false
		}
	}
	for a := range s.scene.size {
		if s.isDead(a) {
			continue
		}
		m := s.nodes[a]
		if !m.began && m.decided == nil {
			ended = false
			if !f(false, func() *system {
				next := s.fork(func() string { return fmt.Sprintf("%d begins", a) })
				next.act(a, func(m *Machine) []Message { return m.Begin(uint32(10+a), true) })
				next.noteVerdict(a, true)
				return next
			}) {
				return false
			}
		}
		for kind := range 2 {
			if s.left[kind] > 0 && !f(true, func() *system { return s.crash(a, kind) }) {
				return false
			}
		}
		for b := range s.scene.size {
			proven := s.provable>>b&1 != 0
			may := s.scene.by == s.scene.left || a == s.scene.by && b == s.scene.left
			if may && a != b && !s.isDead(b) && s.left[3] > 0 && !m.out && !m.lost.Has(b) && Quorum(s.scene.size, m.living().Without(Of(b)), m.proven) &&
				!f(true, func() *system { return s.leaveOut(a, b) }) {
				return false
			}
			switch {
			case a == b:
				continue
			case s.isDead(b) && (proven && !m.proven.Has(b) || !m.lost.Has(b)):
				ended = false
				if !f(false, func() *system { return s.lose(a, b, proven) }) {
					return false
				}
			case !s.isDead(b) && s.left[2] > 0 && !m.lost.Has(b):
				if !f(true, func() *system {
					next := s.lose(a, b, false)
					next.left[2]--
					return next
				}) {
					return false
				}
			}
		}
	}
	return ended
}

// isOver reports whether a rank has died, or has heard that it is no member of what was
// decided: then it does nothing any more.
func (s *system) isOver(r int) bool {
	d := s.nodes[r].decided
	return s.isDead(r) || d != nil && !d.Members.Has(r)
}

func (s *system) areDead(ranks Set) bool {
	for _, r := range ranks.Ranks() {
		if !s.isDead(r) {
			return false
		}
	}
	return true
}

// check looks at what must be so in each state. Whom one rank leaves out takes nobody with it.
func (s *system) check() error {
	var left Set // by any rank
	for r := range s.scene.size {
		left = left.Union(s.nodes[r].left)
	}
	for a := range s.scene.size {
		m := s.nodes[a]
		if m.lost.Has(a) || !m.lost.Includes(m.proven) {
			return fmt.Errorf("rank %d counts %v as lost, %v as proven", a, m.lost.Ranks(), m.proven.Ranks())
		}
		for _, r := range m.proven.Ranks() {
			if !s.isOver(r) {
				return fmt.Errorf("rank %d holds a proof that %d has ended; it lives", a, r)
			}
		}
		if m.decided == nil || s.isDead(a) {
			continue
		}
		if calm := s.scene.crashes+s.scene.vanished+s.scene.suspicions == 0; calm && s.scene.leavings == 1 && m.decided.Members.Union(left).Count() < s.scene.size {
			return fmt.Errorf("rank %d has decided %v; only %v was left out", a, m.decided, left.Ranks())
		}
		for b := range a {
			d, o := m.decided, s.nodes[b].decided
			if o == nil || s.isDead(b) || same(d, o) {
				continue
			}
			if !(s.areDead(d.Members) || s.areDead(o.Members)) {
				return fmt.Errorf("rank %d has decided %v, rank %d %v", a, d, b, o)
			}
		}
	}
	return s.checkVerdicts()
}

// checkVerdicts compares the last decision of a proposer with those before: the ones who
// accepted another one must all be over. It had a quorum, and nobody is a member who had no vote.
func (s *system) checkVerdicts() error {
	if len(s.verdicts) == 0 {
		return nil
	}
	last := s.verdicts[len(s.verdicts)-1]
	if !s.isQuorum(last.accepters) {
		return fmt.Errorf("%v was decided by %v: no quorum", last.value, last.accepters.Ranks())
	}
	for _, r := range last.value.Members.Ranks() {
		if !s.nodes[r].began {
			return fmt.Errorf("%v was decided: rank %d has not voted", last.value, r)
		}
	}
	for _, v := range s.verdicts[:len(s.verdicts)-1] {
		for _, r := range v.accepters.Ranks() {
			if !same(v.value, last.value) && !s.isOver(r) {
				return fmt.Errorf("%v was decided, and %v, which rank %d had accepted", last.value, v.value, r)
			}
		}
	}
	return nil
}

// isQuorum is [Quorum]'s twin: it knows who is over.
func (s *system) isQuorum(ranks Set) bool {
	in, over := 0, 0
	for r := range s.scene.size {
		switch {
		case ranks.Has(r):
			in++
		case s.isOver(r):
			over++
		}
	}
	out := s.scene.size - in - over
	return out == 0 || in > out+over || in == out+over && ranks.Has(0)
}

// checkEnd looks at what must be so when nothing happens any more: if a living rank has decided all
// have, else nobody has a quorum whom the others vote for.
func (s *system) checkEnd() error {
	decided := -1
	for r := range s.scene.size {
		if !s.isDead(r) && s.nodes[r].decided != nil {
			decided = r
		}
	}
	for r := range s.scene.size {
		m := s.nodes[r]
		switch {
		case s.isDead(r) || m.decided != nil:
		case decided >= 0 && !s.areDead(s.nodes[decided].decided.Members):
			return fmt.Errorf("rank %d waits for ever; rank %d has decided", r, decided)
		case m.root() == r && m.Quorate():
			return fmt.Errorf("rank %d waits for ever; it has lost %v, %v proven", r, m.lost.Ranks(), m.proven.Ranks())
		case !m.out && s.nodes[m.root()].out:
			return fmt.Errorf("rank %d waits for ever for %d, which was left out", r, m.root())
		}
	}
	return nil
}

func (d *Decision) String() string {
	if d == nil {
		return "nothing"
	}
	return fmt.Sprintf("%d:%v lost %v calls %v", d.ID, d.Members.Ranks(), d.Lost.Ranks(), d.Calls)
}

func same(d, o *Decision) bool {
	return d == o || d.ID == o.ID && d.Members.Equal(o.Members) && d.Lost.Equal(o.Lost) && d.Calls == o.Calls
}

// forgetIdle takes away messages that change nothing, now or later.
func (s *system) forgetIdle() {
	s.net = slices.DeleteFunc(s.net, func(e *envelope) bool {
		m := s.nodes[e.To]
		switch {
		case m.decided != nil:
			return e.Kind == Decide || s.isDead(e.From)
		case e.Kind != Decide && m.began && m.proven.Has(e.From):
			return true
		}
		return e.Kind == Accepted && (m.proposal == nil || e.Ballot != m.ballot()) && m.lost.Includes(e.Lost) && m.proven.Includes(e.Proven) && !e.Lost.Has(e.To) && !m.lost.Has(e.From)
	})
}

// isSettled reports whether all who live have decided: what happens from then on changes nothing.
func (s *system) isSettled() bool {
	for r := range s.scene.size {
		if !s.isDead(r) && s.nodes[r].decided == nil {
			return false
		}
	}
	return true
}

// hash identifies the state.
func (s *system) hash() uint64 {
	h := hasher(s.dead)<<32 | hasher(s.provable)<<24 | hasher(s.left[0])<<16 | hasher(s.left[1])<<8 | hasher(s.left[2])<<4 | hasher(s.left[3])
	for _, n := range s.nodes[:s.scene.size] {
		h = h.word(n.hash)
	}
	net := uint64(0)
	for _, e := range s.net {
		net += e.hash
	}
	for _, v := range s.verdicts {
		h = h.word(v.hash)
	}
	return h.word(net).sum()
}

// hasher mixes words.
type hasher uint64

func (h hasher) word(w uint64) hasher {
	x := uint64(h)*0x9e3779b97f4a7c15 ^ w
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	x ^= x >> 29
	return hasher(x)
}

func (h hasher) sum() uint64 { return uint64(h.word(1)) }

func (h hasher) set(s Set) hasher {
	if len(s) == 0 {
		return h.word(0)
	}
	return h.word(s[0])
}

func (h hasher) flag(b bool) hasher {
	if b {
		return h.word(1)
	}
	return h.word(2)
}

func (h hasher) ballot(b Ballot) hasher { return h.word(uint64(b.Root)<<32 | uint64(b.Count)) }

func (h hasher) value(d *Decision) hasher {
	if d == nil {
		return h.word(3)
	}
	return h.word(d.ID).set(d.Members).set(d.Lost).set(d.Proven).word(uint64(d.Calls[0])<<32 | uint64(d.Calls[1])).flag(d.OK)
}

func hashMessage(m *Message) uint64 {
	return hasher(m.Kind).word(uint64(m.From)<<32 | uint64(m.To)).set(m.Lost).set(m.Proven).set(m.Left).ballot(m.Ballot).value(m.Value).word(uint64(m.Calls)).flag(m.OK).sum()
}

// hashMachine leaves out what doesn't matter to a machine that has decided.
func hashMachine(m *Machine) uint64 {
	h := hasher(m.votedFor + 2).value(m.decided).set(m.lost).set(m.proven).set(m.left).flag(m.out)
	if m.decided != nil {
		return h.sum()
	}
	return h.flag(m.began).ballot(m.promised).ballot(m.accepted).value(m.value).
		set(m.votedLost).set(m.votedProven).set(m.tally.voters).ballot(m.tally.ballot).value(m.tally.value).
		word(uint64(m.tally.calls[0])<<32 | uint64(m.tally.calls[1])).
		word(uint64(m.count)).value(m.proposal).set(m.proposed).set(m.accepters).sum()
}

// explore looks at all states of a scene.
func explore(sc scene) (states int, err error) {
	first := newSystem(&sc)
	seen := map[uint64]struct{}{first.hash(): {}}
	todo := []*system{first}
	for len(todo) > 0 && err == nil {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		ended := s.steps(func(_ bool, reach func() *system) bool {
			next := reach()
			next.forgetIdle()
			h := next.hash()
			if _, known := seen[h]; known {
				return true
			}
			seen[h] = struct{}{}
			if err = next.check(); err != nil {
				err = fmt.Errorf("%v: %w, after\n%v", sc, err, next.path)
				return false
			}
			if !next.isSettled() {
				todo = append(todo, next)
			}
			return true
		})
		if err == nil && ended {
			if err = s.checkEnd(); err != nil {
				err = fmt.Errorf("%v: %w, after\n%v", sc, err, s.path)
			}
		}
	}
	return len(seen), err
}

// scenes are explored whole.
var scenes = []scene{
	{size: 1},
	{size: 2, crashes: 1, vanished: 1, suspicions: 2},
	{size: 3, crashes: 2, suspicions: 1, eager: true},
	{size: 4, crashes: 1, eager: true},
	{size: 3, crashes: 1, leavings: 1, eager: true},
	{size: 4, leavings: 1, by: 3, left: 1, eager: true},
}

// longScenes are explored whole on demand; they take a minute.
var longScenes = []scene{
	{size: 3, crashes: 1, suspicions: 1},
	{size: 3, crashes: 1, vanished: 1, suspicions: 2, eager: true},
	{size: 4, crashes: 1, suspicions: 1, eager: true},
	{size: 3, crashes: 1, vanished: 1, leavings: 2},
	{size: 4, leavings: 1, eager: true},
	{size: 3, suspicions: 1, leavings: 1, eager: true},
}

func TestAllStates(t *testing.T) {
	all := scenes
	if long {
		all = slices.Concat(scenes, longScenes)
	}
	for _, sc := range all {
		t.Run(sc.String(), func(t *testing.T) {
			states, err := explore(sc)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d states", states)
		})
	}
}

// walk takes a system through one random history to its end.
func walk(sc scene, r *rand.Rand) error {
	s := newSystem(&sc)
	for {
		// What happens is mostly that a message arrives: a death in each step would leave nothing to see.
		var calm, wild []func() *system
		ended := s.steps(func(isWild bool, next func() *system) bool {
			if isWild {
				wild = append(wild, next)
			} else {
				calm = append(calm, next)
			}
			return true
		})
		if ended {
			if err := s.checkEnd(); err != nil {
				return fmt.Errorf("%v: %w, after\n%v", sc, err, s.path)
			}
		}
		switch {
		case len(wild) > 0 && r.IntN(8) == 0:
			s = wild[r.IntN(len(wild))]()
		case len(s.net) > 0 && r.IntN(16) == 0:
			s = s.deliver(r.IntN(len(s.net)), true)
		case len(calm) > 0:
			s = calm[r.IntN(len(calm))]()
		default:
			return nil
		}
		if err := s.check(); err != nil {
			return fmt.Errorf("%v: %w, after\n%v", sc, err, s.path)
		}
	}
}

func TestRandomWalks(t *testing.T) {
	walks := 400
	if long {
		walks = 10_000_000
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range walks {
		sc := scene{size: 5, crashes: r.IntN(5), vanished: r.IntN(2), suspicions: r.IntN(4), leavings: r.IntN(3), eager: r.IntN(2) == 0}
		if err := walk(sc, r); err != nil {
			t.Fatalf("seed %d, walk %d: %v", seed, i, err)
		}
	}
}
