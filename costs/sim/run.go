package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/executor/flow"
	"github.com/tierflow/tierflow/levels"
)

// Options are the choices of a simulation beside programs and machine.
type Options struct {
	// Seed chooses the noise; its size is the machine's. 0: none.
	Seed uint64
	// Start is when each rank begins, by rank; 0 or more. nil: all at 0.
	Start []Time
	// Path asks for [Result.Path]. It takes about 64 bytes for each step and each message.
	Path bool
	// Watch, if not nil, is called at the end of each step, in the same order for the same input. A
	// rank's steps may be reported ahead of earlier ones of other ranks.
	Watch func(Event)
	// Check, if not nil, hears from time to time how many steps have ended. Its error ends
	// the simulation, and is Run's.
	Check func(steps int64) error
	// Limit ends a simulation with [ErrLimit] at the first event after it. 0: it may take any time.
	Limit Time
}

// ErrLimit is returned for a simulation with events after [Options.Limit], and for a job of more
// steps than [Compilation] allows.
var ErrLimit = errors.New("simulate: it takes longer than the limit")

// checkEvery is how many events lie between two calls of Check: some milliseconds.
const checkEvery = 1 << 15

// Run simulates the job on a machine.
func (j *Job) Run(m *machine.Machine, o Options) (*Result, error) {
	e, err := newEngine(j, m, &o)
	if err != nil {
		return nil, err
	}
	for len(e.queue.events) > 0 {
		ev := e.queue.pop()
		e.now = ev.at
		e.counts.Events++
		if o.Limit > 0 && e.now > o.Limit {
			return nil, ErrLimit
		}
		if o.Check != nil && e.counts.Events%checkEvery == 0 {
			if err := o.Check(e.counts.Steps); err != nil {
				return nil, err
			}
		}
		switch i := int32(ev.what & (1<<indexBits - 1)); ev.what >> indexBits {
		case wake:
			e.wakeRank(&e.ranks[i])
		case depart:
			e.departMessage(i)
		case enter:
			e.enterWires(i)
		case turn:
			e.takeTurn(&e.wires[int(i)%len(e.wires)][int(i)/len(e.wires)].out)
		default:
			e.deliverMessage(i)
		}
	}
	if e.left > 0 {
		return nil, e.explainStuck()
	}
	return e.makeResult(o.Start), nil
}

func newEngine(j *Job, m *machine.Machine, o *Options) (*engine, error) {
	t := j.topology
	if o.Start != nil && len(o.Start) != t.Size() {
		return nil, fmt.Errorf("simulate: %d times to start at for %d ranks", len(o.Start), t.Size())
	}
	n := j.simulatedRanks()
	e := &engine{job: j, free: -1, left: n, random: o.Seed, ranks: make([]rank, n), nodes: make([]int32, n), memory: make([]Time, t.Nodes()), members: make([]int32, t.Nodes())}
	var err error
	if e.prices, err = pricesOf(m, t, o.Seed); err != nil {
		return nil, err
	}
	if err := j.symmetry.check(m, o.Seed, o.Start); err != nil {
		return nil, err
	}
	if o.Watch != nil {
		e.watch = newWatch(j, o.Watch)
	}
	if o.Path {
		e.log = newLog(n)
	}
	e.makeWires(t)
	e.makePools(m.Cores, t)
	for i := range e.ranks {
		if o.Check != nil {
			if err := o.Check(0); err != nil {
				return nil, err
			}
		}
		r := &e.ranks[i]
		*r = rank{id: int32(i), pass: -1, end: -1, inbox: list{-1, -1}, state: scheduled}
		e.nodes[i] = int32(t.Node(levels.Rank(i)))
		e.members[e.nodes[i]]++
		e.makePairs(r, t)
		if o.Start != nil {
			r.clock = max(0, o.Start[i])
		}
	}
	for _, i := range startOrder(n, o.Seed) {
		e.queue.push(e.ranks[i].clock, wake, i)
	}
	return e, nil
}

// startOrder returns the order of ranks for starts at the same time. It decides whose message is
// first where several would arrive together. The order of ranks' numbers would be the worst one for
// some trees in every run, and the best for others. So it is an arbitrary one, the same for the
// same seed.
func startOrder(n int, seed uint64) []int32 {
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	key := func(i int32) uint64 { return mix(seed + uint64(i)*golden) }
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(key(a), key(b)) })
	return order
}

// makePairs prepares a rank's side of its conns.
func (e *engine) makePairs(r *rank, t *levels.Topology) {
	r.pairs = make([]pair, len(e.job.conns[r.id]))
	for i := range e.job.seats {
		if e.job.seats[i] == nil {
			continue
		}
		s := &e.job.seats[i][r.id]
		for k, c := range s.conns {
			r.pairs[c] = e.newPair(levels.Rank(r.id), levels.Rank(s.ranks[k]), t)
		}
	}
}

// newPair returns a rank's knowledge of another one at the start.
func (e *engine) newPair(me, peer levels.Rank, t *levels.Topology) (p pair) {
	for t.Domain(me, int(p.link)) != t.Domain(peer, int(p.link)) {
		p.link++
	}
	limit := e.prices.limits.NearBudget
	if p.isFar = t.Node(me) != t.Node(peer); p.isFar {
		limit = e.prices.limits.FarBudget
	}
	p.flow, p.spoken, p.bulk = flow.NewPair(limit), -1, list{-1, -1}
	return p
}

// makeWires makes the wires of all links: those of the domains one level inside, at the
// innermost level those of ranks.
func (e *engine) makeWires(t *levels.Topology) {
	for k := range t.Depth() {
		domains, count := make([]int32, t.Size()), t.Size()
		if k > 0 {
			count = t.Domains(k - 1)
		}
		for r := range domains {
			if domains[r] = int32(r); k > 0 {
				domains[r] = t.Domain(levels.Rank(r), k-1)
			}
		}
		wires := make([]wirePair, count)
		for d := range wires {
			wires[d].out.id = int32(d*t.Depth() + k)
		}
		e.domains, e.wires = append(e.domains, domains), append(e.wires, wires)
	}
}

// makePools makes the shared processors of ranks.
func (e *engine) makePools(c machine.Cores, t *levels.Topology) {
	switch {
	case c.InAll > 0:
		e.pools = []pool{{free: c.InAll}}
	case c.PerNode > 0:
		e.pools = make([]pool, t.Nodes())
		for i := range e.pools {
			e.pools[i].free = c.PerNode
		}
	}
}
