package methods

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

// smallSpace is arguments that leave few configurations, all of them fast.
func smallSpace(args ...string) []string { return append(fewPlans(args...), "--max", "64KiB") }

// fewPlans is smallSpace of any sizes.
func fewPlans(args ...string) []string {
	return append(args, "--topo", "2x2", "--link", "none", "--submodules", "adapt,sm", "--segments", "16KiB,all",
		"--windows", "2", "--inner", "0", "--time", "1ms", "--plan", "i=adapt/binomial")
}
