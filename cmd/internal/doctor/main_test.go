package doctor

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/levels/join"
)

// tierflow is the command with what is in this package.
var tierflow kittest.Runner = func() *cobra.Command { return kit.NewRoot("tierflow", "", Command()) }

// asRank lets the test's binary be the command, as a rank of a job; or, with the value
// dies, a rank that is lost once it has joined.
const asRank = "TIERFLOW_TEST_DOCTOR"

func TestMain(m *testing.M) {
	os.Setenv("TIERFLOW_MACHINE", "off") // the plans are those of every machine, and nothing is kept
	if os.Getenv(asRank) == "dies" {
		fmt.Fprintln(os.Stderr, die(context.Background()))
		os.Exit(1)
	}
	if os.Getenv(asRank) != "" {
		os.Exit(kit.Execute(context.Background(), tierflow(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// die enters the job as a rank of the command does, and returns when all others are in.
func die(ctx context.Context) error {
	cfg, err := join.FromEnv(os.Getenv)
	if err != nil {
		return err
	}
	job, err := join.Join(ctx, cfg)
	if err != nil {
		return err
	}
	_, err = job.Exchange(ctx, nil)
	return err
}
