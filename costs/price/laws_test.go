package price_test

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/price"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// cell is a plan of a request on nodes of one rank each.
type cell struct {
	request tasks.Request
	spec    string
	plan    string
}

func (c cell) String() string { return fmt.Sprintf("%v on %s by %s", c.request, c.spec, c.plan) }

// waysOf are ways between nodes that take a message in one piece, by collective.
var waysOf = map[tasks.Collective][]string{
	tasks.Bcast:     {"i=adapt/binomial", "i=adapt/binary", "i=nbc/knomial", "i=adapt/binomial//4", "i=nbc/linear"},
	tasks.Reduce:    {"i=adapt/binomial", "i=adapt/binary", "i=nbc/binomial"},
	tasks.Allreduce: {"i=nbc/recdoubling", "i=nbc/rabenseifner", "i=circulant/blocks"},
	tasks.Allgather: {"i=adapt/ring", "i=nbc/bruck", "i=adapt/linear"},
	tasks.Gather:    {"i=adapt/linear", "i=nbc/binomial"},
	tasks.Scatter:   {"i=adapt/linear", "i=nbc/binomial"},
	tasks.Alltoall:  {"i=adapt/linear", "i=nbc/pairwise", "i=nbc/bruck"},
}

// drawCells draws cells of all collectives that have ways.
func drawCells(seed uint64, n int) (all []cell) {
	rng := rand.New(rand.NewPCG(seed, 32))
	colls := []tasks.Collective{tasks.Bcast, tasks.Reduce, tasks.Allreduce, tasks.Allgather, tasks.Gather, tasks.Scatter, tasks.Alltoall}
	for i := range n {
		coll := colls[i%len(colls)]
		shape := "han"
		switch coll {
		case tasks.Allreduce:
			shape = "ar"
		case tasks.Alltoall:
			shape = "flat"
		}
		way := waysOf[coll][rng.IntN(len(waysOf[coll]))]
		all = append(all, cell{
			tasktest.Request(coll, 4<<rng.IntN(15)), fmt.Sprintf("%dx1", 2+rng.IntN(30)), "shape=" + shape + ",fs=all,w=1," + way,
		})
	}
	return all
}

// clone returns a machine with links of its own.
func clone(m *machine.Machine) *machine.Machine {
	other := *m
	other.Links = slices.Clone(m.Links)
	return &other
}

// drawMachine draws links and processors in the range of real ones.
func drawMachine(rng *rand.Rand) *machine.Machine {
	m := machine.Assumed()
	between := func(low, high float64) float64 { return low * math.Pow(high/low, rng.Float64()) }
	l := &m.Links[1]
	l.Latency, l.Byte = between(1e3, 60e3), between(0.05, 80)
	l.Send, l.Recv = between(200, 4e3), between(200, 4e3)
	l.SendMore, l.RecvMore, l.BurstBytes = 0, 0, 0
	return m
}

// pricer returns what prices a cell's request on a machine.
func (c cell) pricer(t *testing.T, m *machine.Machine) *price.Pricer {
	t.Helper()
	p, err := price.New(m, tasktest.Topology(t, c.spec), c.request, all.Submodules())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// terms returns the price of a cell; false: it has none.
func (c cell) terms(t *testing.T, m *machine.Machine) (price.Price, bool) {
	t.Helper()
	return c.pricer(t, m).Plan(tasktest.Plan(t, c.plan))
}

// price returns a cell's price on a machine, ns; 0: there is none.
func (c cell) price(t *testing.T, m *machine.Machine) float64 {
	t.Helper()
	got, _ := c.terms(t, m)
	return got.NS
}

// simulate runs a cell on a machine.
func (c cell) simulate(t *testing.T, m *machine.Machine) *sim.Result {
	t.Helper()
	job, err := sim.Compile(c.request, tasktest.Topology(t, c.spec), tasktest.Plan(t, c.plan), all.Submodules())
	if err != nil {
		t.Fatal(err)
	}
	result, err := job.Run(m, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// On a machine where everything takes k times as long, so do prices.
func TestPricesScale(t *testing.T) {
	rng, priced := rand.New(rand.NewPCG(1, 1)), 0
	for _, c := range drawCells(101, 70) {
		m, k := drawMachine(rng), 1.5+3*rng.Float64()
		slow := clone(m)
		for i := range slow.Links {
			l := &slow.Links[i]
			for _, v := range []*float64{&l.Latency, &l.Byte, &l.Gap, &l.Send, &l.Recv, &l.SendMore, &l.RecvMore, &l.SendByte, &l.RecvByte} {
				*v *= k
			}
		}
		for _, v := range []*float64{&slow.CopyByte, &slow.ReduceByte, &slow.PeerCopy, &slow.PeerByte, &slow.Step, &slow.MemoryByte} {
			*v *= k
		}
		fast := c.price(t, m)
		if fast == 0 {
			continue
		}
		priced++
		if got := c.price(t, slow); math.Abs(got/(k*fast)-1) > 1e-6 {
			t.Errorf("%v: %.0f ns, and %.0f on a machine %.3f times as slow", c, fast, got, k)
		}
	}
	if priced < 50 {
		t.Errorf("only %d of 70 drawn cells have a price", priced)
	}
}

// No price is below what the busiest wire carries, as a simulation counts it, nor below one
// way over the link.
func TestPricesCarryAllBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for _, c := range drawCells(202, 70) {
		m := drawMachine(rng)
		got := c.price(t, m)
		if got == 0 {
			continue
		}
		busiest := int64(0)
		for _, l := range c.simulate(t, m).Links {
			busiest = max(busiest, l.Out.Bytes, l.In.Bytes)
		}
		if least := float64(busiest)*m.Links[1].Byte + m.Links[1].Latency; got < 0.999*least {
			t.Errorf("%v: %.0f ns; %d bytes on the busiest wire take %.0f with the latency", c, got, busiest, least)
		}
	}
}

// A faster link makes no price higher, and a longer message none lower.
func TestPricesAreMonotone(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, c := range drawCells(303, 70) {
		m := drawMachine(rng)
		got := c.price(t, m)
		better := clone(m)
		better.Links[1].Byte /= 2
		better.Links[1].Latency /= 2
		if now := c.price(t, better); now > 1.0001*got {
			t.Errorf("%v: %.0f ns, and %.0f over a link twice as good", c, got, now)
		}
		longer := c
		longer.request.Count *= 2
		if now := longer.price(t, m); now != 0 && got != 0 && now < 0.9999*got {
			t.Errorf("%v: %.0f ns, and %.0f for twice the bytes", c, got, now)
		}
	}
}

// Where messages cost nothing but their way, a price is the longest chain of them: as a
// simulation counts it. Where ranks beyond a power of two hand over first, that and the
// result's way back overlap by one message, and the price has both.
func TestPricesOfLatency(t *testing.T) {
	m := &machine.Machine{Version: machine.Version}
	for _, l := range machine.Assumed().Links {
		m.Links = append(m.Links, machine.Link{Level: l.Level, Latency: 1000})
	}
	for _, c := range drawCells(404, 70) {
		topo, plan := tasktest.Topology(t, c.spec), tasktest.Plan(t, c.plan)
		if c.request.Bytes() > 4<<10 || c.request.Count < int64(topo.Size()) {
			continue // credits would go the other way; parts without elements are not sent
		}
		got := c.price(t, m)
		if got == 0 {
			continue
		}
		choice, _ := plan.Choice("i")
		more := 0.0
		if a, _ := all.Submodules().Algorithm(choice); a.Folds && bits.OnesCount(uint(topo.Size())) > 1 {
			more = 1000
		}
		if want := c.simulate(t, m).Time.Nanoseconds(); got < want-1 || got > want+more+1 {
			t.Errorf("%v: price %.0f ns, simulated %.0f", c, got, want)
		}
	}
}

// Trees of one form have one price, whatever they are called: on nodes of one rank and of several.
func TestPricesOfTheSameTree(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 11))
	for _, tc := range []struct{ coll, one, other string }{
		{"bcast", "adapt/binomial", "adapt/binomial//2"},
		{"bcast", "nbc/linear", "adapt/binary//63"},
		{"bcast", "adapt/binary", "adapt/binary//2"},
		{"reduce", "nbc/binomial", "adapt/binomial"},
	} {
		for _, spec := range []string{"2x1", "9x1", "64x1", "4x4", "3x5"} {
			m := drawNode(rng)
			for _, r := range tasktest.Requests(tc.coll, 8, 4<<10, 1<<20) {
				one, other := cell{r, spec, "shape=flat,fs=all,w=1,i=" + tc.one}, cell{r, spec, "shape=flat,fs=all,w=1,i=" + tc.other}
				want, known := one.terms(t, m)
				if got, ok := other.terms(t, m); got != want || !ok || !known {
					t.Errorf("%v: %+v, and %+v by %s", one, want, got, tc.other)
				}
			}
		}
	}
}

// Of a pipeline whose window never closes each further segment adds the same, and no more than the
// first one took.
func TestEachSegmentAddsTheSame(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 12))
	for _, tc := range []struct{ coll, spec, ways string }{
		{"bcast", "8x1", "shape=han,i=adapt/chain"},
		{"bcast", "9x4", "shape=han,i=adapt/binary,s=sm"},
		{"bcast", "4x3", "shape=flat,i=adapt/kchain//2"},
		{"reduce", "8x2", "shape=han,i=adapt/chain,s=sm/rings"},
		{"allreduce", "8x4", "shape=han,i=adapt/binomial,s=sm"},
		{"allreduce", "6x2", "shape=rsag,i=adapt/ring,s=sm/slots"},
		{"allreduce", "5x1", "shape=ar,i=circulant/blocks"},
	} {
		m, times := drawNode(rng), []float64{}
		for segments := int64(1); segments <= 5; segments++ {
			r := tasktest.Requests(tc.coll, segments*(8<<10))[0] // short enough to go without credit
			times = append(times, cell{r, tc.spec, tc.ways + ",fs=8KiB,w=1000"}.price(t, m))
		}
		each := times[2] - times[1]
		for i := 2; i < len(times); i++ {
			if more := times[i] - times[i-1]; !(more > 0) || math.Abs(more/each-1) > 1e-6 || more > times[0]*1.000001 {
				t.Errorf("%s by %s on %s: %d segments take %.0f ns", tc.coll, tc.ways, tc.spec, i+1, times)
			}
		}
	}
}

// More nodes make nothing faster.
func TestPricesGrowWithNodes(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 13))
	for _, tc := range []struct{ coll, ways string }{
		{"bcast", "shape=han,fs=all,w=1,i=adapt/binomial"},
		{"bcast", "shape=han,fs=all,w=1,i=nbc/knomial"},
		{"bcast", "shape=han,fs=4KiB,w=8,i=adapt/chain"},
		{"bcast", "shape=han,fs=all,w=1,i=nbc/linear"},
		{"reduce", "shape=han,fs=all,w=1,i=adapt/binomial"},
		{"gather", "shape=han,fs=all,w=1,i=adapt/linear"},
		{"allgather", "shape=han,fs=all,w=1,i=adapt/ring"},
		{"alltoall", "shape=flat,fs=all,w=1,i=adapt/linear"},
		{"barrier", "shape=ar,fs=all,w=1,i=nbc/dissemination"},
	} {
		m, before := drawMachine(rng), 0.0
		for nodes := 2; nodes <= 40; nodes++ {
			c := cell{tasktest.Requests(tc.coll, 8<<10)[0], fmt.Sprintf("%dx1", nodes), tc.ways}
			now := c.price(t, m)
			if now < before*0.999999 || now == 0 {
				t.Errorf("%v: %.0f ns, and %.0f on a node less", c, now, before)
			}
			before = now
		}
	}
}

// An allreduce takes no less than its halves: a reduce-scatter and an allgather of the same rounds.
func TestPricesOfHalves(t *testing.T) {
	rng := rand.New(rand.NewPCG(14, 14))
	for _, way := range []string{"i=adapt/ring", "i=circulant/blocks"} {
		for _, nodes := range []int64{2, 5, 8, 13, 32} {
			m, spec := drawMachine(rng), fmt.Sprintf("%dx1", nodes)
			price := func(coll tasks.Collective, shape string, bytes int64) float64 {
				return cell{tasktest.Request(coll, bytes), spec, "shape=" + shape + ",fs=all,w=1," + way}.price(t, m)
			}
			for _, block := range []int64{4, 1 << 10, 64 << 10} {
				whole := price(tasks.Allreduce, map[bool]string{true: "rsag", false: "ar"}[way == "i=adapt/ring"], block*nodes)
				scatter, gather := price(tasks.ReduceScatter, "han", block), price(tasks.Allgather, "han", block)
				if gather == 0 || scatter < gather*0.999999 || whole < scatter*0.999999 {
					t.Errorf("%s on %s, blocks of %d: allreduce %.0f ns, reduce-scatter %.0f, allgather %.0f", way, spec, block, whole, scatter, gather)
				}
			}
		}
	}
}
