package measure

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
)

// Setup is the part of a machine that messages don't show.
type Setup struct {
	// Cores are the processors of the ranks.
	Cores machine.Cores
	// Frame has the sizes of messages and packets on the wires between nodes. The other
	// fields are not used.
	Frame machine.Link
	// Unreadable is true if ranks of a node can't read each other's memory.
	Unreadable bool
}

// Number is a number of a machine as it was measured.
type Number struct {
	Key   string  `json:"key"`   // of the file; a link's with its level in front
	Value float64 `json:"value"` // 0 or more
	Half  float64 `json:"half"`  // half the width of its 95% confidence interval
}

// Found is a machine and its measurements.
type Found struct {
	Machine *machine.Machine `json:"machine"`
	Numbers []Number         `json:"numbers"`
	Curves  []Curve          `json:"curves"`
}

// Machine measures the machine of the ranks: messages between pairs of ranks of each level, copies
// and reductions. Sizes are those of the curves, in bytes, each 1 or more. No collective has a part
// in the numbers.
func (b *Bench) Machine(ctx context.Context, s Setup, sizes []int64, stop stats.Stop) (*Found, error) {
	return findMachine(ctx, b, b.topology, s, sizes, stop)
}

// Machine is [Bench.Machine] on simulated time: it finds the numbers of the simulated machine
// again.
func (s *Simulated) Machine(ctx context.Context, o Setup, sizes []int64, stop stats.Stop) (*Found, error) {
	return findMachine(ctx, s, s.topology, o, sizes, stop)
}

func findMachine(ctx context.Context, c stopwatch, t *levels.Topology, s Setup, sizes []int64, stop stats.Stop) (*Found, error) {
	f := finder{stopwatch: c, topology: t, ctx: ctx, stop: stop, setup: s, found: &Found{}}
	f.found.Machine = &machine.Machine{Version: machine.Version, Cores: s.Cores, Unreadable: s.Unreadable}
	for k := range t.Depth() { // so the known part can be simulated
		if partners(t, k) != nil {
			f.found.Machine.Links = append(f.found.Machine.Links, machine.Link{Level: machine.Symbol(t.Level(k).Symbol)})
		}
	}
	if err := f.measureLocal(); err != nil {
		return nil, fmt.Errorf("measure: %w", err)
	}
	if err := f.measurePeers(); err != nil {
		return nil, fmt.Errorf("measure: %w", err)
	}
	for k := range t.Depth() {
		if err := f.measureLevel(k, sizes); err != nil {
			return nil, fmt.Errorf("measure level %v: %w", t.Level(k), err)
		}
	}
	if err := f.measureSwitch(); err != nil {
		return nil, fmt.Errorf("measure: %w", err)
	}
	if err := f.modelCurves(); err != nil {
		return nil, fmt.Errorf("simulate: %w", err)
	}
	return f.found, nil
}

// stopwatch runs scripts in turns.
type stopwatch interface {
	// times returns each rank's times, by script, ns. All ranks get them.
	times(ctx context.Context, stop stats.Stop, scripts ...*script) ([]scriptTimes, error)
	// processorTimes is times of the ranks' processors, if the system tells them: the work of
	// others on a processor doesn't count.
	processorTimes(ctx context.Context, stop stats.Stop, scripts ...*script) ([]scriptTimes, error)
}

var (
	_ stopwatch = (*Bench)(nil)
	_ stopwatch = (*Simulated)(nil)
)

// finder measures one machine.
type finder struct {
	stopwatch
	topology *levels.Topology
	ctx      context.Context
	stop     stats.Stop
	setup    Setup
	found    *Found
	drawings []*drawing
}

// quantity is a number with its interval.
type quantity struct{ value, half float64 }

// less returns q - p.
func (q quantity) less(p quantity) quantity {
	return quantity{q.value - p.value, math.Hypot(q.half, p.half)}
}

// times returns q·x.
func (q quantity) times(x float64) quantity { return quantity{q.value * x, q.half * math.Abs(x)} }

// positive returns q, 0 if it is less.
func (q quantity) positive() quantity { return quantity{max(0, q.value), q.half} }

func median(s costs.Summary) quantity { return quantity{s.P50, s.Half} }

// noteNumber adds a number to the report, and returns its value.
func (f *finder) noteNumber(key string, q quantity) float64 {
	q = q.positive()
	f.found.Numbers = append(f.found.Numbers, Number{key, q.value, q.half})
	return q.value
}

// Sizes of a rank's work by itself.
const (
	localBytes = 256 << 10 // of a copy or a reduction
	localCount = 16        // in a sample
	stepCount  = 1000
)

// measureLocal measures a rank's work by itself: rank 0 while the others wait.
func (f *finder) measureLocal() error {
	node := members(f.topology, f.nodeLevel(), 0)
	scripts := []*script{
		soloScript(func(e *submodules.Emitter) { emitJoins(e, 1) }, 0),
		soloScript(func(e *submodules.Emitter) { emitJoins(e, 1+stepCount) }, 0),
		soloScript(func(e *submodules.Emitter) { copyOver(e, localBytes, localCount) }, 0),
		soloScript(func(e *submodules.Emitter) { copyOver(e, localBytes, localCount) }, node...),
		soloScript(func(e *submodules.Emitter) { reduceOver(e, localBytes, localCount) }, 0),
	}
	for i, s := range scripts {
		s.name, s.bytes, s.adds = fmt.Sprintf("local %d", i), 1, i == len(scripts)-1
	}
	all, err := f.times(f.ctx, f.stop, scripts...)
	if err != nil {
		return err
	}
	m, bytes := f.found.Machine, 1.0/(localBytes*localCount)
	one := func(i int) quantity { return median(all[i].Ranks[0]) }
	call := one(0)
	f.noteNumber("call_ns", call)
	m.Step = f.noteNumber("step_ns", one(1).less(call).times(1.0/stepCount))
	m.CopyByte = f.noteNumber("copy_byte_ns", one(2).less(call).times(bytes))
	m.ReduceByte = f.noteNumber("reduce_byte_ns", one(4).less(call).times(bytes))
	if cores := max(f.setup.Cores.PerNode, f.setup.Cores.InAll); cores > 0 && cores < len(node) {
		return nil // the ranks of a node can't copy at once
	}
	together := median(all[3].Slowest).less(call).times(bytes)
	if together.value > crowdRatio*m.CopyByte {
		m.MemoryByte = f.noteNumber("memory_byte_ns", together.times(1/float64(2*len(node))))
	}
	return nil
}

// soloScript returns a script in which each of some ranks has the same steps, and meets nobody.
func soloScript(emit func(*submodules.Emitter), ranks ...levels.Rank) *script {
	return &script{emit: func(e *submodules.Emitter, c *submodules.Call) {
		if slices.Contains(ranks, c.Group.Ranks[c.Me]) {
			emit(e)
		}
	}}
}

// crowdRatio times the copy of one rank is the least time for copies of all ranks of a node to
// count as waiting for memory.
const crowdRatio = 1.15

// nodeLevel returns the level of nodes.
func (f *finder) nodeLevel() int {
	for k := range f.topology.Depth() {
		if f.topology.Level(k).Symbol == levels.NodeSymbol {
			return k
		}
	}
	return 0
}

// measureLevel measures the messages between ranks with a common domain of level k and none inside
// it. Without such ranks there is nothing to measure.
func (f *finder) measureLevel(k int, sizes []int64) error {
	pairs := partners(f.topology, k)
	if len(pairs) == 0 {
		return nil
	}
	symbol := f.topology.Level(k).Symbol
	drawings := []*drawing{
		newDrawing(symbol, Turns, pairs[:1], sizes), newDrawing(symbol, OneWay, pairs[:1], sizes), newDrawing(symbol, BothWays, pairs[:1], sizes),
	}
	if len(pairs) > 1 {
		drawings = append(drawings, newDrawing(symbol, OneWay, pairs, sizes))
	}
	if all := everybody(f.topology, k); len(all) > 1 {
		drawings = append(drawings, newDrawing(symbol, Turns, all, sizes))
	}
	for _, d := range drawings {
		if err := d.measureTimes(f.ctx, f, f.stop); err != nil {
			return err
		}
	}
	if err := f.findLink(symbol, k > f.nodeLevel(), pairs[0]); err != nil {
		return err
	}
	f.drawings = append(f.drawings, drawings...)
	return nil
}

// measurePeers measures copies of the memory of another rank of the node.
func (f *finder) measurePeers() error {
	var pairs []pair
	for k := 0; k <= f.nodeLevel() && len(pairs) == 0; k++ {
		pairs = partners(f.topology, k)
	}
	if len(pairs) == 0 || f.setup.Unreadable {
		return nil
	}
	counts, sizes := []int{1, peerCount, 1, peerCount}, []int64{smallBytes, smallBytes, peerBytes, peerBytes}
	var scripts []*script
	for i, n := range sizes {
		scripts = append(scripts, readScript(fmt.Sprintf("peer's memory %d×%d", counts[i], n), pairs[0], n, counts[i]))
	}
	all, err := f.times(f.ctx, f.stop, scripts...)
	if err != nil {
		return err
	}
	m := f.found.Machine
	each := func(i int) quantity {
		q := median(all[i+1].Ranks[pairs[0].a]).less(median(all[i].Ranks[pairs[0].a])).times(1.0 / (peerCount - 1))
		return q.less(quantity{m.Step + m.CopyByte*float64(sizes[i]), 0})
	}
	small := each(0).positive()
	m.PeerCopy = f.noteNumber("peer_copy_ns", small)
	m.PeerByte = f.noteNumber("peer_byte_ns", each(2).less(small).times(1.0/peerBytes))
	return nil
}

// peerBytes is the size of a copy of another rank's memory, and peerCount how many follow each
// other.
const (
	peerBytes = 64 << 10
	peerCount = 33
)

// measureSwitch finds the time to give a processor to another rank, if ranks share them. It has all
// pairs begin at once with a single message. A lone pair's wait for a message contains one such
// change. It is then no part of the latency.
func (f *finder) measureSwitch() error {
	pairs := everybody(f.topology, f.topology.Depth()-1)
	m := f.found.Machine
	if cores := m.Cores.InAll; cores == 0 || cores >= f.topology.Size() || len(pairs) < 2 {
		return nil
	}
	once := sendScript("once", pairs, smallBytes, 1)
	stop := f.stop.WithDefaults() // a short one, of much chance
	stop.Rel, stop.Budget = stop.Rel/5, 5*stop.Budget
	all, err := f.times(f.ctx, stop, once)
	if err != nil {
		return err
	}
	least, most := 0.0, mostSwitch
	latencies := make([]float64, len(m.Links))
	for i := range m.Links {
		latencies[i] = m.Links[i].Latency
	}
	for range switchRounds {
		m.Cores.Switch = (least + most) / 2
		for i := range m.Links {
			m.Links[i].Latency = max(0, latencies[i]-m.Cores.Switch)
		}
		ns, err := once.modelTime(f.topology, m)
		if err != nil {
			return err
		}
		if ns < all[0].Slowest.Mean {
			least = m.Cores.Switch
		} else {
			most = m.Cores.Switch
		}
	}
	f.noteNumber("switch_ns", quantity{m.Cores.Switch, all[0].Slowest.Half})
	return nil
}

// mostSwitch bounds the time for a change of ranks, ns, and switchRounds halve it.
const (
	mostSwitch   = 100e3
	switchRounds = 20
)

// modelCurves adds the machine's times of all curves.
func (f *finder) modelCurves() error {
	for _, d := range f.drawings {
		if err := d.modelTimes(f.topology, f.found.Machine); err != nil {
			return err
		}
		f.found.Curves = append(f.found.Curves, d.Curve)
	}
	return nil
}
