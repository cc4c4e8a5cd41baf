// Package solo lowers tasks to one-sided single copies: a rank lets its data be read in place,
// and each rank in need of it reads it, once. It is HAN's SOLO submodule (HAN, section III),
// best for large segments.
//
// Shared memory is read in place. Other memory of another process is copied by the kernel; if
// that is forbidden, it passes through a slot. It emits steps only.
package solo

import (
	"fmt"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/internal/star"
	"github.com/tierflow/tierflow/tasks"
)

// Solo is the submodule.
type Solo struct{}

var _ submodules.Submodule = Solo{}

// Name is the word in plans.
func (Solo) Name() string { return submodules.Solo }

// Doc describes it.
func (Solo) Doc() string { return "one-sided single copy, reduce on read (HAN, III)" }

// Reach is ranks with shared memory.
func (Solo) Reach() submodules.Reach { return submodules.SharedNode }

// algorithms are the catalogue.
var algorithms = []submodules.Algorithm{
	{
		Name: submodules.Linear, Inner: true, InTurn: true, Source: "HAN, III",
		Doc:    "members read from the leader; the leader reduces or reads from the members",
		Ops:    star.Operations(),
		Needs:  []submodules.Restriction{submodules.NeedsRootFirst},
		Traits: submodules.Traits{Traffic: star.Traffic(), Handed: submodules.Read},
	},
	{
		Name: submodules.Slices, Source: "Rabenseifner's reduce-scatter and gather, on reads",
		Doc:    "every rank reduces its slice from all, the leader collects the slices",
		Ops:    []tasks.Collective{tasks.Reduce},
		Needs:  []submodules.Restriction{submodules.NeedsCommutative},
		Traits: submodules.Traits{Handed: submodules.Read},
	},
}

// Algorithms lists them.
func (Solo) Algorithms() []submodules.Algorithm { return algorithms }

// Lower emits one task by reads.
func (Solo) Lower(e *submodules.Emitter, c *submodules.Call) error {
	switch {
	case c.Algorithm != submodules.Slices:
		return star.Lower(e, c, star.Medium{Offer: star.InPlace, Reads: true})
	case c.Kind.Op != tasks.Reduce:
		return fmt.Errorf("%v by slices: %w", c.Kind.Op, submodules.ErrUnsupported)
	}
	star.Slices(e, c, star.InPlace)
	return nil
}
