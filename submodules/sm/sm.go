// Package sm lowers tasks to copies through slots in the node's shared memory:
// in by the one who has the data, out by those who need it. It is HAN's SM
// submodule (HAN, section III), best for small segments.
//
// A slot belongs to one rank, who alone writes it; the others read it between
// the owner's notify and their own.
package sm

import (
	"fmt"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/star"
	"github.com/tierflow/tierflow/tasks"
)

// SM is the submodule.
type SM struct{}

var _ submodules.Submodule = SM{}

// Name is the word in plans.
func (SM) Name() string { return "sm" }

// Doc says what it is.
func (SM) Doc() string { return "slots in the node's shared memory, copy in and copy out (HAN, III)" }

// Reach says that all ranks must share memory.
func (SM) Reach() submodules.Reach { return submodules.SharedNode }

// Algorithms lists the only one.
func (SM) Algorithms() []submodules.Algorithm {
	return []submodules.Algorithm{{
		Name: "slots", Inner: true,
		Doc:    "every rank speaks with the leader through slots; an inner segment overlaps in and out",
		Ops:    []tasks.Collective{tasks.Bcast, tasks.Reduce, tasks.Gather, tasks.Scatter, tasks.Allgather, tasks.ReduceScatter},
		Needs:  []submodules.Restriction{submodules.NeedsRootFirst},
		Source: "HAN, III",
	}}
}

// Lower emits one task over slots.
func (SM) Lower(e *submodules.Emitter, c *submodules.Call) error {
	switch c.Kind.Op {
	case tasks.Bcast:
		star.Bcast(e, c, star.InSlot)
	case tasks.Reduce:
		star.Reduce(e, c, star.InSlot)
	case tasks.Gather:
		star.Gather(e, c, star.InSlot)
	case tasks.Allgather:
		star.Allgather(e, c, star.InSlot)
	case tasks.Scatter:
		star.Scatter(e, c, star.InSlot)
	case tasks.ReduceScatter:
		star.ReduceScatter(e, c, star.InSlot)
	default:
		return fmt.Errorf("%v: %w", c.Kind.Op, submodules.ErrUnsupported)
	}
	return nil
}
