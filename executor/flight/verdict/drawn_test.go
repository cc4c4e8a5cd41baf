package verdict_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/flight/verdict"
)

// snapshot is a drawn look at a job, with what may be found in it.
type snapshot struct {
	*play
	rnd    *rand.Rand
	states []flight.State
	// right reports whether a finding names the cause.
	right func(f *verdict.Finding) bool
	// must: there is a finding if a rank stands still.
	must bool
}

// are wants findings of a class that name some ranks: all of them, or any of them.
func are(c verdict.Class, all bool, ranks ...int) func(f *verdict.Finding) bool {
	slices.Sort(ranks)
	return func(f *verdict.Finding) bool {
		if all {
			return f.Class == c && slices.Equal(f.Ranks, slices.Compact(ranks))
		}
		return f.Class == c && len(f.Ranks) > 0 && !slices.ContainsFunc(f.Ranks, func(r int) bool { return !slices.Contains(ranks, r) })
	}
}

func either(one, other func(f *verdict.Finding) bool) func(f *verdict.Finding) bool {
	return func(f *verdict.Finding) bool { return one(f) || other(f) }
}

// blank returns a snapshot without a fault that has not been played.
func blank(j *drawnJob, rnd *rand.Rand) *snapshot {
	f := fault{away: map[int]int{}, frozen: map[int][2]int{}, cut: map[[2]int]bool{}, odd: map[int]bool{}, oddCall: -1, receives: map[int]int{}, eager: []int64{0, 512, 4096, 1 << 16}[rnd.IntN(4)]}
	for rank := range j.nodes {
		var script []int
		for k := range j.calls {
			if slices.Contains(j.comms[j.calls[k].comm], rank) {
				script = append(script, k)
			}
		}
		f.scripts = append(f.scripts, script)
	}
	return &snapshot{play: &play{drawnJob: j, fault: f}, rnd: rnd, must: true}
}

// settle plays until nothing moves and looks at the ranks. Some have closed their communicators in the end.
func (s *snapshot) settle() {
	s.play = newPlay(s.drawnJob, s.fault)
	s.run()
	long := time.Duration(3+s.rnd.IntN(60)) * time.Second
	closes := s.rnd.IntN(2) == 0
	for rank := range s.nodes {
		one := s.state(rank, long-time.Duration(s.rnd.IntN(1500))*time.Millisecond)
		_, away := s.away[rank]
		if closes && s.current(rank) < 0 && !away && one.Doing == flight.Outside {
			one.Doing = flight.Left
		}
		s.states = append(s.states, one)
	}
}

// draw returns a rank, and a place in its script.
func (s *snapshot) draw() (rank, at int) {
	rank = s.rnd.IntN(len(s.nodes))
	return rank, s.rnd.IntN(len(s.scripts[rank]))
}

// standing reports whether a rank waits for others.
func (s *snapshot) standing() bool {
	return slices.ContainsFunc(s.states, func(s flight.State) bool { return s.Doing == flight.Inside && len(s.Open[0].Peers) > 0 })
}

// freeze stops a rank within a call, or before it.
func (s *snapshot) freeze() (rank int) {
	rank, at := s.draw()
	run := s.calls[s.scripts[rank][at]].progs[slices.Index(s.comms[s.calls[s.scripts[rank][at]].comm], rank)]
	s.frozen[rank] = [2]int{at, s.rnd.IntN(run.Len() + 1)}
	if s.rnd.IntN(3) == 0 {
		delete(s.frozen, rank)
		s.away[rank] = at
	}
	return rank
}

// cutNodes lets nothing come between two nodes, or only in one direction.
func (s *snapshot) cutNodes() (a, b string) {
	a, b = s.nodes[s.rnd.IntN(len(s.nodes))], s.nodes[s.rnd.IntN(len(s.nodes))]
	oneWay := s.rnd.IntN(2) == 0
	for from, node := range s.nodes {
		for to, other := range s.nodes {
			if node != other && (node == a && other == b || !oneWay && node == b && other == a) {
				s.cut[[2]int{from, to}] = true
			}
		}
	}
	return a, b
}

// isAcross reports whether a finding names a way between two nodes: both of a pair, or among others.
func (s *snapshot) isAcross(f *verdict.Finding, a, b string) bool {
	has := func(node string) bool {
		return slices.ContainsFunc(f.Ranks, func(r int) bool { return s.nodes[r] == node })
	}
	return f.Class == verdict.SlowLink && a != b && has(a) && has(b)
}

// plants plant one cause each.
var plants = map[string]func(s *snapshot){
	"late": func(s *snapshot) {
		rank, at := s.draw()
		s.away[rank] = at
		s.right = are(verdict.Late, true, rank)
		s.settle()
	},
	"several late": func(s *snapshot) {
		for range 3 {
			rank, at := s.draw()
			s.away[rank] = at
		}
		s.right = are(verdict.Late, false, slices.Collect(maps.Keys(s.away))...)
		s.settle()
	},
	"closed": func(s *snapshot) {
		rank, at := s.draw()
		s.away[rank] = at
		s.right = are(verdict.Late, true, rank)
		s.settle()
		s.states[rank].Doing = flight.Left
	},
	"in a receive from a late one": func(s *snapshot) {
		rank, at := s.draw()
		late, _ := s.draw()
		if late == rank {
			return
		}
		lateAt, _ := slices.BinarySearch(s.scripts[late], s.scripts[rank][at]) // it has done what the other one waits for elsewhere
		s.away[rank], s.away[late], s.receives[rank] = at, lateAt, late
		s.right = are(verdict.Late, true, late)
		s.settle()
	},
	"in a receive from any": func(s *snapshot) {
		rank, at := s.draw()
		s.away[rank], s.receives[rank] = at, -1
		s.right, s.must = either(are(verdict.Late, true, rank), func(f *verdict.Finding) bool { // all others may be dead, too
			return f.Class == verdict.Deadlock && slices.Contains(f.Ranks, rank)
		}), false
		s.settle()
	},
	"died": func(s *snapshot) {
		rank := s.freeze()
		s.right = are(verdict.Died, true, rank)
		s.settle()
		s.absent(rank, flight.Gone)
	},
	"stopped": func(s *snapshot) {
		rank := s.freeze()
		s.right = are(verdict.Stopped, true, rank)
		s.settle()
		s.absent(rank, flight.Stopped)
	},
	"silent": func(s *snapshot) {
		rank := s.freeze()
		s.right = are(verdict.Unreachable, true, rank)
		s.settle()
		s.states[rank] = flight.State{Rank: rank, Doing: flight.Silent}
	},
	"a node silent": func(s *snapshot) {
		first, at := s.draw()
		var ranks []int
		for rank, node := range s.nodes {
			if node == s.nodes[first] {
				s.away[rank] = min(at, len(s.scripts[rank])-1)
				ranks = append(ranks, rank)
			}
		}
		s.right = are(verdict.Unreachable, true, ranks...)
		s.settle()
		for _, rank := range ranks {
			s.states[rank] = flight.State{Rank: rank, Doing: flight.Silent}
		}
	},
	"computing": func(s *snapshot) {
		rank := s.freeze()
		s.right = are(verdict.Computing, true, rank)
		s.settle()
		one := &s.states[rank]
		one.Doing, one.PID = flight.Computing, 100+rank
		if _, within := s.frozen[rank]; within && len(one.Open) > 0 {
			one.Open[0].Operating = true
		}
	},
	"mismatch": func(s *snapshot) {
		rank, at := s.draw()
		s.oddCall = s.scripts[rank][at]
		members := s.comms[s.calls[s.oddCall].comm]
		for len(s.odd) < 1+s.rnd.IntN(max(1, (len(members)-1)/2)) {
			s.odd[members[s.rnd.IntN(len(members))]] = true
		}
		s.settle()
		var odd, others []int
		for _, r := range members {
			if one := &s.states[r]; one.Doing == flight.Inside && s.current(r) == s.oddCall {
				if s.odd[r] {
					odd = append(odd, r)
				} else {
					others = append(others, r)
				}
			}
		}
		s.must = len(odd)+len(others) == len(members)
		switch { // some may be through, and have left the others no word
		case len(odd) > len(others):
			odd, others = others, odd
		case len(odd) == len(others):
			odd = append(odd, others...)
		}
		mismatch := are(verdict.Mismatch, true, odd...)
		s.right = func(f *verdict.Finding) bool { return mismatch(f) || !s.must }
	},
	"two orders": func(s *snapshot) {
		rank, at := s.draw()
		script := slices.Clone(s.scripts[rank])
		if at+1 == len(script) || s.calls[script[at]].comm == s.calls[script[at+1]].comm {
			return
		}
		one, other := script[at], script[at+1]
		script[at], script[at+1] = other, one
		s.scripts[rank] = script
		s.settle()
		s.right = func(f *verdict.Finding) bool {
			return f.Class == verdict.Deadlock && slices.Contains(f.Ranks, rank) && !slices.ContainsFunc(f.Ranks, func(r int) bool { return r != rank && s.current(r) != one })
		}
	},
	"a circle of receives": func(s *snapshot) {
		ranks := s.rnd.Perm(len(s.nodes))
		ranks = ranks[:min(len(ranks), 2+s.rnd.IntN(4))]
		if len(ranks) < 2 {
			return
		}
		at := s.rnd.IntN(len(s.scripts[ranks[0]]))
		for n, rank := range ranks {
			s.away[rank], s.receives[rank] = min(at, len(s.scripts[rank])-1), ranks[(n+1)%len(ranks)]
		}
		s.right = are(verdict.Deadlock, true, slices.Clone(ranks)...)
		s.settle()
	},
	"all in a receive from any": func(s *snapshot) {
		var ranks []int
		for rank := range s.nodes {
			s.away[rank], s.receives[rank] = 0, -1
			ranks = append(ranks, rank)
		}
		if len(ranks) < 2 {
			return
		}
		s.right = are(verdict.Deadlock, true, ranks...)
		s.settle()
	},
	"cut": func(s *snapshot) {
		a, b := s.cutNodes()
		s.right = func(f *verdict.Finding) bool { return s.isAcross(f, a, b) }
		s.settle()
	},
	"cut, and late": func(s *snapshot) {
		a, b := s.cutNodes()
		rank, at := s.draw()
		s.away[rank] = at
		s.right = either(are(verdict.Late, true, rank), func(f *verdict.Finding) bool { return s.isAcross(f, a, b) })
		s.settle()
	},
	"stopped, and late": func(s *snapshot) {
		rank := s.freeze()
		late, at := s.draw()
		if late == rank {
			return
		}
		s.away[late] = at
		s.right = either(are(verdict.Late, true, late), are(verdict.Stopped, true, rank))
		s.settle()
		s.absent(rank, flight.Stopped)
	},
	"a failure": func(s *snapshot) {
		rank := s.freeze()
		kind := []verdict.Class{verdict.Died, verdict.Resources}[s.rnd.IntN(2)]
		s.right = are(kind, true, rank)
		s.settle()
		for n := range s.states {
			one := &s.states[n]
			one.Doing, one.Open = flight.Outside, nil
			one.Failed = &flight.Failed{Rank: rank, Text: fmt.Sprintf("rank %d failed: was lost", rank), Kind: kind.String(), Ago: time.Duration(s.rnd.IntN(100))}
		}
		if kind == verdict.Died {
			s.absent(rank, flight.Gone)
		}
	},
	"a failure, and who ended of it": func(s *snapshot) { // the way to one rank is cut for a node, whose ranks give up; the others see one of them end
		rank, end := s.freeze(), s.rnd.IntN(len(s.nodes))
		if s.nodes[rank] == s.nodes[end] {
			return
		}
		kind := []verdict.Class{verdict.Unreachable, verdict.Mismatch, verdict.Resources}[s.rnd.IntN(3)]
		cause := are(kind, true, rank)
		s.right = func(f *verdict.Finding) bool {
			return cause(f) && (len(f.Nodes) == 0 || slices.Contains(f.Nodes, s.nodes[end]))
		}
		s.settle()
		for n := range s.states {
			one := &s.states[n]
			one.Doing, one.Open = flight.Outside, nil
			if s.nodes[n] == s.nodes[end] {
				one.Failed = &flight.Failed{Rank: rank, Text: fmt.Sprintf("rank %d failed: timed out", rank), Kind: kind.String(), Ago: time.Duration(s.rnd.IntN(100))}
				if n != end && s.rnd.IntN(3) == 0 {
					one.Doing = flight.Gone
				}
				continue
			}
			one.Failed = &flight.Failed{Rank: end, Text: fmt.Sprintf("rank %d failed: was lost", end), Kind: verdict.Died.String(), Ago: time.Duration(s.rnd.IntN(100))}
		}
	},
	"nothing": func(s *snapshot) {
		rank, at := s.draw()
		s.away[rank] = at
		s.right, s.must = func(*verdict.Finding) bool { return false }, false
		s.settle()
		for n := range s.states {
			for k := range s.states[n].Open {
				s.states[n].Open[k].For = time.Duration(s.rnd.IntN(999)) * time.Millisecond
			}
		}
	},
}

// absent makes a rank stopped or dead, as its node or its own record tells.
func (s *snapshot) absent(rank int, d flight.Doing) {
	one := s.states[rank]
	one.Doing = d
	s.states[rank] = one
	for n := range s.states {
		if n != rank && s.nodes[n] == s.nodes[rank] {
			s.states[n].Near = []flight.State{one}
			s.states[rank] = flight.State{Rank: rank, Doing: flight.Silent}
			return
		}
	}
}

// Whatever is planted into a job is named, and nothing else: not those who wait because of it. The waits are
// those of real programs when some ranks or ways stand still.
func TestDrawnFaults(t *testing.T) {
	const jobs = 220
	stood, looked := map[string]int{}, 0
	for seed := range uint64(jobs) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		j := drawJob(t, rnd)
		for _, name := range slices.Sorted(maps.Keys(plants)) {
			s := blank(j, rnd)
			if plants[name](s); s.states == nil {
				continue // it doesn't fit into the job
			}
			looked++
			if s.standing() {
				stood[name]++
			}
			found := verdict.Diagnose(s.states, verdict.Options{Nodes: s.nodes})
			for n := range found {
				if !s.right(&found[n]) {
					t.Errorf("seed %d, %s, nodes %v: wrong: %v", seed, name, s.nodes, &found[n])
				}
			}
			if len(found) == 0 && s.must && s.standing() {
				t.Errorf("seed %d, %s, nodes %v: nothing is found", seed, name, s.nodes)
			}
		}
	}
	t.Logf("%d looks; ranks stood still in %v", looked, stood)
	if looked < 2000 {
		t.Errorf("%d looks, want 2000 or more", looked)
	}
	for name := range plants {
		if stood[name] < jobs/10 && name != "all in a receive from any" && !strings.HasPrefix(name, "a failure") {
			t.Errorf("%s: ranks stood still in %d looks only", name, stood[name])
		}
	}
}
