package sim

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// casting finds the ranks of a request with equal roles. A rank's role is its place in its group of
// each phase, the size and the leader of that group, and its buffers of the caller's. Without
// blocks and prefixes lowering asks nothing else of a rank. So equal roles give equal programs,
// with the peers at the same places of the groups. (A lane's shard is its place inside the node.)
type casting struct {
	request tasks.Request
	phases  []phase
	roles   []int32 // by rank; nil: ranks are not folded
	known   []actor // by role
	unknown int     // roles without an actor
	key     []byte  // memory for the text of a role
}

// phase is the groups of a phase.
type phase struct {
	groups []*levels.Group
	of     []int32 // by rank: its group; -1: it has none
}

// actor is the compiled rank of a role.
type actor struct {
	rank levels.Rank
	seat seat // without a form: nobody was compiled yet
}

func newCasting(r tasks.Request, h *levels.Hierarchy, p tasks.Plan, fold bool) *casting {
	c := &casting{request: r, unknown: h.Topology().Size()}
	from := r.Coll.Row().From
	isPrefix := from == tasks.PrefixThrough || from == tasks.PrefixBelow // a prefix depends on all ranks below
	if !fold || r.Blocks() || isPrefix || p.Order == tasks.TreeOrder || r.Reduces() && !r.Op.Commutative() {
		return c
	}
	g, err := tasks.ExpandOn(r, h, p, 0)
	if err != nil {
		return c // as compiling any rank will say
	}
	for _, ph := range g.Phases {
		groups := g.Groups(ph)
		of := make([]int32, h.Topology().Size())
		for i := range of {
			of[i] = -1
		}
		for i, g := range groups {
			for _, rank := range g.Ranks {
				of[rank] = int32(i)
			}
		}
		c.phases = append(c.phases, phase{groups, of})
	}
	c.number(h.Topology().Size())
	return c
}

// number numbers the roles of so many ranks.
func (c *casting) number(ranks int) {
	c.roles = make([]int32, ranks)
	ids := map[string]int32{}
	for rank := range c.roles {
		key := c.role(levels.Rank(rank))
		id, known := ids[string(key)]
		if !known {
			id = int32(len(ids))
			ids[string(key)] = id
		}
		c.roles[rank] = id
	}
	c.known, c.unknown = make([]actor, len(ids)), len(ids)
}

// role returns bytes, equal for ranks of equal role.
func (c *casting) role(rank levels.Rank) []byte {
	has := 0
	for i, is := range []bool{c.request.Gives(rank), c.request.Receives(rank), c.request.Rooted() && rank == c.request.Root} {
		if is {
			has |= 1 << i
		}
	}
	key := append(c.key[:0], byte(has))
	for i := range c.phases {
		ph := &c.phases[i]
		if ph.of[rank] < 0 {
			key = append(key, 0)
			continue
		}
		g := ph.groups[ph.of[rank]]
		for _, n := range []int{len(g.Ranks), g.Pos(rank), g.Leader} {
			key = binary.AppendUvarint(key, uint64(n))
		}
	}
	c.key = key
	return key
}

// fold returns the seat of a rank from the actor of its role, if there is one.
func (c *casting) fold(rank levels.Rank) (seat, bool) {
	if c.roles == nil {
		return seat{}, false
	}
	a := &c.known[c.roles[rank]]
	if a.seat.form == nil {
		return seat{}, false
	}
	s := seat{form: a.seat.form, ranks: slices.Clone(a.seat.ranks)}
	for i, peer := range s.ranks {
		s.ranks[i] = int32(c.counterpart(a.rank, levels.Rank(peer), rank))
	}
	return s, true
}

// counterpart returns rank's peer at the place of the actor's peer: the same place in the same
// group.
func (c *casting) counterpart(actor, peer, rank levels.Rank) levels.Rank {
	for i := range c.phases {
		ph := &c.phases[i]
		if group := ph.of[actor]; group >= 0 {
			if at := ph.groups[group].Pos(peer); at >= 0 {
				return ph.groups[ph.of[rank]].Ranks[at]
			}
		}
	}
	panic(fmt.Sprintf("sim: rank %d speaks with rank %d, which is in none of its groups", actor, peer))
}

// add keeps the seat of a rank for the others of its role.
func (c *casting) add(rank levels.Rank, s seat) {
	if c.unknown--; c.roles != nil {
		c.known[c.roles[rank]] = actor{rank, s}
	}
}
