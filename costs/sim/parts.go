package sim

import (
	"errors"
	"fmt"

	"github.com/tierflow/tierflow/costs/machine"
)

// ErrAsymmetric is wrapped by errors: the nodes of a request can't stand for each other.
var ErrAsymmetric = errors.New("the nodes do not all do the same")

// symmetry is how the parts of a machine stand for each other: its nodes, unless a level joins some
// of them. Part b does the same as the first one. Its peers are as many parts away as the first
// one's. The zero value: there are no such parts.
type symmetry struct {
	parts int32 // equal ones; 0: every rank is simulated
	ranks int32 // of each part
	isXor bool  // part b's peer is b xor the first one's, else b more than that
}

// times returns for how many parts one is simulated.
func (t symmetry) times() int { return int(max(t.parts, 1)) }

// homesOf returns the ranks of the first part simulated for some ranks.
func (t symmetry) homesOf(ranks []int32) []int32 {
	if t.parts == 0 {
		return ranks
	}
	homes := make([]int32, len(ranks))
	for i, r := range ranks {
		homes[i] = r % t.ranks
	}
	return homes
}

// seen returns the number by which the stand-in of peer knows a rank of the first part.
func (t symmetry) seen(rank, peer int32) int32 {
	if t.parts == 0 {
		return rank
	}
	part := peer / t.ranks
	if !t.isXor {
		part = (t.parts - part) % t.parts
	}
	return part*t.ranks + rank
}

// movePeer returns part b's peer in the place of a peer of the first part.
func (t symmetry) movePeer(peer, b int32) int32 {
	part := peer / t.ranks
	if t.isXor {
		part ^= b
	} else {
		part = (part + b) % t.parts
	}
	return part*t.ranks + peer%t.ranks
}

// check complains if a machine or starts treat equal parts differently.
func (t symmetry) check(m *machine.Machine, seed uint64, starts []Time) error {
	switch {
	case t.parts == 0:
		return nil
	case starts != nil:
		return fmt.Errorf("simulate: ranks begin at given times: %w", ErrAsymmetric)
	}
	return CheckAlike(m, seed)
}

// CheckAlike complains if a machine treats equal nodes differently. The error wraps
// [ErrAsymmetric].
func CheckAlike(m *machine.Machine, seed uint64) error {
	switch {
	case m.Cores.InAll > 0:
		return fmt.Errorf("simulate: all nodes share processors: %w", ErrAsymmetric)
	case m.Noise > 0 && seed != 0:
		return fmt.Errorf("simulate: noise is another one on each node: %w", ErrAsymmetric)
	}
	return nil
}
