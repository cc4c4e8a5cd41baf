package sim

import (
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// CheckEqual complains if a machine's nodes can't stand for each other in any request: they are
// unequal, or ranks are not numbered one node after the other. The error wraps [ErrAsymmetric].
func CheckEqual(t *levels.Topology) error {
	_, err := symmetriesOf(t)
	return err
}

// symmetriesOf returns how the outermost parts of a machine may stand for each other: parts with
// equally many ranks, numbered part by part and arranged alike.
func symmetriesOf(t *levels.Topology) ([]symmetry, error) {
	k := t.Depth() - 2 // the parts are domains of this level
	if k < 0 || t.Domains(k) < 2 || t.Domains(k+1) != 1 {
		return nil, fmt.Errorf("%v has one node: %w", t, ErrAsymmetric)
	}
	one := symmetry{parts: int32(t.Domains(k)), ranks: int32(t.Size() / t.Domains(k))}
	for rank := range levels.Rank(t.Size()) {
		part, home := int32(rank)/one.ranks, rank%levels.Rank(one.ranks)
		for level := range k + 1 {
			each := int32(t.Domains(level)) / one.parts
			if t.Domain(rank, level) != part*each+t.Domain(home, level) {
				return nil, fmt.Errorf("%v: rank %d is not to its node what rank %d is to the first: %w", t, rank, home, ErrAsymmetric)
			}
		}
		if t.Node(rank) != part*int32(t.Nodes())/one.parts+t.Node(home) {
			return nil, fmt.Errorf("%v: nodes in unequal parts: %w", t, ErrAsymmetric)
		}
	}
	all := []symmetry{one}
	if one.parts&(one.parts-1) == 0 {
		one.isXor = true
		all = append(all, one)
	}
	return all, nil
}

// SymmetricJob is [Compilation.Job] of the ranks of the first node alone. It stands for all. It
// holds as much less, and is simulated in as much less time. Nodes must be equal, numbered one
// after the other, and do the same: each rank must run the program of the first node's rank at its
// place, with peers as many nodes further. All ranks are compiled to check this, of large machines
// those of some nodes. If it isn't so, the error wraps [ErrAsymmetric].
//
// Results are of the whole machine, but links and the critical path are of the first node, and
// nothing watches other ranks. Times differ from those of a whole simulation in this: of several
// events at the same time, the same one comes first on each node.
func (c *Compilation) SymmetricJob() (*Job, error) {
	ways, err := symmetriesOf(c.Topology)
	switch {
	case err != nil:
		return nil, err
	case c.Idle != nil:
		return nil, fmt.Errorf("some ranks are idle: %w", ErrAsymmetric)
	case c.Request.Rooted():
		return nil, fmt.Errorf("%v has a root: %w", c.Request, ErrAsymmetric)
	case c.Request.Differ():
		return nil, fmt.Errorf("%v has blocks that differ: %w", c.Request, ErrAsymmetric)
	}
	cut, err := tasks.CutRequest(c.Request, c.Topology, c.Plan)
	if err != nil {
		return nil, err
	}
	j := &Job{topology: c.Topology, passes: cut.Passes}
	size, store, steps := ways[0].ranks, newStore(), int64(0) // of the first part
	isLeft := func(rank levels.Rank) bool { return !ways[0].isCompared(int32(rank) / size) }
	if c.Trusting {
		isLeft = func(rank levels.Rank) bool { return int32(rank) > size && int(rank) < c.Topology.Size()-1 }
	}
	for _, p := range partsOf(cut) {
		err := c.eachSeat(p.request, cut.On, store, isLeft, func(rank levels.Rank, s seat, _ int) error {
			b, at := int32(rank)/size, int32(rank)%size
			if b == 0 {
				steps += p.times * int64(s.form.len())
				j.seats[p.index] = append(j.seats[p.index], s)
			}
			if err := c.checkWork(steps); err != nil || b == 0 {
				return err
			}
			first := &j.seats[p.index][at]
			ways = slices.DeleteFunc(ways, func(t symmetry) bool { return !t.isLike(&s, first, b) })
			if len(ways) == 0 {
				return fmt.Errorf("rank %d does not do what rank %d does on the first node: %w", rank, at, ErrAsymmetric)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	j.forms, j.symmetry = store.count, ways[0]
	return j, j.connect(c.Check)
}

// allCompared is up to how many ranks of a machine all are compared.
const allCompared = 512

// isCompared reports whether part b is compared with the first. On a large machine few parts are
// enough: one part further gives every distance, powers of two every xor. The last part shows the
// end.
func (t symmetry) isCompared(b int32) bool {
	return t.parts*t.ranks <= allCompared || b&(b-1) == 0 || b == t.parts-1
}

// isLike reports whether a seat of part b does the same as first in the first part.
func (t symmetry) isLike(s, first *seat, b int32) bool {
	if s.form != first.form || len(s.ranks) != len(first.ranks) {
		return false
	}
	for i, peer := range first.ranks {
		if s.ranks[i] != t.movePeer(peer, b) {
			return false
		}
	}
	return true
}
