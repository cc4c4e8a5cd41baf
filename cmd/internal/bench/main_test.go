package bench

import (
	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/submodules/all"
)

// tierflow is the command with what is in this package.
var tierflow kittest.Runner = func() *cobra.Command {
	return kit.NewRoot("tierflow", "", kit.Group("bench", "", Commands(all.Submodules())...))
}
