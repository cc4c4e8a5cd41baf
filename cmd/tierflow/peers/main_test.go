package peers

import (
	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/tierflow/bench"
	"github.com/tierflow/tierflow/cmd/tierflow/kit"
	"github.com/tierflow/tierflow/cmd/tierflow/kit/kittest"
	"github.com/tierflow/tierflow/cmd/tierflow/tune"
	"github.com/tierflow/tierflow/submodules/all"
)

// tierflow is the command with what is in this package, and what it calls.
var tierflow kittest.Runner = func() *cobra.Command {
	return kit.NewRoot("", tune.Command(all.Submodules()), kit.Group("bench", "", append(bench.Commands(all.Submodules()), Command())...))
}
