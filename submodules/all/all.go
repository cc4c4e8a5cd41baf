// Package all lists tierflow's own submodules. A new one is added here; nothing registers
// itself.
package all

import (
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/adapt"
	"github.com/tierflow/tierflow/submodules/circulant"
	"github.com/tierflow/tierflow/submodules/nbc"
	"github.com/tierflow/tierflow/submodules/sm"
	"github.com/tierflow/tierflow/submodules/solo"
)

// Submodules is the catalogue, in the order of printing.
func Submodules() submodules.Registry {
	return submodules.Registry{adapt.Adapt{}, nbc.NBC{}, circulant.Circulant{}, sm.SM{}, solo.Solo{}}
}
