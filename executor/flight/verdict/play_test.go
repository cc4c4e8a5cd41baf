package verdict_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/submodules/check/casegen"
	"github.com/tierflow/tierflow/tasks"
)

// drawnJob is a job of some layout, with calls that its ranks make in one order.
type drawnJob struct {
	on    *levels.Topology
	nodes []string
	comms [][]int // the ranks of the world in each communicator
	calls []drawnCall
}

// drawnCall is a collective on a communicator.
type drawnCall struct {
	comm  int
	seq   uint32
	what  string
	progs []*submodules.Program
}

// drawJob draws one.
func drawJob(t *testing.T, rnd *rand.Rand) *drawnJob {
	j := &drawnJob{}
	var paths [][]int32
	nodes, each := 1+rnd.IntN([]int{1, 4, 16}[rnd.IntN(3)]), 1+rnd.IntN([]int{2, 8}[rnd.IntN(2)])
	for node := range nodes {
		for range max(1, each-rnd.IntN(2)) {
			paths = append(paths, []int32{int32(node)})
		}
	}
	if rnd.IntN(4) == 0 {
		rnd.Shuffle(len(paths), func(a, b int) { paths[a], paths[b] = paths[b], paths[a] })
	}
	var err error
	if j.on, err = levels.New(levels.Standard(2), paths); err != nil {
		t.Fatal(err)
	}
	var world, part []int
	for r := range paths {
		j.nodes = append(j.nodes, j.on.NodeName(levels.Rank(r)))
		world = append(world, r)
		if rnd.IntN(2) == 0 {
			part = append(part, r)
		}
	}
	j.comms = [][]int{world}
	if len(part) >= 2 {
		j.comms = append(j.comms, part)
	}
	seqs := make([]uint32, len(j.comms))
	for n := range 4 {
		comm := n % len(j.comms)
		j.calls = append(j.calls, j.drawCall(t, rnd, comm, seqs[comm]))
		seqs[comm]++
	}
	return j
}

// drawCall draws a collective, half of them with the plan that the rule chooses.
func (j *drawnJob) drawCall(t *testing.T, rnd *rand.Rand, comm int, seq uint32) drawnCall {
	var ranks []levels.Rank
	for _, r := range j.comms[comm] {
		ranks = append(ranks, levels.Rank(r))
	}
	on, err := j.on.Sub(ranks)
	if err != nil {
		t.Fatal(err)
	}
	for {
		c := casegen.Options{Topology: on, Registry: all.Submodules(), LeastSegment: 64}.Draw(rnd)
		if rnd.IntN(2) == 0 {
			c.Request.Counts, c.Request.Matrix = tasks.Counts{}, tasks.Matrix{}
			if c.Request.Coll.HasData() {
				c.Request.Count = []int64{1, 1024, 8192, 65536, 262144}[rnd.IntN(5)]
				if c.Request.Blocks() {
					c.Request.Count = max(1, c.Request.Count/int64(on.Size()))
				}
			}
			c.Plan, _ = builtin.Choose(c.Request, on, tasks.Plan{})
		}
		if progs := compile(c); progs != nil {
			return drawnCall{comm: comm, seq: seq, what: c.Request.String(), progs: progs}
		}
	}
}

// compile makes the programs of all ranks; nil: the plan can't do this.
func compile(c casegen.Case) (progs []*submodules.Program) {
	cut, err := tasks.CutRequest(c.Request, c.Topology, c.Plan)
	for rank := levels.Rank(0); err == nil && int(rank) < c.Topology.Size(); rank++ {
		var prog *submodules.Program
		prog, err = submodules.CompileFor(cut.Parts()[0], cut.On, c.Plan, rank, all.Submodules())
		progs = append(progs, prog)
	}
	if err != nil {
		return nil
	}
	return progs
}

// fault is what is planted.
type fault struct {
	scripts  [][]int         // the calls of each rank, in its order
	away     map[int]int     // rank: the place in its script that it doesn't come to
	frozen   map[int][2]int  // rank: the place of a call, and the steps after which it stops there
	cut      map[[2]int]bool // pairs of ranks from which and to which nothing comes
	odd      map[int]bool    // ranks with another request
	oddCall  int
	receives map[int]int // rank: the one from which it receives in place of its next call; -1: from any
	eager    int64
}

// play is a run of all ranks until nothing moves.
type play struct {
	*drawnJob
	fault
	at   []int // by rank, its place in its script
	runs [][]*playedRun
	todo []func()
}

// playedRun is a call of a rank; it exists before the rank comes, for what is early.
type playedRun struct {
	prog    *submodules.Program
	pending []int32
	reached []bool
	arrived []bool
	ended   []bool
	left    int
	begun   bool
	budget  int // steps until it stops; -1: it doesn't
}

// newPlay prepares a run.
func newPlay(j *drawnJob, f fault) *play {
	p := &play{drawnJob: j, fault: f, at: make([]int, len(j.nodes))}
	for k := range j.calls {
		c := &j.calls[k]
		runs := make([]*playedRun, len(j.nodes))
		for n, prog := range c.progs {
			size := prog.Len()
			runs[j.comms[c.comm][n]] = &playedRun{
				prog: prog, pending: slices.Clone(prog.InDegree()), left: size, budget: -1,
				reached: make([]bool, size), arrived: make([]bool, size), ended: make([]bool, size),
			}
		}
		p.runs = append(p.runs, runs)
	}
	for rank, at := range f.frozen {
		p.runs[f.scripts[rank][at[0]]][rank].budget = at[1]
	}
	return p
}

// run plays until nothing moves.
func (p *play) run() {
	for rank := range p.at {
		p.come(rank)
	}
	for len(p.todo) > 0 {
		next := p.todo[0]
		p.todo = p.todo[1:]
		next()
	}
}

// come lets a rank begin its next call.
func (p *play) come(rank int) {
	if away, is := p.away[rank]; p.at[rank] >= len(p.scripts[rank]) || is && away == p.at[rank] {
		return
	}
	call := p.scripts[rank][p.at[rank]]
	run := p.runs[call][rank]
	run.begun = true
	if run.left == 0 {
		p.at[rank]++
		p.come(rank)
		return
	}
	for id, n := range run.pending {
		if n == 0 {
			p.todo = append(p.todo, func() { p.reach(call, rank, dag.ID(id)) })
		}
	}
}

// peerOf returns the rank of the world at the other end of a step.
func (p *play) peerOf(call int, run *playedRun, s *submodules.Step) int {
	return p.comms[p.calls[call].comm][run.prog.Peers[s.Peer].Rank]
}

// passes reports whether messages of a call come from one rank to another.
func (p *play) passes(call, from, to int) bool {
	return !p.cut[[2]int{from, to}] && (call != p.oddCall || p.odd[from] == p.odd[to])
}

// reach does a step, or leaves it waiting.
func (p *play) reach(call, rank int, id dag.ID) {
	run := p.runs[call][rank]
	if run.budget == 0 || run.ended[id] {
		return
	}
	if run.budget > 0 && !run.reached[id] {
		run.budget--
	}
	run.reached[id] = true
	s := run.prog.Step(id)
	if !s.Kind.Incoming() && !s.Kind.Outgoing() {
		p.end(call, rank, id)
		return
	}
	peer := p.peerOf(call, run, s)
	other := p.runs[call][peer]
	back := &other.prog.Peers[other.prog.PeerIndex(run.prog.Rank)]
	if s.Kind.Incoming() {
		mate := back.Out[s.Edge]
		if run.arrived[id] {
			p.end(call, rank, id)
		} else if other.reached[mate] && !other.ended[mate] {
			p.todo = append(p.todo, func() { p.reach(call, peer, mate) })
		}
		return
	}
	mate := back.In[s.Edge]
	small := s.Kind == submodules.NotifyStep || s.Len() <= p.eager
	if !small && (!other.reached[mate] || !p.passes(call, peer, rank) || !p.passes(call, rank, peer)) {
		return
	}
	p.end(call, rank, id)
	if p.passes(call, rank, peer) {
		other.arrived[mate] = true
		if other.reached[mate] {
			p.todo = append(p.todo, func() { p.reach(call, peer, mate) })
		}
	}
}

// end ends a step, and the call with the last one.
func (p *play) end(call, rank int, id dag.ID) {
	run := p.runs[call][rank]
	run.ended[id] = true
	run.left--
	for _, next := range run.prog.Succ(id) {
		if run.pending[next]--; run.pending[next] == 0 {
			p.todo = append(p.todo, func() { p.reach(call, rank, next) })
		}
	}
	if run.left == 0 && run.begun && p.current(rank) == call {
		p.at[rank]++
		p.todo = append(p.todo, func() { p.come(rank) })
	}
}

// current returns the call that a rank is to make or in, -1 after the last.
func (p *play) current(rank int) int {
	if p.at[rank] < len(p.scripts[rank]) {
		return p.scripts[rank][p.at[rank]]
	}
	return -1
}

// state describes a rank that has stood still for some time.
func (p *play) state(rank int, long time.Duration) flight.State {
	s := flight.State{Rank: rank, Doing: flight.Outside, At: fmt.Sprintf("main.work main.go:%d", 10+rank), PID: 100 + rank, Last: "barrier #2", Since: time.Minute}
	calls := make([]uint32, len(p.comms))
	for n, call := range p.scripts[rank] {
		if n < p.at[rank] || n == p.at[rank] && p.runs[call][rank].begun {
			calls[p.calls[call].comm]++
		}
	}
	for comm, ranks := range p.comms {
		if slices.Contains(ranks, rank) {
			s.Called = append(s.Called, flight.Called{Comm: uint64(comm), Calls: calls[comm]})
		}
	}
	if from, is := p.receives[rank]; is {
		s.Doing = flight.Inside
		s.Open = []flight.Open{{What: fmt.Sprintf("receive from rank %d, tag 5", from), Transfer: true, Awaited: true, Peers: []int{from}, For: long}}
		if from < 0 {
			s.Open[0].What, s.Open[0].Any, s.Open[0].Peers = "receive from any rank, tag 5", true, nil
		}
	} else if call := p.current(rank); call >= 0 && p.runs[call][rank].begun {
		s.Doing = flight.Inside
		s.Open = []flight.Open{p.open(call, rank, long)}
	}
	return s
}

// open describes the call of a rank.
func (p *play) open(call, rank int, long time.Duration) flight.Open {
	c, run := &p.calls[call], p.runs[call][rank]
	o := flight.Open{Comm: uint64(c.comm), Seq: c.seq, What: c.what, Awaited: true, For: long}
	if call == p.oddCall && p.odd[rank] {
		o.What = "barrier of another kind"
	}
	for id := range dag.ID(len(run.reached)) {
		if s := run.prog.Step(id); run.reached[id] && !run.ended[id] && s.Peer >= 0 {
			if peer := p.peerOf(call, run, s); len(o.Peers) < 64 && !slices.Contains(o.Peers, peer) {
				o.Peers = append(o.Peers, peer)
			}
		}
	}
	return o
}
