//go:build linux

package launch

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/submodules/check/casegen"
	"github.com/tierflow/tierflow/tasks"
)

// chaosCase is one job and what is done to it. It follows from its seed alone: the ranks are told only the seed, and
// agree with the test.
type chaosCase struct {
	seed    uint64
	opts    Options // without Program
	ranks   int
	rounds  int      // joins, each with its calls and Close
	calls   int      // in a round
	plans   []string // forced, by round; "" as the planner likes
	fates   []fate   // one or two
	patient bool     // the ranks outlive SIGTERM, and the launcher waits for each one's last word
}

// fate is what happens to a rank: a stop, a death, or one after the other.
type fate struct {
	rank   int
	stop   time.Duration // 0: none
	kill   bool
	phase  string // in which it happens
	round  int
	call   int           // of the round, in the phases that have one
	within time.Duration // from the phase's beginning
}

// The phases of a rank's life. Whoever meets its fate at the start is no Go program yet, or hardly one.
const (
	atStart   = "start"
	inJoin    = "join"
	inRun     = "run"
	betweenIt = "between runs"
	inClose   = "close"
)

var phases = []string{atStart, inJoin, inRun, betweenIt, inClose}

// longestStop keeps cases short unless many were asked for; a host that was silent for as long as the longest ones would
// be given up, a process that is stopped must not.
const longestStop = 800 * time.Millisecond

// drawCase makes the case of a seed.
func drawCase(seed uint64, long bool) chaosCase {
	draw := rand.New(rand.NewPCG(seed, 0))
	c := chaosCase{seed: seed, rounds: 1 + draw.IntN(3), calls: 1 + draw.IntN(25), patient: draw.IntN(4) > 0}
	topology := c.place(draw)
	for range c.rounds {
		c.plans = append(c.plans, drawPlans(draw, topology))
	}
	c.fates = []fate{c.drawFate(draw)}
	if first := &c.fates[0]; first.kill && draw.IntN(5) == 0 && c.ranks > 2 {
		second := c.drawFate(draw)
		second.kill = true
		if second.rank != first.rank {
			c.fates = append(c.fates, second)
		}
	}
	for i := range c.fates {
		if !long {
			c.fates[i].stop = min(c.fates[i].stop, longestStop)
		}
	}
	return c
}

// place draws ranks and nodes.
func (c *chaosCase) place(draw *rand.Rand) *levels.Topology {
	c.ranks = 2 + draw.IntN(7)
	nodes := 1 + draw.IntN(min(4, c.ranks))
	if draw.IntN(3) == 0 {
		nodes = 1
	}
	slots := make([]int, nodes)
	for r := range c.ranks {
		at := r
		if r >= nodes {
			at = draw.IntN(nodes)
		}
		slots[at]++
	}
	var hosts []string
	for n, s := range slots {
		hosts = append(hosts, fmt.Sprintf("n%d:%d", n, s))
	}
	text := strings.Join(hosts, ",")
	topology, err := levels.Parse(text)
	check(err)
	if nodes > 1 {
		c.opts = Options{Hosts: text, Launcher: launcherLocal, Map: []string{mapBlock, mapRoundRobin}[draw.IntN(2)]}
	} else {
		c.opts = Options{Ranks: c.ranks}
	}
	return topology
}

// drawPlans forces a plan on most collectives in two of three rounds.
func drawPlans(draw *rand.Rand, topology *levels.Topology) string {
	if draw.IntN(3) == 0 {
		return ""
	}
	text := ""
	for _, coll := range tasks.Requestable() {
		// Tiny segments take long between processes.
		p := casegen.Options{Coll: coll, Topology: topology, Registry: all.Submodules(), LeastSegment: 8 << 10}.Draw(draw).Plan
		if draw.IntN(6) > 0 {
			text += fmt.Sprintf("%v:%v;", coll, p)
		}
	}
	return text
}

func (c *chaosCase) drawFate(draw *rand.Rand) fate {
	f := fate{
		rank: draw.IntN(c.ranks), round: draw.IntN(c.rounds), call: draw.IntN(c.calls),
		phase: []string{inRun, inRun, inRun, betweenIt, inClose, inClose, inJoin, atStart}[draw.IntN(8)],
	}
	if draw.IntN(4) == 0 {
		f.rank = 0
	}
	f.within = time.Duration(draw.IntN(3000)) * time.Microsecond
	if f.phase == inJoin {
		f.within *= 10
	}
	kind := draw.IntN(8)
	f.kill = kind < 5
	if kind > 3 {
		f.stop = time.Duration(1+draw.IntN(1500)) * time.Millisecond
		if draw.IntN(10) == 0 && (f.phase == inRun || f.phase == betweenIt) {
			f.stop += 11 * time.Second
		}
	}
	return f
}

// fateOf is what happens to a rank, nil for nothing.
func (c *chaosCase) fateOf(rank int) *fate {
	for i := range c.fates {
		if c.fates[i].rank == rank {
			return &c.fates[i]
		}
	}
	return nil
}

// deadly tells whether ranks die.
func (c *chaosCase) deadly() bool { return c.fates[0].kill }

// String is for people who look for what went wrong.
func (c *chaosCase) String() string {
	nodes := "one node"
	if c.opts.Hosts != "" {
		nodes = c.opts.Hosts + " " + c.opts.Map
	}
	text := fmt.Sprintf("seed %d: %d ranks on %s, %d rounds of %d calls", c.seed, c.ranks, nodes, c.rounds, c.calls)
	for _, f := range c.fates {
		text += fmt.Sprintf("; rank %d", f.rank)
		if f.stop > 0 {
			text += fmt.Sprintf(" is stopped for %v", f.stop)
		}
		if f.kill {
			text += " is killed"
		}
		text += fmt.Sprintf(" at %s (round %d, call %d, after %v)", f.phase, f.round, f.call, f.within)
	}
	return text
}
