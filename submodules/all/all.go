// Package all lists tierflow's own submodules. A new one is added here; nothing registers
// itself.
package all

import (
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/internal/adapt"
	"github.com/tierflow/tierflow/submodules/internal/circulant"
	"github.com/tierflow/tierflow/submodules/internal/nbc"
	"github.com/tierflow/tierflow/submodules/internal/sm"
	"github.com/tierflow/tierflow/submodules/internal/solo"
)

// Submodules is the catalogue, in the order of printing.
func Submodules() submodules.Registry {
	return submodules.Registry{adapt.Adapt{}, nbc.NBC{}, circulant.Circulant{}, sm.SM{}, solo.Solo{}}
}
