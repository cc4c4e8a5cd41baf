package tune

import (
	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/tierflow/kit"
	"github.com/tierflow/tierflow/cmd/tierflow/kit/kittest"
	"github.com/tierflow/tierflow/submodules/all"
)

// tierflow is the command with what is in this package.
var tierflow kittest.Runner = func() *cobra.Command {
	return kit.NewRoot("tierflow", "", Command(all.Submodules()))
}
