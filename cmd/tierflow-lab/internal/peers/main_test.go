package peers

import (
	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/bench"
	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/cmd/internal/tune"
	"github.com/tierflow/tierflow/submodules/all"
)

// tierflow is what peers launches, in this process.
var tierflow kittest.Runner = func() *cobra.Command {
	return kit.NewRoot("tierflow", "", tune.Command(all.Submodules()), kit.Group("bench", "", bench.Commands(all.Submodules())...))
}
