package sim_test

import (
	"flag"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/submodules/check/casegen"
	"github.com/tierflow/tierflow/tasks"
)

// drawCase draws a request and a plan that compile, of not too many steps.
func drawCase(t *testing.T, random *rand.Rand, ranks int) (casegen.Case, *sim.Job) {
	t.Helper()
	for {
		c := casegen.Options{MaxRanks: ranks, Registry: all.Submodules()}.Draw(random)
		j, err := sim.Compile(c.Request, c.Topology, c.Plan, all.Submodules())
		if err == nil && j.Steps() < 100_000 {
			return c, j
		}
	}
}

// drawMachine draws a machine that has everything.
func drawMachine(random *rand.Rand) *machine.Machine {
	m := machine.Assumed()
	for i := range m.Links {
		l := &m.Links[i]
		l.Latency *= random.Float64() * 2
		l.Byte *= random.Float64() * 2
		l.Gap = 1000 * random.Float64()
		l.BufferBytes = random.Int64N(256 << 10)
		l.BurstBytes = random.Int64N(2) * random.Int64N(32<<10)
	}
	m.Links[0].Byte = 0.02 * float64(random.IntN(2))
	m.MemoryByte *= float64(random.IntN(2))
	m.PeerCopy, m.PeerByte = 1000*random.Float64(), 0.1*random.Float64()
	m.Unreadable = random.IntN(2) == 0
	m.EagerMax = []int64{0, -1, 100, 1 << 20}[random.IntN(4)]
	m.Budget = []int64{0, 1, 1000, 1 << 20}[random.IntN(4)]
	m.Noise = 0.2
	switch random.IntN(3) {
	case 0:
		m.Cores = machine.Cores{PerNode: 1 + random.IntN(2), Switch: 1000 * random.Float64()}
	case 1:
		m.Cores = machine.Cores{InAll: 1 + random.IntN(3)}
	}
	return m
}

// seed chooses the random cases. Other seeds give other cases, as many again.
var seed = flag.Uint64("seed", 2, "seed of the random cases: any number")

func cases() int {
	if testing.Short() {
		return 30
	}
	return 300
}

// Whatever the program and the machine: every step is executed once, nothing waits for
// ever, the same seed gives the same result, and folding or giving compiled programs
// makes no difference.
func TestAnyProgram(t *testing.T) {
	random := rand.New(rand.NewPCG(1, *seed))
	for range cases() {
		c, j := drawCase(t, random, 24)
		m, o := drawMachine(random), sim.Options{Seed: random.Uint64(), Start: make([]sim.Time, j.Ranks())}
		for r := range o.Start {
			o.Start[r] = sim.Time(random.Int64N(int64(sim.Millisecond)))
		}
		steps := int64(0)
		o.Watch = func(e sim.Event) {
			if steps++; e.Begin < o.Start[e.Rank] || e.End < e.Begin {
				t.Errorf("%v: rank %d, step %d from %v to %v", c, e.Rank, e.Step, e.Begin, e.End)
			}
		}
		want, err := j.Run(m, o)
		if err != nil {
			t.Fatalf("%v: %v", c, err)
		}
		if want.Steps != j.Steps() || steps != j.Steps() {
			t.Errorf("%v: %d steps, %d seen, of %d", c, want.Steps, steps, j.Steps())
		}
		o.Watch, o.Path = nil, true
		checkPath(t, c, j, m, o, want)
		o.Path = false
		for name, other := range map[string]*sim.Job{"again": j, "unfolded": unfolded(t, c), "compiled before": compiled(t, c)} {
			got, err := other.Run(m, o)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%v: %s: %v, %+v, want %+v", c, name, err, got, want)
			}
		}
		checkUse(t, c, m, want)
	}
}

// checkUse checks that nothing shared is used for longer than there is time.
func checkUse(t *testing.T, c casegen.Case, m *machine.Machine, r *sim.Result) {
	t.Helper()
	busy := sim.Time(0)
	for rank, b := range r.Busy {
		if busy += b; b > r.Time && r.End[rank] == r.Time {
			t.Errorf("%v: rank %d was busy for %v of %v", c, rank, b, r.Time)
		}
	}
	if n := sim.Time(m.Cores.InAll); n > 0 && busy > n*r.Time+sim.Millisecond {
		t.Errorf("%v: %v of work by %d processors in %v", c, busy, n, r.Time)
	}
	for _, l := range r.Links {
		most := 5*r.Time/4 + 600*sim.Microsecond // what passes bulk overlaps with it; a burst
		if l.Out.Busy > most || l.In.Busy > most {
			t.Errorf("%v: link %c %d: %v out and %v in of %v", c, l.Level, l.Domain, l.Out.Busy, l.In.Busy, r.Time)
		}
	}
}

// checkPath checks that the critical path leads without a gap from some rank's start to
// the end, through steps that exist, and that asking for it changes nothing.
func checkPath(t *testing.T, c casegen.Case, j *sim.Job, m *machine.Machine, o sim.Options, want *sim.Result) {
	t.Helper()
	got, err := j.Run(m, o)
	if err != nil {
		t.Fatal(err)
	}
	path := got.Path
	if got.Path = nil; !reflect.DeepEqual(got, want) {
		t.Errorf("%v: with its path %+v, without %+v", c, got, want)
	}
	if len(path) == 0 {
		if want.Time > slices.Max(o.Start) {
			t.Errorf("%v: no path to %v", c, want.Time)
		}
		return
	}
	if first, last := path[0], path[len(path)-1]; !slices.Contains(o.Start, first.Begin) || last.End != want.Time {
		t.Errorf("%v: path from %v to %v; the ranks start at %v and end at %v", c, first.Begin, last.End, o.Start, want.Time)
	}
	for i, p := range path {
		if i > 0 && p.Begin != path[i-1].End || p.End <= p.Begin || p.Cause.String() == "invalid" {
			t.Errorf("%v: piece %d is %+v, after one that ends at %v", c, i, p, path[max(i-1, 0)].End)
		}
		if p.Step >= 0 {
			j.Source(p.Rank, p.Pass).Describe(p.Step)
		}
	}
}

func unfolded(t *testing.T, c casegen.Case) *sim.Job {
	t.Helper()
	j, err := sim.CompileEach(c.Request, c.Topology, c.Plan, all.Submodules())
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func compiled(t *testing.T, c casegen.Case) *sim.Job {
	t.Helper()
	progs := make([]submodules.Compiled, c.Topology.Size())
	for rank := range progs {
		var err error
		if progs[rank], err = submodules.CompileRequest(c.Request, c.Topology, c.Plan, levels.Rank(rank), all.Submodules()); err != nil {
			t.Fatal(err)
		}
	}
	j, err := sim.New(c.Topology, progs)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// Ranks of equal role are stored once.
func TestFolding(t *testing.T) {
	for _, test := range []struct {
		coll  tasks.Collective
		topo  string
		bytes int64
		plan  string
		forms int
	}{
		{tasks.Bcast, "16x8", 8003, "shape=han,fs=1KiB,w=2,i=adapt/chain,s=sm", 4}, // root, middle and end of the chain, members
		{tasks.Barrier, "64x12", 8003, "shape=han,fs=all,w=1,i=adapt/binomial,s=sm", 0},
		{tasks.Allreduce, "8x4", 8003, "shape=lanes,fs=1KiB,w=2,i=nbc/ring,s=sm", 0},
		{tasks.Allreduce, "4x4", 8003, "shape=rotate,fs=1KiB,w=2,i=adapt/binomial,s=sm", 0},
		{tasks.Allreduce, "2x3x4", 8003, "shape=rsag,fs=1KiB,w=2,i=nbc/ring,m=sm,s=sm", 0},
		{tasks.Bcast, "2x2", 3001, "shape=han,fs=1,w=3,i=adapt/chain,s=sm", 0}, // in passes
		{tasks.Reduce, "a:3,b:1,c:2", 8003, "shape=han,fs=1KiB,w=2,i=adapt/chain,s=sm", 0},
		{tasks.Allgather, "4x4", 8003, "shape=han,fs=1KiB,w=2,i=nbc/ring,s=sm", 0},
	} {
		r, topo, p := problem(t, test.coll, test.topo, test.bytes, test.plan)
		c := casegen.Case{Request: r, Topology: topo, Plan: p}
		folded, each := job(t, test.coll, test.topo, test.bytes, test.plan), unfolded(t, c)
		if test.forms > 0 && folded.Forms() != test.forms {
			t.Errorf("%v: %d forms, want %d", c, folded.Forms(), test.forms)
		}
		if folded.Forms() != each.Forms() || folded.Steps() != each.Steps() {
			t.Errorf("%v: folded %d forms, %d steps; otherwise %d and %d", c, folded.Forms(), folded.Steps(), each.Forms(), each.Steps())
		}
		a, err := folded.Run(machine.Assumed(), sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := each.Run(machine.Assumed(), sim.Options{})
		if err != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%v: folded %v, otherwise %v, %v", c, a.Time, b.Time, err)
		}
	}
}

// More latency or more bytes never make a tree end earlier.
func TestMonotone(t *testing.T) {
	for _, plan := range []string{"adapt/chain", "adapt/binomial", "adapt/binary", "adapt/linear", "nbc/chain", "nbc/binomial"} {
		for _, coll := range []tasks.Collective{tasks.Bcast, tasks.Reduce, tasks.Allreduce} {
			before := sim.Time(0)
			for bytes := int64(1); bytes < 1<<20; bytes = bytes*3 + 1 {
				m := machine.Assumed()
				m.EagerMax = 4096 // no leads: they make 64 KiB faster than what is just above
				got := run(t, coll, "7x1", bytes, "shape=flat,fs=all,w=1,i="+plan, m, sim.Options{}).Time
				if got < before {
					t.Errorf("%v by %s: %d bytes take %v, fewer %v", coll, plan, bytes, got, before)
				}
				before = got
				m.Links[1].Latency += 1000
				if later := run(t, coll, "7x1", bytes, "shape=flat,fs=all,w=1,i="+plan, m, sim.Options{}).Time; later <= got {
					t.Errorf("%v by %s, %d bytes: with more latency %v, with less %v", coll, plan, bytes, later, got)
				}
			}
		}
	}
}

// Trees of one small message have closed forms in LogGP (Alexandrov, Ionescu, Schauser,
// Scheiman, SPAA 1995).
func TestClosedForms(t *testing.T) {
	m := plain()
	const n, o, l, r = 500, 100, 1000, 50
	hop := func(sent int) int64 { return o + int64(sent)*n + n + l + r } // the wire is slower than the processor
	var binomial func(ranks int) int64
	binomial = func(ranks int) (last int64) { // a power of two: the first child has half of them
		sent := 0
		for half := ranks / 2; half > 0; half /= 2 {
			last = max(last, hop(sent)+binomial(half))
			sent++
		}
		return last
	}
	for _, test := range []struct {
		topo, by string
		want     int64
	}{
		{"2x1", "adapt/chain", hop(0)},
		{"9x1", "adapt/chain", 8 * hop(0)},
		{"512x1", "adapt/chain", 511 * hop(0)},
		{"2x1", "adapt/binomial", binomial(2)},
		{"16x1", "adapt/binomial", binomial(16)},
		{"256x1", "nbc/binomial", binomial(256)},
		{"10x1", "adapt/linear", hop(8)},
	} {
		got := run(t, tasks.Bcast, test.topo, n, "shape=flat,fs=all,w=1,i="+test.by, m, sim.Options{}).Time
		if got != sim.Time(test.want)*sim.Nanosecond {
			t.Errorf("%s on %s: %v, want %d ns", test.by, test.topo, got, test.want)
		}
	}
}

// Noise makes runs longer by about as much as the machine says.
func TestNoise(t *testing.T) {
	m := machine.Assumed()
	m.Noise = 0.1
	const plan = "shape=flat,fs=all,w=1,i=adapt/chain"
	quiet := run(t, tasks.Bcast, "256x1", 8, plan, m, sim.Options{}).Time
	noisy := run(t, tasks.Bcast, "256x1", 8, plan, m, sim.Options{Seed: 7}).Time
	if share := float64(noisy)/float64(quiet) - 1; share < 0.07 || share > 0.13 {
		t.Errorf("quiet %v, noisy %v: %.3f more, want about 0.1", quiet, noisy, share)
	}
}

// A rank that comes late delays those that wait for it, and no more.
func TestSkew(t *testing.T) {
	const plan, late = "shape=flat,fs=all,w=1,i=adapt/chain", 5 * sim.Millisecond
	before := run(t, tasks.Bcast, "4x1", 100, plan, plain(), sim.Options{})
	after := run(t, tasks.Bcast, "4x1", 100, plan, plain(), sim.Options{Start: []sim.Time{0, 0, late, 0}})
	if after.End[1] != before.End[1] || after.Time <= late || after.Time > late+before.Time {
		t.Errorf("ends %v, with a late rank %v", before.End, after.End)
	}
}

// What comes for a later pass waits for it.
func TestEarlyPasses(t *testing.T) {
	const plan, late = "shape=flat,fs=1,w=3,i=adapt/chain", sim.Second
	result := run(t, tasks.Bcast, "2x1", 3001, plan, plain(), sim.Options{Start: []sim.Time{0, late}})
	if result.End[0] > late || result.End[1] > late+2*sim.Millisecond {
		t.Errorf("ends %v: rank 0 has room for all messages in its budget, and rank 1 has them all from the start", result.End)
	}
}

func TestRefusals(t *testing.T) {
	r, topo, p := problem(t, tasks.Bcast, "4x2", 100, "shape=han,fs=all,w=1,i=adapt/chain,s=sm")
	j, err := sim.Compile(r, topo, p, all.Submodules())
	if err != nil {
		t.Fatal(err)
	}
	m := plain()
	m.Links = m.Links[:1]
	for _, test := range []struct {
		name, want string
		do         func() error
	}{
		{"link", "no link for level i/network; there are links for s", func() error { _, err := j.Run(m, sim.Options{}); return err }},
		{"start", "2 times to start at for 8 ranks", func() error { _, err := j.Run(plain(), sim.Options{Start: make([]sim.Time, 2)}); return err }},
		{"ranks", "programs of 1 ranks on a machine of 8", func() error { _, err := sim.New(topo, make([]submodules.Compiled, 1)); return err }},
		{"mixed", "a program of rank 0 of 8 for rank 1 of 8", func() error {
			one, err := submodules.CompileRequest(r, topo, p, 0, all.Submodules())
			if err != nil {
				return err
			}
			_, err = sim.New(topo, []submodules.Compiled{one, one, one, one, one, one, one, one})
			return err
		}},
		{"plan", "unknown submodule", func() error {
			_, err := sim.Compile(r, topo, p.Set("i", tasks.Choice{Submodule: "none"}), all.Submodules())
			return err
		}},
	} {
		if err := test.do(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
	}
}

// Messages of one rank to several others share its wire: the last part of each leaves near
// the end of all. Those of a few kilobytes go one after the other.
func TestTurns(t *testing.T) {
	ends := func(bytes int64) (first, last float64) {
		end := run(t, tasks.Scatter, "4x1", bytes, "shape=flat,fs=all,w=1,i=adapt/linear", plain(), sim.Options{}).End
		slices.Sort(end[1:])
		return float64(end[1]), float64(end[3])
	}
	if first, last := ends(1 << 20); first < 0.8*last {
		t.Errorf("of three messages of 1 MiB the first is there after %.0f, the last after %.0f", first, last)
	}
	if first, last := ends(32 << 10); first > 0.7*last {
		t.Errorf("of three messages of 32 KiB the first is there after %.0f, the last after %.0f", first, last)
	}
}
