// Package methods is the commands of the laboratory that compare ways to choose plans:
// the tuner's methods with each other, its predictions with measured times, and models
// of algorithms with what they choose. How a search goes on is the planner's; the flags
// of a search are those of tierflow tune.
package methods

import (
	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/submodules"
)

// Commands returns the commands of this package.
func Commands(reg submodules.Registry) []*cobra.Command {
	return []*cobra.Command{compareCommand(reg), validateCommand(reg), modelsCommand(reg)}
}
