package trials

import (
	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/submodules/all"
)

// lab is the command with what is in this package.
var lab kittest.Runner = func() *cobra.Command {
	return kit.NewRoot("tierflow-lab", "", Commands(all.Submodules())...)
}

// short measures little.
const short = " --bytes 4KiB --time 1ms --link i=10gbit,1us"
