package bench

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/cmd/tierflow/kit"
	"github.com/tierflow/tierflow/cmd/tierflow/kit/kittest"
	"github.com/tierflow/tierflow/costs/machine"
)

// asRank lets the test's binary be the command, as a rank of a job.
const asRank = "TIERFLOW_TEST_BENCH"

func TestMain(m *testing.M) {
	os.Setenv("TIERFLOW_MACHINE", "off") // the plans are those of every machine, and nothing is kept
	if os.Getenv(asRank) != "" {
		os.Exit(kit.Execute(context.Background(), tierflow(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// launch runs the command as two ranks on two nodes, and returns what rank 0 printed.
func launch(t *testing.T, args ...string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var all [2]*exec.Cmd
	var outs, errs [2]bytes.Buffer
	for r := range all {
		c := exec.CommandContext(ctx, os.Args[0], args...)
		c.Env = append(os.Environ(), asRank+"=1", fmt.Sprint("TIERFLOW_NODE=n", r), fmt.Sprint("TIERFLOW_RANK=", r), "TIERFLOW_SIZE=2",
			"TIERFLOW_RENDEZVOUS="+l.Addr().String(), "TIERFLOW_SECRET=the secret of a test, which is long enough", "TIERFLOW_TLS=job")
		c.Stdout, c.Stderr = &outs[r], &errs[r]
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		all[r] = c
	}
	for r, c := range all {
		if err := c.Wait(); err != nil {
			t.Fatalf("rank %d: %v\n%s", r, err, &errs[r])
		}
	}
	return outs[0].String()
}

// TestCollBesidePlain measures the same with TLS and without it.
func TestCollBesidePlain(t *testing.T) {
	args := []string{"bench", "coll", "allreduce", "--bytes", "8,64KiB", "--iters", "3", "--plan", "", "--tls", "--json"}
	rows := kittest.Decode[struct{ Results []Result }](t, launch(t, args...)).Results
	if len(rows) != 4 {
		t.Fatalf("%d rows: %+v", len(rows), rows)
	}
	for i, row := range rows {
		if sealed := i%2 == 1; sealed != (row.TLS == "job") || sealed != (row.ToPlain > 0) || row.Wrong > 0 || row.Iters != 3 {
			t.Errorf("row %d: %+v", i, row)
		}
	}
	s := tierflow.Run(t, "bench", "coll", "allreduce", "--tls")
	if s.Status != 2 || !strings.Contains(s.Errors, "goroutine ranks have no connections") {
		t.Errorf("without a launcher: %+v", s)
	}
}

// TestSealedMachine: the file says that there was TLS, and what it takes.
func TestSealedMachine(t *testing.T) {
	text := launch(t, "bench", "p2p", "--bytes", "64", "--time", "1ms", "--tls", "--machine", "-")
	m, err := machine.Parse("stdout", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if !m.TLS || m.SealByte <= 0 || m.OpenByte <= 0 {
		t.Errorf("%+v", m)
	}
}
