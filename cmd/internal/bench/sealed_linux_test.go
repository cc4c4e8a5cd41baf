package bench

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/cmd/internal/launch"
	"github.com/tierflow/tierflow/costs/machine"
)

// asRank lets the test's binary be the command, as a rank of a job.
const asRank = "TIERFLOW_TEST_BENCH"

func TestMain(m *testing.M) {
	os.Setenv("TIERFLOW_MACHINE", "off") // the plans are those of every machine, and nothing is kept
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		if err := launch.Agent(context.Background(), os.Stdin, os.Stdout, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv(asRank) != "" {
		os.Exit(kit.Execute(context.Background(), tierflow(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// sealedJob is a job of two nodes with TLS between them.
var sealedJob = launch.Options{Hosts: "a:1,b:1", Launcher: "local", Export: []string{"TIERFLOW_TLS=job"}}

// TestCollBesidePlain measures the same with TLS and without it.
func TestCollBesidePlain(t *testing.T) {
	args := []string{"bench", "coll", "allreduce", "--bytes", "8,64KiB", "--iters", "3", "--plan", "", "--tls", "--json"}
	rows := kittest.Decode[printed[Result]](t, runJob(t, sealedJob, args...)).Results
	if len(rows) != 4 {
		t.Fatalf("%d rows: %+v", len(rows), rows)
	}
	for i, row := range rows {
		if sealed := i%2 == 1; sealed != (row.TLS == "job") || sealed != (row.ToPlain > 0) || row.Wrong > 0 || row.Iters != 3 {
			t.Errorf("row %d: %+v", i, row)
		}
	}
	tierflow.Refuses(t, "goroutine ranks have no connections", "bench", "coll", "allreduce", "--tls")
}

// TestSealedMachine: the file says that there was TLS, and what it takes.
func TestSealedMachine(t *testing.T) {
	text := runJob(t, sealedJob, "bench", "p2p", "--bytes", "64", "--time", "1ms", "--tls", "--machine", "-")
	m, err := machine.Parse("stdout", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if !m.TLS || m.SealByte <= 0 || m.OpenByte <= 0 {
		t.Errorf("%+v", m)
	}
}
