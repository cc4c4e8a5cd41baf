// Package trials is the commands of the laboratory that try tierflow itself: the time
// of collectives inside nodes, overlap of tasks, how well a simulation predicts,
// and how algorithms compare. They stand on the flags and meters of tierflow bench. Other libraries are measured by package peers.
package trials

import (
	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/submodules"
)

// Commands returns the commands of this package.
func Commands(reg submodules.Registry) []*cobra.Command {
	return []*cobra.Command{accuracyCommand(reg), overlapCommand(reg), shareCommand(reg), algorithmsCommand(reg), decisionsCommand(reg), figureCommand(), goalCommand(reg)}
}
