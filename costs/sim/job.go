package sim

import (
	"fmt"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
)

// Job is the programs of all ranks of one request. It is never written to after
// [Compile], so any number of simulations may use it at the same time.
type Job struct {
	topology *levels.Topology
	seats    [2][]seat // by rank: of the program to run passes times, and of the one to run once in the end; nil: there is none
	passes   int64     // of seats[0]
	conns    [][]conn  // by rank
	forms    int       // different ones
	symmetry symmetry  // zero: all ranks are there
}

// seat is a rank's place in a form.
type seat struct {
	form  *form
	ranks []int32 // by peer of the form: its rank
	homes []int32 // by peer: the rank simulated for it; mostly that rank itself
	conns []int32 // by peer: index into the rank's conns
	backs []int32 // by peer: this rank's number among the peers of that peer's form
}

// conn is a rank's connection with another one.
type conn struct {
	rank int32 // the one simulated for it
	back int32 // index of this rank among that rank's conns
}

// New returns the job of compiled programs, by rank: all of one request on the ranks of t.
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
	return j, j.connect(nil)
}

// Ranks returns how many ranks the job has.
func (j *Job) Ranks() int { return j.topology.Size() }

// Forms returns how many different programs the job has.
func (j *Job) Forms() int { return j.forms }

// Steps returns how many steps all ranks execute together.
func (j *Job) Steps() (n int64) {
	defer func() { n *= int64(j.symmetry.times()) }()
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
// don't fit together are an error. check is asked from time to time, nil: nobody is.
func (j *Job) connect(check func() error) error {
	j.conns = make([][]conn, j.simulatedRanks())
	index := map[uint64]int32{} // of a conn, by both ranks
	for i := range j.seats {
		peers := map[uint64]int32{} // index of a peer, by both ranks
		for rank := range j.seats[i] {
			if err := ask(check); err != nil {
				return err
			}
			s := &j.seats[i][rank]
			s.homes, s.conns = j.symmetry.homesOf(s.ranks), make([]int32, len(s.ranks))
			for p, peer := range s.ranks {
				key := pairKey(int32(rank), peer)
				at, known := index[key]
				if !known {
					at = int32(len(j.conns[rank]))
					index[key] = at
					j.conns[rank] = append(j.conns[rank], conn{rank: s.homes[p]})
				}
				s.conns[p], peers[key] = at, int32(p)
			}
		}
		if err := j.matchSeats(i, index, peers, check); err != nil {
			return err
		}
	}
	return nil
}

// matchSeats finds who each rank is to its peers. index and peers are indexes of conns and
// of peers, by both ranks.
func (j *Job) matchSeats(i int, index, peers map[uint64]int32, check func() error) error {
	for rank := range j.seats[i] {
		if err := ask(check); err != nil {
			return err
		}
		s := &j.seats[i][rank]
		s.backs = make([]int32, len(s.ranks))
		for p, peer := range s.ranks {
			key := pairKey(s.homes[p], j.symmetry.seen(int32(rank), peer))
			back, known := peers[key]
			if !known || s.form.out.count(int32(p)) != j.seats[i][s.homes[p]].form.in.count(back) {
				return fmt.Errorf("simulate: rank %d sends rank %d %d messages, but that rank waits for another number",
					rank, peer, s.form.out.count(int32(p)))
			}
			s.backs[p] = back
			j.conns[rank][s.conns[p]].back = index[key]
		}
	}
	return nil
}

// ask asks a check, if there is one.
func ask(check func() error) error {
	if check == nil {
		return nil
	}
	return check()
}

// StandsFor returns how many equal nodes the first one stands for, see
// [Compilation.SymmetricJob]; 1: all ranks are simulated.
func (j *Job) StandsFor() int { return j.symmetry.times() }

// simulatedRanks returns how many ranks are simulated: the first ones.
func (j *Job) simulatedRanks() int { return j.topology.Size() / j.symmetry.times() }
