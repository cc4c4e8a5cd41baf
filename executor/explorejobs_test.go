package executor_test

import (
	"math/rand/v2"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tierflow/tierflow/dag/invariants"
	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/submodules/check/casegen"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// drawStage draws calls and limits. No caller's operations: they need goroutines.
func drawStage(r *rand.Rand, ranks, calls int) *stage {
	leads := r.IntN(4) == 0 // many messages are such, see package flow, and don't all fit into the budget
	s := &stage{ahead: 1 + r.IntN(calls), direct: r.IntN(3) == 0, whole: r.IntN(2) == 0, passes: r.IntN(2) == 0, isolated: r.IntN(2) == 0, far: r.IntN(2) == 0}
	s.config = executor.Config{EagerMax: []int64{0, 0, -1, 1, 64, 4096}[r.IntN(6)], EagerBudget: []int64{0, 1, 65, 100, 300, 5000, 9000}[r.IntN(7)]}
	if leads {
		s.config, s.far, s.direct, s.ahead = executor.Config{EagerBudget: leadsBudget}, true, false, calls
	}
	switch r.IntN(4) {
	case 0:
		s.cancels = true
	case 1:
		s.leaves = true
	case 2:
		s.deaths, s.separate = 1+r.IntN(2), true
	}
	if s.separate = s.separate || r.IntN(3) == 0; s.separate {
		s.direct, s.isolated = false, true
	}
	o := casegen.Options{Registry: all.Submodules(), MaxRanks: ranks}
	for len(s.calls) < calls {
		if o.Topology != nil && r.IntN(4) == 0 {
			s.calls = append(s.calls, drawMessage(r, o.Topology.Size(), int32(len(s.calls))))
			continue
		}
		c := o.Draw(r)
		if q := &c.Request; leads && q.Coll.HasData() && !q.Blocks() {
			q.Count, c.Plan.Segment = int64((4<<10+r.IntN(leadsBudget/2))/q.Type.Size()), tasks.Whole
		}
		if n := countSteps(c); c.Topology.Size() < 2 || n < 1 || n > 400 {
			continue
		}
		o.Topology, s.topology = c.Topology, c.Topology
		s.calls = append(s.calls, played{Case: c, beside: r.IntN(3) == 0})
	}
	s.waitForNobody()
	return s
}

// leadsBudget has room for one or two messages of more than 4 KiB, bytes.
const leadsBudget = 9000

// waitForNobody sees to it that no rank receives from any other one where one may leave: it doesn't wait for that one.
func (s *stage) waitForNobody() {
	for i := range s.calls {
		if c := &s.calls[i]; s.leaves && !c.beside && c.way == 2 {
			c.way = 1
		}
	}
}

// drawMessage draws a message.
func drawMessage(r *rand.Rand, size int, number int32) played {
	c := played{beside: r.IntN(3) == 0, bytes: 1 + r.IntN([]int{3, 100, 10_000}[r.IntN(3)]), tag: int32(r.IntN(2)), way: r.IntN(3)}
	c.from = levels.Rank(r.IntN(size))
	c.to = (c.from + 1 + levels.Rank(r.IntN(size-1))) % levels.Rank(size)
	switch {
	case r.IntN(8) == 0 && c.bytes > 1:
		c.way = 3
	case c.way == 2:
		c.tag = 100 + number // it may come from anybody
	}
	return c
}

// countSteps returns the steps of a case on all ranks, 0 if it can't be explored: operations of callers need goroutines.
func countSteps(c casegen.Case) (n int) {
	if c.Request.Op.ID() == tasks.OpUser {
		return 0
	}
	for r := range c.Topology.Size() {
		b, err := job{nil, c.Topology, c.Request, c.Plan}.compile(levels.Rank(r))
		if err != nil || b.Whole != nil {
			return 0
		}
		n += b.Rest.Len()
	}
	return n
}

// exploreTime returns for how long to explore at random, as TIERFLOW_TEST_EXPLORE says, and from which seed on: without it 0,
// and always the same.
func exploreTime(t *testing.T) (long time.Duration, seed uint64) {
	text := os.Getenv("TIERFLOW_TEST_EXPLORE")
	if text == "" {
		return 0, 1
	}
	long, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("TIERFLOW_TEST_EXPLORE=%s: want a time, such as 10m", text)
	}
	return long, rand.Uint64()
}

// Random jobs do right in random orders of events. TIERFLOW_TEST_EXPLORE=10m plays others for that long.
func TestExploreRandomJobs(t *testing.T) {
	t.Parallel()
	jobs := uint64(100)
	if testing.Short() {
		jobs = 20
	}
	walkStages(t, 0, jobs, 60, func(r *rand.Rand) *stage { return drawStage(r, 2+r.IntN(4), 1+r.IntN(6)) })
}

// walkStages plays random scripts of so many drawn stages, or for as long as [exploreTime] says. A stage may be nil: it is left out.
func walkStages(t *testing.T, stream, stages uint64, scripts int, draw func(r *rand.Rand) *stage) {
	long, first := exploreTime(t)
	sum, begin := explored{}, time.Now()
	for seed := first; !t.Failed() && (seed-first < stages || time.Since(begin) < long); seed++ {
		r := rand.New(rand.NewPCG(seed, stream))
		s := draw(r)
		if s == nil {
			continue
		}
		play := func(t *testing.T) {
			seen, f := s.walk(t, r, scripts)
			if f != nil {
				t.Fatalf("seed %d: %v", seed, f.shorten(t))
			}
			sum.scripts, sum.events, sum.states = sum.scripts+seen.scripts, sum.events+seen.events, sum.states+1
		}
		if s.isInBubble() {
			synctest.Test(t, play)
		} else {
			play(t)
		}
	}
	t.Logf("%d jobs from seed %d on, %d scripts, %d events, %.0f a second", sum.states, first, sum.scripts, sum.events, float64(sum.events)/time.Since(begin).Seconds())
}

// Small jobs do right in every order of events, with a cancel, a leave or a death at every point. TIERFLOW_TEST_LONG=1 plays
// more of them.
func TestExploreSmallJobs(t *testing.T) {
	if invariants.On {
		t.Skip("steps that are ready go in random order, so no script can be repeated")
	}
	plans, most := 1, 1000
	if os.Getenv("TIERFLOW_TEST_LONG") != "" {
		plans, most = 4, 20_000
	}
	for _, coll := range tasks.Requestable() {
		t.Run(coll.String(), func(t *testing.T) {
			t.Parallel()
			sum, jobs, cut := explored{}, 0, 0
			for i, layout := range []string{"1x2", "2x1", "1x3", "3x1"} {
				o := casegen.Options{Registry: all.Submodules(), Coll: coll, Topology: tasktest.Topology(t, layout)}
				r := rand.New(rand.NewPCG(uint64(i), uint64(coll)))
				known := map[string]bool{}
				for draws := 0; len(known) < plans && draws < 1000; draws++ {
					c := o.Draw(r)
					if n := countSteps(c); n < 2 || n > 12 || known[c.Plan.String()] {
						continue
					}
					known[c.Plan.String()] = true
					for fault := range 4 {
						s := &stage{topology: o.Topology, calls: []played{{Case: c}}, ahead: 1, isolated: true, far: true, whole: true}
						s.config = []executor.Config{{}, {EagerMax: -1}, {EagerMax: 1 << 20, EagerBudget: max(65, c.Request.Bytes())}}[r.IntN(3)]
						s.cancels, s.leaves, s.deaths, s.separate = fault == 1, fault == 2, fault/3, fault == 3 || r.IntN(2) == 0
						seen, f := s.exhaust(t, most)
						if f != nil {
							t.Fatal(f.shorten(t))
						}
						if jobs++; !seen.all {
							cut++
						}
						sum.states, sum.scripts, sum.events = sum.states+seen.states, sum.scripts+seen.scripts, sum.events+seen.events
					}
				}
			}
			t.Logf("%d jobs, %d of them not to the end: %d states, %d scripts, %d events", jobs, cut, sum.states, sum.scripts, sum.events)
		})
	}
}
