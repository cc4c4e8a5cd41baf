package doctor

import (
	"context"
	"os"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/tierflow/kit"
	"github.com/tierflow/tierflow/cmd/tierflow/kit/kittest"
)

// tierflow is the command with what is in this package.
var tierflow kittest.Runner = func() *cobra.Command { return kit.NewRoot("", Command()) }

// asRank lets the test's binary be the command, as a rank of a job.
const asRank = "TIERFLOW_TEST_DOCTOR"

func TestMain(m *testing.M) {
	if os.Getenv(asRank) != "" {
		os.Exit(kit.Execute(context.Background(), tierflow(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}
