package submoduletest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// traitSizes are the groups to count traits in: powers of two, and others between.
var traitSizes = []int{2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 33}

// counted is an algorithm's traits as programs show them.
type counted struct{ rounds, partners int }

// traits holds an algorithm's traits against the programs of groups of many sizes.
func (u underTest) traits() error {
	says := u.algo.Traffic[u.op]
	var sizes []int
	var rounds, partners []int
	for _, n := range traitSizes {
		progs, err := u.whole(n, 0)
		if err != nil {
			return err
		}
		if progs == nil {
			continue
		}
		c := u.count(progs)
		sizes, rounds, partners = append(sizes, n), append(rounds, c.rounds), append(partners, c.partners)
	}
	folds := u.algo.Folds && foldable(u.op)
	return errors.Join(
		u.follows("rounds", says.Rounds, sizes, rounds, folds),
		u.follows("partners", says.Partners, sizes, partners, folds),
		u.schedule(), u.folding(), u.inOrder(), u.ways(), u.like(), u.usual(),
	)
}

// follows holds numbers against their growth. If ranks fold it holds on powers of two, and
// others are above it.
func (u underTest) follows(what string, says submodules.Growth, sizes, got []int, folds bool) error {
	matches := func(g submodules.Growth) bool {
		for i, n := range sizes {
			if want := g.Of(n); got[i] != want && (!folds || n&(n-1) == 0) {
				return false
			}
		}
		return true
	}
	if says != 0 && !matches(says) {
		return fmt.Errorf("its %s are said to be %v, but are %d among %d ranks", what, says, got, sizes)
	}
	for _, g := range submodules.Growths() {
		if says == 0 && matches(g) {
			return fmt.Errorf("its %s are said to have no closed form, but are %v", what, g)
		}
	}
	return nil
}

// foldable reports whether all ranks of an operation may be alike, except for folded ones.
func foldable(op tasks.Collective) bool {
	return op == tasks.Allreduce || op == tasks.Reduce
}

// folding holds Folds against the ranks with one peer only: there are some among nine ranks, but
// none among eight.
func (u underTest) folding() error {
	if u.op != tasks.Allreduce {
		return nil
	}
	fewest := map[int]int{}
	for _, n := range []int{8, 9} {
		progs, err := u.whole(n, 0)
		if err != nil || progs == nil {
			return err
		}
		fewest[n] = n
		for _, p := range progs {
			fewest[n] = min(fewest[n], len(p.Peers))
		}
	}
	if folds := fewest[8] > 1 && fewest[9] == 1; folds != u.algo.Folds {
		return fmt.Errorf("the trait Folds is %t, but some rank of 8 speaks with %d others and of 9 with %d", u.algo.Folds, fewest[8], fewest[9])
	}
	return nil
}

// edge is a sender and its receiver.
type edge [2]levels.Rank

// edges lists the bytes between ranks in u's tasks.
func (u underTest) edges(progs []*submodules.Program) map[edge]int64 {
	all := map[edge]int64{}
	for _, p := range progs {
		for _, s := range p.Steps() {
			if s.Kind == submodules.SendStep && p.Task(&s).Kind.Op == u.op {
				all[edge{p.Rank, p.Peers[s.Peer].Rank}] += s.Len()
			}
		}
	}
	return all
}

// goesAlongTree reports whether an operation has one message for all or from all.
func goesAlongTree(op tasks.Collective) bool { return op == tasks.Bcast || op == tasks.Reduce }

// inOrder holds InOrder against the edges under any leader: those of a tree, and one more from
// its top to the leader.
func (u underTest) inOrder() error {
	if u.op != tasks.Reduce {
		return nil
	}
	const n = 9
	most := 0
	always := map[edge]int{}
	for leader := range n {
		progs, err := u.whole(n, leader)
		if err != nil || progs == nil {
			return err
		}
		edges := u.edges(progs)
		for e := range edges {
			always[e]++
		}
		most = max(most, len(edges))
	}
	fixed := 0
	for _, times := range always {
		if times == n {
			fixed++
		}
	}
	if is := fixed == n-1 && most <= n; is != u.algo.InOrder {
		return fmt.Errorf("InOrder is %t, but %d edges among %d ranks are the same whoever leads", u.algo.InOrder, fixed, n)
	}
	return nil
}

// ways holds Ways against the senders of a bcast's pieces.
func (u underTest) ways() error {
	if u.op != tasks.Bcast {
		return nil
	}
	var sizes, got []int
	for _, n := range traitSizes {
		c := cut{tasks.Whole, 1, 0}
		if u.algo.Inner {
			c.inner = 8
		}
		progs, err := u.compilePrograms(n, 0, c, 0)
		if err != nil || progs == nil {
			return err
		}
		from := map[levels.Rank]int{}
		most := 0
		for e := range u.edges(progs) {
			from[e[1]]++
			most = max(most, from[e[1]])
		}
		sizes, got = append(sizes, n), append(got, most)
	}
	if u.algo.Ways == 0 && slices.Max(got) > 1 {
		return fmt.Errorf("all pieces are said to come in one way, but come in %d among %d ranks", got, sizes)
	}
	if u.algo.Ways == 0 {
		return nil
	}
	return u.follows("ways", u.algo.Ways, sizes, got, false)
}

// like holds Like and Share against the part of the message on the fullest edge.
func (u underTest) like() error {
	if u.algo.Like == "" || !goesAlongTree(u.op) {
		return nil
	}
	i := slices.IndexFunc(u.sub.Algorithms(), func(a submodules.Algorithm) bool { return a.Name == u.algo.Like })
	if i < 0 || !u.sub.Algorithms()[i].Does(u.op) {
		return fmt.Errorf("the trait Like is %q, which %s doesn't have for %v", u.algo.Like, u.sub.Name(), u.op)
	}
	other := u
	other.algo = u.sub.Algorithms()[i]
	var most [2]int64
	for k, one := range []underTest{u, other} {
		progs, err := one.whole(9, 0)
		if err != nil || progs == nil {
			return err
		}
		for _, bytes := range one.edges(progs) {
			most[k] = max(most[k], bytes)
		}
	}
	if share := float64(most[0]) / float64(most[1]); share < u.algo.Share*0.9 || share > u.algo.Share*1.1 {
		return fmt.Errorf("the trait Share is %g, but an edge carries %g of what one of %s does", u.algo.Share, share, u.algo.Like)
	}
	return nil
}

// usual makes sure that a plan with the usual number gives the same programs as one without a
// number.
func (u underTest) usual() error {
	if !u.algo.Number.Taken() {
		return nil
	}
	const n = 36 // above all usual numbers
	plain, err := u.whole(n, 0)
	if err != nil || plain == nil {
		return err
	}
	numbered, err := u.compilePrograms(n, 0, cut{tasks.Whole, 1, 0}, u.algo.Number.Usual)
	if err != nil {
		return err
	}
	for rank := range plain {
		if err := same(plain[rank], numbered[rank]); err != nil {
			return fmt.Errorf("its number is usually %d: %w", u.algo.Number.Usual, err)
		}
	}
	return nil
}

// port is a rank of a job; it sends one message at a time and receives one.
type port struct {
	prog  *submodules.Program
	waits []int    // by step: how many others it waits for, and its message
	sends []dag.ID // waiting for a round, in the order of the program
	hears bool     // it receives in this round
}

// network plays programs in rounds.
type network []*port

// count plays programs. Steps without messages take no time, and neither do other tasks than
// u's.
func (u underTest) count(progs []*submodules.Program) (c counted) {
	var net network
	for _, p := range progs {
		net = append(net, &port{prog: p, waits: make([]int, p.Len())})
	}
	for _, at := range net {
		partners := map[int32]bool{}
		for id := range dag.ID(at.prog.Len()) {
			for _, next := range at.prog.Succ(id) {
				at.waits[next]++
			}
			s := at.prog.Step(id)
			if s.Kind.Incoming() {
				at.waits[id]++
			}
			if s.Peer >= 0 && at.prog.Task(s).Kind.Op == u.op {
				partners[s.Peer] = true
			}
		}
		c.partners = max(c.partners, len(partners))
	}
	for _, at := range net {
		for id := range dag.ID(at.prog.Len()) {
			if at.waits[id] == 0 {
				at.waits[id] = -1
				net.begin(at, id, u.op)
			}
		}
	}
	for net.round(u.op) {
		c.rounds++
	}
	return c
}

// begin does a step once it waits for nothing.
func (net network) begin(at *port, id dag.ID, op tasks.Collective) {
	s := at.prog.Step(id)
	if s.Kind.Outgoing() {
		if at.prog.Task(s).Kind.Op == op {
			at.sends = append(at.sends, id)
			return
		}
		net.arrive(at, s, op)
	}
	net.end(at, id, op)
}

// end releases the successors of a step.
func (net network) end(at *port, id dag.ID, op tasks.Collective) {
	for _, next := range at.prog.Succ(id) {
		net.release(at, next, op)
	}
}

func (net network) release(at *port, id dag.ID, op tasks.Collective) {
	if at.waits[id]--; at.waits[id] == 0 {
		at.waits[id] = -1
		net.begin(at, id, op)
	}
}

// arrive ends the receiver's waiting for a message.
func (net network) arrive(at *port, s *submodules.Step, op tasks.Collective) {
	peer := net[at.prog.Peers[s.Peer].Rank]
	net.release(peer, peer.prog.Peers[peer.prog.PeerIndex(at.prog.Rank)].In[s.Edge], op)
}

// round moves the messages of each rank for one other, with no other sender. It returns false if
// there was none.
func (net network) round(op tasks.Collective) bool {
	type message struct {
		from *port
		id   dag.ID
	}
	var moved []message
	for _, at := range net {
		at.hears = false
	}
	for _, at := range net {
		slices.Sort(at.sends)
		for _, id := range at.sends {
			s := at.prog.Step(id)
			if to := net[at.prog.Peers[s.Peer].Rank]; !to.hears {
				to.hears = true
				at.sends = slices.DeleteFunc(at.sends, func(other dag.ID) bool {
					together := at.prog.Step(other).Peer == s.Peer
					if together {
						moved = append(moved, message{at, other})
					}
					return together
				})
				break
			}
		}
	}
	for _, m := range moved {
		net.arrive(m.from, m.from.prog.Step(m.id), op)
		net.end(m.from, m.id, op)
	}
	return len(moved) > 0
}

// whole returns the programs of n ranks for a message in one piece, by the usual number; nil
// if the algorithm refuses such groups.
func (u underTest) whole(n, leader int) ([]*submodules.Program, error) {
	return u.compilePrograms(n, leader, cut{tasks.Whole, 1, 0}, 0)
}

// compilePrograms returns the programs of n ranks for u's operation by a number, 0 for the usual one;
// nil if the algorithm refuses such groups.
func (u underTest) compilePrograms(n, leader int, c cut, number int) ([]*submodules.Program, error) {
	topo, err := levels.Parse(strconv.Itoa(n))
	if err != nil {
		return nil, err
	}
	h := topo.Flat(levels.Rank(leader))
	if u.op == tasks.Prefix {
		h = u.ledBy(topo)[0]
	}
	r, known := u.plainRequest(h)
	if !known {
		return nil, nil
	}
	u.number = number
	p := u.plan(r, h, c)
	progs := make([]*submodules.Program, h.Topology().Size())
	for rank := range progs {
		if progs[rank], err = submodules.CompileFor(r, h, p, levels.Rank(rank), submodules.Registry{u.sub, star{}}); err != nil {
			return nil, fmt.Errorf("%v with plan %q: %w", r, p, err)
		}
	}
	return progs, nil
}

// plainRequest is the first request with tasks of u's operation that the algorithm doesn't
// refuse; false if there is none.
func (u underTest) plainRequest(h *levels.Hierarchy) (tasks.Request, bool) {
	for _, r := range u.requests() {
		if r.Coll.HasData() {
			r.Count = int64(64 * h.Topology().Size())
		}
		if r.Rooted() {
			r.Root = h.Root()
		}
		g, err := tasks.ExpandOn(r, h, u.plan(r, h, cut{tasks.Whole, 1, 0}), 0)
		if err != nil || u.isRestricted(r, h) {
			continue
		}
		if slices.ContainsFunc(g.Phases, func(ph tasks.Phase) bool { return ph.Kind.Op == u.op }) {
			return r, true
		}
	}
	return tasks.Request{}, false
}
