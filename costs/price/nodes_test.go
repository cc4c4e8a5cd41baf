package price_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/machine/machinetest"
	"github.com/tierflow/tierflow/costs/price"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// waysOfNodes are ways of nodes with several ranks, by collective: shapes with what goes between
// nodes. %s stands for what goes inside.
var waysOfNodes = map[tasks.Collective][]string{
	tasks.Bcast:         {"shape=han,fs=all,w=1,i=adapt/binomial,s=%s", "shape=han,fs=16KiB,w=8,i=adapt/chain,s=%s", "shape=sag,fs=all,w=1,is=adapt/linear,iag=adapt/ring,s=%s", "shape=flat,fs=all,w=1,i=adapt/binomial", "shape=flat,fs=all,w=1,i=circulant/blocks/8KiB", "shape=flat-sag,fs=all,w=1,is=nbc/binomial,iag=adapt/ring"},
	tasks.Reduce:        {"shape=han,fs=all,w=1,i=adapt/binomial,s=%s", "shape=han,fs=16KiB,w=8,i=adapt/chain,s=%s", "shape=flat,fs=all,w=1,i=nbc/rabenseifner", "shape=flat,fs=all,w=1,i=adapt/binary//3"},
	tasks.Allreduce:     {"shape=ar,fs=all,w=1,i=nbc/recdoubling,s=%s", "shape=rsag,fs=all,w=1,i=adapt/ring,s=%s", "shape=lanes,fs=all,w=1,i=nbc/rabenseifner,s=%s", "shape=flat-ar,fs=all,w=1,i=nbc/recdoubling", "shape=flat-rsag,fs=all,w=1,i=adapt/ring", "shape=flat-ar,fs=all,w=1,i=circulant/blocks"},
	tasks.Allgather:     {"shape=han,fs=all,w=1,i=adapt/ring,s=%s", "shape=flat,fs=all,w=1,i=nbc/bruck", "shape=flat,fs=all,w=1,i=adapt/linear"},
	tasks.ReduceScatter: {"shape=han,fs=all,w=1,i=adapt/ring,s=%s", "shape=flat,fs=all,w=1,i=nbc/pairwise", "shape=flat,fs=all,w=1,i=circulant/blocks"},
	tasks.Gather:        {"shape=han,fs=all,w=1,i=adapt/linear,s=%s", "shape=flat,fs=all,w=1,i=nbc/binomial"},
	tasks.Scatter:       {"shape=han,fs=all,w=1,i=nbc/binomial,s=%s", "shape=flat,fs=all,w=1,i=adapt/linear"},
	tasks.Alltoall:      {"shape=flat,fs=all,w=1,i=adapt/linear", "shape=flat,fs=all,w=1,i=nbc/bruck//4", "shape=lanes,fs=all,w=1,i=adapt/pairwise,s=%s"},
}

// drawNodes draws cells on two to eight nodes of two to six ranks.
func drawNodes(seed uint64, n int) (all []cell) {
	rng := rand.New(rand.NewPCG(seed, 33))
	colls := []tasks.Collective{tasks.Bcast, tasks.Reduce, tasks.Allreduce, tasks.Allgather, tasks.ReduceScatter, tasks.Gather, tasks.Scatter, tasks.Alltoall}
	insides := []string{"sm", "sm/rings", "sm/slots", "solo"}
	for i := range n {
		coll := colls[i%len(colls)]
		way := waysOfNodes[coll][rng.IntN(len(waysOfNodes[coll]))]
		way = strings.Replace(way, "%s", insides[rng.IntN(len(insides))], 1)
		all = append(all, cell{tasktest.Request(coll, 4<<rng.IntN(18)), fmt.Sprintf("%dx%d", 2+rng.IntN(7), 2+rng.IntN(5)), way})
	}
	return all
}

// drawNode draws a machine whose nodes have a drawn memory and drawn links, too.
func drawNode(rng *rand.Rand) *machine.Machine {
	m := drawMachine(rng)
	m.CopyByte = 0.05 + 0.2*rng.Float64()
	m.ReduceByte = m.CopyByte * (1 + rng.Float64())
	m.MemoryByte = m.CopyByte * rng.Float64()
	m.Links[0].Latency, m.Links[0].Send = 100+900*rng.Float64(), 50+200*rng.Float64()
	return m
}

// nearness is how near prices are to simulated times.
type nearness struct {
	cells, far int     // far: off by more than a factor of two
	off        float64 // logarithms of all factors, summed
}

// add compares the price of a cell, if it has one.
func (n *nearness) add(t *testing.T, c cell, m *machine.Machine) {
	t.Helper()
	got := c.price(t, m)
	if got == 0 {
		return
	}
	by := math.Log(got / c.simulate(t, m).Time.Nanoseconds())
	n.cells, n.off = n.cells+1, n.off+math.Abs(by)
	if math.Abs(by) > math.Log(2) {
		n.far++
		t.Logf("%v: price %.0f ns is %.2f of what is simulated", c, got, math.Exp(by))
	}
}

// check complains of too few cells, of a mean factor above most, and of more than a twentieth of far ones.
func (n *nearness) check(t *testing.T, fewest int, most float64) {
	t.Helper()
	mean := math.Exp(n.off / float64(n.cells))
	if n.cells < fewest || mean > most || 20*n.far > n.cells {
		t.Errorf("%d cells have a price, which is off by a factor of %.3f; %d are far off", n.cells, mean, n.far)
	}
	t.Logf("%d prices, off by a factor of %.3f; %d far", n.cells, mean, n.far)
}

// On nodes of several ranks, too, prices are near what a simulation takes. Far off are exchanges of
// many messages between crowded nodes, which wait for each other.
func TestNodesAreNearSimulations(t *testing.T) {
	rng, near := rand.New(rand.NewPCG(5, 5)), nearness{}
	for _, c := range drawNodes(505, 160) {
		near.add(t, c, drawNode(rng))
	}
	near.check(t, 120, 1.15)
}

// Nodes of many ranks, too, have prices near what a simulation takes: where all send to all inside a node, more messages
// come than a rank is ready for, and are kept.
func TestCrowdedNodesAreNearSimulations(t *testing.T) {
	rng, near := rand.New(rand.NewPCG(15, 15)), nearness{}
	m := machinetest.Speeds[2].Machine() // nodes take longer than wires
	for range 60 {
		ranks, bytes := 2+rng.IntN(63), int64(64)<<rng.IntN(13)
		inside := []string{"sm/rings", "sm/slots", "sm/rings", "solo"}[rng.IntN(4)]
		c := cell{tasktest.Request(tasks.Allreduce, bytes), fmt.Sprintf("%dx%d", 2+rng.IntN(3), ranks), "shape=lanes,fs=all,w=1,i=nbc/rabenseifner,s=" + inside}
		switch rng.IntN(3) {
		case 0:
			c.request, c.plan = tasktest.Request(tasks.Allgather, 4+bytes/int64(ranks)), "shape=han,fs=all,w=1,i=adapt/ring,s="+inside
		case 1:
			c.request, c.plan = tasktest.Request(tasks.Alltoall, 4+bytes/int64(ranks)), "shape=lanes,fs=all,w=1,i=adapt/pairwise,s="+inside
		}
		near.add(t, c, m)
	}
	near.check(t, 50, 1.15)
}

// What makes a part of a machine faster makes no price higher, and what makes messages longer
// none lower.
func TestNodesAreMonotone(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	faster := map[string]func(m *machine.Machine){
		"memory":      func(m *machine.Machine) { m.MemoryByte /= 2 },
		"copies":      func(m *machine.Machine) { m.CopyByte /= 2 },
		"reductions":  func(m *machine.Machine) { m.ReduceByte /= 2 },
		"wires":       func(m *machine.Machine) { m.Links[1].Byte /= 2 },
		"latency":     func(m *machine.Machine) { m.Links[0].Latency /= 2; m.Links[1].Latency /= 2 },
		"processors":  func(m *machine.Machine) { m.Links[1].Send /= 2; m.Links[1].Recv /= 2; m.Step /= 2 },
		"other nodes": func(m *machine.Machine) { m.Links[1] = machine.Link{Level: m.Links[1].Level} },
	}
	for _, c := range drawNodes(606, 96) {
		m := drawNode(rng)
		got := c.price(t, m)
		if got == 0 {
			continue
		}
		for name, change := range faster {
			other := clone(m)
			change(other)
			if now := c.price(t, other); now > 1.001*got {
				t.Errorf("%v: %.0f ns, and %.0f with faster %s", c, got, now, name)
			}
		}
		longer := c
		longer.request.Count *= 4
		least := 0.999 * got
		if strings.HasSuffix(c.plan, "s=sm") || strings.HasSuffix(c.plan, "s=sm/slots") { // short pieces are posted, longer ones offered
			least = 0.9 * got
		}
		if now := longer.price(t, m); now != 0 && now < least {
			t.Errorf("%v: %.0f ns, and %.0f for four times the bytes", c, got, now)
		}
	}
}

// The terms of each price are times, and make it up. A window that never closes, and a processor
// for each rank, make none higher.
func TestNodesHaveTerms(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	shares := 0
	for _, c := range drawNodes(707, 96) {
		m := drawNode(rng)
		got, ok := c.terms(t, m)
		if !ok {
			continue
		}
		sum := 0.0
		for i, v := range got.Values() {
			if sum += v; v < 0 || math.IsNaN(v) {
				t.Errorf("%v: %v ns of %s", c, v, price.Names()[i])
			}
		}
		if math.Abs(sum-got.NS) > 1e-6*got.NS {
			t.Errorf("%v: terms make up %v ns of %v", c, sum, got.NS)
		}
		plan := tasktest.Plan(t, c.plan)
		plan.Window = 1
		if closed, ok := c.pricer(t, m).Plan(plan); !ok || closed.NS < 0.9999*got.NS {
			t.Errorf("%v: %.0f ns, and %.0f with a window of one segment", c, got.NS, closed.NS)
		}
		crowded := clone(m)
		crowded.Cores.InAll = 1
		if shared, ok := c.terms(t, crowded); !ok || shared.NS < 0.9999*got.NS {
			t.Errorf("%v: %.0f ns, and %.0f on one processor", c, got.NS, shared.NS)
		} else if shared.NS > 1.01*got.NS {
			shares++
		}
		crowded.Cores.InAll = tasktest.Topology(t, c.spec).Size()
		if own, ok := c.terms(t, crowded); !ok || own != got {
			t.Errorf("%v: %+v, and %+v with a processor for each rank", c, got, own)
		}
	}
	if shares == 0 {
		t.Error("no ranks wait for a processor")
	}
}

// Over a link so slow that a segment's way takes longer than all else, a pipeline waits for its window:
// twice as long with half of it.
func TestClosedWindow(t *testing.T) {
	m := machine.Assumed()
	m.Links[1].Latency = 1e8
	wait := func(window int) float64 {
		c := cell{tasktest.Request(tasks.Bcast, 1<<20), "4x2", fmt.Sprintf("shape=han,fs=16KiB,w=%d,i=adapt/chain,s=sm", window)}
		got, ok := c.terms(t, m)
		if !ok {
			t.Fatalf("%v has no price", c)
		}
		return got.Waiting
	}
	for window := 2; window <= 16; window *= 2 {
		if half, whole := wait(window/2), wait(window); whole <= 0 || half < 1.9*whole {
			t.Errorf("with a window of %d segments a bcast waits %.0f ns, with half of it %.0f", window, whole, half)
		}
	}
	if got := wait(64); got != 0 {
		t.Errorf("with a window of all segments a bcast waits %.0f ns", got)
	}
}

// Prices know nodes by what they are, not by their names, and have no memory: a pricer that has
// priced others says the same.
func TestNodesAreNameless(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	pricers := map[string]*price.Pricer{}
	m := drawNode(rng)
	for _, c := range drawNodes(808, 64) {
		want, ok := c.terms(t, m)
		topo := tasktest.Topology(t, c.spec)
		other := c
		other.spec = ""
		for node := range topo.Nodes() {
			other.spec += fmt.Sprintf(",n%c:%d", 'z'-node, topo.Size()/topo.Nodes())
		}
		other.spec = other.spec[1:]
		if got, has := other.terms(t, m); has != ok || got != want {
			t.Errorf("%v: %+v, and %+v on %s", c, want, got, other.spec)
		}
		key := fmt.Sprint(c.spec, c.request)
		if pricers[key] == nil {
			p := c.pricer(t, m)
			pricers[key] = p
			for _, way := range waysOfNodes[c.request.Coll] { // of which it keeps something
				p.Plan(tasktest.Plan(t, strings.Replace(way, "%s", "sm", 1)))
			}
		}
		if got, has := pricers[key].Plan(tasktest.Plan(t, c.plan)); has != ok || got != want {
			t.Errorf("%v: %+v, and %+v by a pricer that has priced others", c, want, got)
		}
	}
}

// The tasks of a plan that cuts nothing make up its price, one after the other. Of several segments
// they take no more than it.
func TestNodesHaveTasks(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	whole, cut := 0, 0
	for _, c := range drawNodes(909, 240) {
		m := drawNode(rng)
		p, plan := c.pricer(t, m), tasktest.Plan(t, c.plan)
		want, priced := p.Plan(plan)
		all, segments, ok := p.Tasks(plan)
		if ok != priced {
			t.Errorf("%v: priced %t, with tasks %t", c, priced, ok)
		}
		if !ok {
			continue
		}
		first, each := 0.0, 0.0
		for _, one := range all {
			if one.First < 0 || one.Each < 0 {
				t.Errorf("%v: %+v", c, one)
			}
			first, each = first+one.First, max(each, one.Each)
		}
		if got := first + (segments-1)*each; segments == 1 {
			whole++
			if math.Abs(got-want.NS) > 1e-6*want.NS {
				t.Errorf("%v: tasks take %.0f ns of %.0f", c, got, want.NS)
			}
		} else if cut++; got > 1.0001*want.NS {
			t.Errorf("%v: the tasks of %.0f segments take %.0f ns of %.0f", c, segments, got, want.NS)
		}
	}
	if whole < 100 || cut < 4 {
		t.Errorf("%d plans in one piece and %d in several", whole, cut)
	}
}

// Where nodes have different numbers of ranks, prices are near simulations, too.
func TestUnequalNodesAreNearSimulations(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 10))
	near := nearness{}
	for _, c := range drawNodes(1010, 160) {
		switch c.request.Coll {
		case tasks.Alltoall, tasks.Gather, tasks.Scatter: // whose blocks count as if nodes were equal
			continue
		}
		c.spec = fmt.Sprintf("a:%d,b:%d,c:%d", 1+rng.IntN(3), 2+rng.IntN(4), 1+rng.IntN(6))
		near.add(t, c, drawNode(rng))
	}
	near.check(t, 60, 1.25)
}

// A request of no bytes has no price below none, and one without a link that nothing uses has one.
func TestNothingToSend(t *testing.T) {
	for coll, ways := range waysOfNodes {
		for _, way := range ways {
			c := cell{tasktest.Request(coll, 0), "3x2", strings.Replace(way, "%s", "sm", 1)}
			got, ok := c.terms(t, machine.Assumed())
			if ok && (got.NS < 0 || math.IsNaN(got.NS) || math.IsInf(got.NS, 0)) {
				t.Errorf("%v: %+v", c, got)
			}
		}
	}
	m := machine.Assumed()
	m.Links = m.Links[1:] // nothing goes inside nodes of one rank
	on := tasktest.Topology(t, "4x1")
	if _, err := price.New(m, on, tasktest.Request(tasks.Bcast, 8), all.Submodules()); err != nil {
		t.Errorf("%v, but no message would use that link", err)
	}
	m.Links = nil
	if _, err := price.New(m, on, tasktest.Request(tasks.Bcast, 8), all.Submodules()); err == nil {
		t.Error("a machine without links has prices")
	}
}
