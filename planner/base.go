package planner

import (
	"fmt"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
)

// base is what lies under a communicator. All its collectives are compiled for it. The calls that
// the ranks make for this package need no more.
type base struct {
	comm     *executor.Comm
	topology *levels.Topology
	registry submodules.Registry
}

// worldRank is this rank's number in the world.
func (b *base) worldRank() levels.Rank { return b.comm.Ranks()[b.comm.Rank()] }

// rank returns a caller's number as a rank, or an error if there is no such rank. It checks the
// number before cutting it to the bits of a [levels.Rank].
func (b *base) rank(what string, n int) (levels.Rank, error) {
	if ranks := b.topology.Size(); n < 0 || n >= ranks {
		return 0, fmt.Errorf("%s %d: ranks are 0 to %d", what, n, ranks-1)
	}
	return levels.Rank(n), nil
}

// subset returns the base of some of the ranks, without a communicator, and their ranks in the world.
func (b *base) subset(ranks []levels.Rank) (some base, world []levels.Rank, err error) {
	all := b.comm.Ranks()
	for _, r := range ranks {
		world = append(world, all[r])
	}
	some.registry = b.registry
	some.topology, err = b.topology.Sub(ranks)
	return some, world, err
}
