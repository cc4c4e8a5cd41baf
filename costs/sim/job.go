package sim

import (
	"fmt"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Job is the programs of all ranks of one request. It is never written to after
// [Compile], so any number of simulations may use it at the same time.
type Job struct {
	topology *levels.Topology
	seats    [2][]seat // by rank: of the program that runs passes times, and of the one that runs once in the end; nil: there is none
	passes   int64     // of seats[0]
	conns    [][]conn  // by rank
	forms    int       // different ones
}

// seat is a rank's place in a form.
type seat struct {
	form  *form
	ranks []int32 // by peer of the form: its rank
	conns []int32 // by peer: index into the rank's conns
	backs []int32 // by peer: which peer this rank is of that peer's form
}

// conn is another rank that a rank speaks with.
type conn struct {
	rank int32
	back int32 // index of this rank among that rank's conns
}

// Compile compiles a request for all ranks. It keeps no more than their forms: the
// program of a rank is dropped before that of the next one is made.
func Compile(r tasks.Request, t *levels.Topology, p tasks.Plan, reg submodules.Registry) (*Job, error) {
	return compile(r, t, p, reg, true, nil, nil)
}

// CompileOnly is [Compile] of those tasks alone that keep reports true for, see
// [tasks.Graph.Only]. All ranks must keep the same phases. Ranks that idle reports true for
// do nothing; nil: there are none. What is left must not speak with them.
func CompileOnly(r tasks.Request, t *levels.Topology, p tasks.Plan, reg submodules.Registry, keep func(*tasks.Task) bool, idle func(levels.Rank) bool) (*Job, error) {
	return compile(r, t, p, reg, idle == nil, keep, idle)
}

// compile is [Compile]; without fold it compiles every rank. keep nil keeps all tasks.
func compile(r tasks.Request, t *levels.Topology, p tasks.Plan, reg submodules.Registry, fold bool, keep func(*tasks.Task) bool, idle func(levels.Rank) bool) (*Job, error) {
	cut, err := tasks.CutRequest(r, t, p)
	if err != nil {
		return nil, err
	}
	j := &Job{topology: t, passes: cut.Passes}
	store := newStore()
	for i, part := range []tasks.Request{cut.Whole, cut.Rest} {
		if i == 0 && cut.Passes == 0 || i == 1 && cut.Passes > 0 && part.Count == 0 {
			continue
		}
		roles := newCasting(part, cut.On, p, fold)
		for rank := range levels.Rank(t.Size()) {
			if idle != nil && idle(rank) {
				j.seats[i] = append(j.seats[i], seat{form: nothing})
				continue
			}
			s, known := roles.fold(rank)
			if !known {
				prog, err := compileRank(part, cut.On, p, rank, reg, keep)
				if err != nil {
					return nil, err
				}
				s = seatOf(prog, store)
				roles.add(rank, s)
			}
			j.seats[i] = append(j.seats[i], s)
		}
	}
	j.forms = store.count
	return j, j.connect()
}

func compileRank(r tasks.Request, h *levels.Hierarchy, p tasks.Plan, rank levels.Rank, reg submodules.Registry, keep func(*tasks.Task) bool) (*submodules.Program, error) {
	g, err := tasks.ExpandOn(r, h, p, rank)
	if err != nil {
		return nil, err
	}
	if keep != nil {
		g = g.Only(keep)
	}
	return submodules.Compile(g, h.Topology().Size(), reg)
}

// New returns the job of programs that were compiled already, by rank: all of one
// request on the ranks of t.
func New(t *levels.Topology, all []submodules.Compiled) (*Job, error) {
	if len(all) != t.Size() {
		return nil, fmt.Errorf("simulate: programs of %d ranks on a machine of %d", len(all), t.Size())
	}
	j := &Job{topology: t, passes: all[0].Passes}
	store := newStore()
	for rank := range all {
		c := &all[rank]
		if c.Passes != j.passes || (c.Rest == nil) != (all[0].Rest == nil) || (c.Whole == nil) != (all[0].Whole == nil) {
			return nil, fmt.Errorf("simulate: rank %d runs other passes than rank 0", rank)
		}
		for i, prog := range []*submodules.Program{c.Whole, c.Rest} {
			if prog == nil {
				continue
			}
			if prog.Size != t.Size() || int(prog.Rank) != rank {
				return nil, fmt.Errorf("simulate: a program of rank %d of %d for rank %d of %d", prog.Rank, prog.Size, rank, t.Size())
			}
			j.seats[i] = append(j.seats[i], seatOf(prog, store))
		}
	}
	j.forms = store.count
	return j, j.connect()
}

// Ranks returns how many ranks the job has.
func (j *Job) Ranks() int { return j.topology.Size() }

// Forms returns how many different programs the job has.
func (j *Job) Forms() int { return j.forms }

// Steps returns how many steps all ranks execute together.
func (j *Job) Steps() (n int64) {
	for i, times := range []int64{j.passes, 1} {
		for r := range j.seats[i] {
			n += times * int64(j.seats[i][r].form.len())
		}
	}
	return n
}

// seat returns a rank's place in the program of a pass, nil behind the last one.
func (j *Job) seat(rank int32, pass int64) *seat {
	switch {
	case pass < j.passes:
		return &j.seats[0][rank]
	case pass == j.passes && j.seats[1] != nil:
		return &j.seats[1][rank]
	}
	return nil
}

func seatOf(p *submodules.Program, s *store) seat {
	at := seat{form: s.intern(newForm(p)), ranks: make([]int32, len(p.Peers))}
	for i, peer := range p.Peers {
		at.ranks[i] = int32(peer.Rank)
	}
	return at
}

// connect finds for each rank and peer how the peer knows that rank. Programs that
// don't fit together are an error.
func (j *Job) connect() error {
	j.conns = make([][]conn, j.Ranks())
	index := map[uint64]int32{} // of a conn, by both ranks
	for i := range j.seats {
		peers := map[uint64]int32{} // index of a peer, by both ranks
		for rank := range j.seats[i] {
			s := &j.seats[i][rank]
			s.conns = make([]int32, len(s.ranks))
			for p, peer := range s.ranks {
				key := pairKey(int32(rank), peer)
				at, known := index[key]
				if !known {
					at = int32(len(j.conns[rank]))
					index[key] = at
					j.conns[rank] = append(j.conns[rank], conn{rank: peer})
				}
				s.conns[p], peers[key] = at, int32(p)
			}
		}
		if err := j.matchSeats(i, peers); err != nil {
			return err
		}
	}
	for rank := range j.conns {
		for k := range j.conns[rank] {
			c := &j.conns[rank][k]
			c.back = index[pairKey(c.rank, int32(rank))]
		}
	}
	return nil
}

func pairKey(a, b int32) uint64 { return uint64(uint32(a))<<32 | uint64(uint32(b)) }

// matchSeats finds who each rank is to its peers. peers are their indexes, by both ranks.
func (j *Job) matchSeats(i int, peers map[uint64]int32) error {
	for rank := range j.seats[i] {
		s := &j.seats[i][rank]
		s.backs = make([]int32, len(s.ranks))
		for p, peer := range s.ranks {
			back, known := peers[pairKey(peer, int32(rank))]
			if !known || s.form.out.count(int32(p)) != j.seats[i][peer].form.in.count(back) {
				return fmt.Errorf("simulate: rank %d sends rank %d %d messages, but that rank waits for another number",
					rank, peer, s.form.out.count(int32(p)))
			}
			s.backs[p] = back
		}
	}
	return nil
}
