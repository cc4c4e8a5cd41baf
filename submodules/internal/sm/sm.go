// Package sm lowers tasks to copies through slots in the node's shared memory: in by
// the rank that has the data, out by the others. It is HAN's SM submodule (HAN,
// section III), best for small segments.
//
// A slot belongs to one rank. It alone writes the slot; the others read it between
// the owner's notify and their own. Data that fits in the line of a message is sent
// in it instead, with neither slot nor word back. The algorithm rings sends
// everything in messages, like the fragments of Open MPI's former coll/sm. These copy
// in and out as slots do, once for each receiver, and the link paces them.
package sm

import (
	"math"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/internal/star"
)

// SM is the submodule.
type SM struct{}

var _ submodules.Submodule = SM{}

// Name is the word in plans.
func (SM) Name() string { return submodules.SM }

// Doc describes it.
func (SM) Doc() string {
	return "slots and rings in the node's shared memory, copy in and copy out (HAN, III)"
}

// Reach is ranks with shared memory.
func (SM) Reach() submodules.Reach { return submodules.SharedNode }

// algorithms are the catalogue.
var algorithms = []submodules.Algorithm{
	{
		Name: submodules.Slots, Inner: true, InTurn: true, Ops: star.Operations(), Source: "HAN, III",
		Doc:    "every rank speaks with the leader through slots; an inner segment overlaps in and out",
		Needs:  []submodules.Restriction{submodules.NeedsRootFirst},
		Traits: submodules.Traits{Traffic: star.Traffic(), Handed: submodules.Slotted},
	},
	{
		Name: submodules.Rings, Inner: true, InTurn: true, Ops: star.Operations(), Source: "coll/sm's fragments; HAN, III",
		Doc:    "inner segments stream between the leader and every rank through a ring of each pair; keeps the order of ranks under any leader",
		Traits: submodules.Traits{Traffic: star.Traffic(), Handed: submodules.Posted},
	},
}

// Algorithms lists them.
func (SM) Algorithms() []submodules.Algorithm { return algorithms }

// media are the ways of the algorithms.
var media = map[string]star.Medium{
	submodules.Slots: {Offer: star.InSlot, Inline: submodules.InlineMax},
	submodules.Rings: {Inline: math.MaxInt64},
}

// Lower emits one task.
func (SM) Lower(e *submodules.Emitter, c *submodules.Call) error {
	return star.Lower(e, c, media[c.Algorithm])
}
