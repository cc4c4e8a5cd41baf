package launch

import (
	"context"
	"fmt"
	"os/exec"
	"syscall"
	"testing"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

func init() { rankPrograms["longsum"] = longSum }

// longSum sums a long vector, and says so.
func longSum([]string) {
	comm, err := planner.Join(context.Background(), nil)
	check(err)
	v := make([]float32, 1<<18)
	fmt.Println("begins")
	check(planner.Allreduce(context.Background(), comm, v, v, tasks.Sum))
	fmt.Println("has its sum")
}

// Ranks that stand still because large packets get lost between their nodes say so.
func TestLargePacketsAreLost(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, "m")
	for _, port := range []string{"port0", "port1"} { // a bucket drops what it can't hold
		out, err := exec.CommandContext(t.Context(), "tc", "-n", c.name+"br", "qdisc", "change", "dev", port, "root",
			"handle", "1:", "tbf", "rate", "1gbit", "burst", "1400", "latency", "50ms").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	cmd, out := c.start(t, Options{
		Hosts: "node0:1,node1:1", Program: rankLine(t, "longsum"), Timeout: forever, Export: []string{"TIERFLOW_MACHINE=off", "TIERFLOW_TABLE=off"},
	})
	out.await(t, 1, `WARN stalled rank=0 peer=1 packets=1500 why="small packets from rank 0 come to rank 1, those of 1500 bytes don't: a network`)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil || count(out.String(), "begins") != 2 || count(out.String(), "has its sum") != 0 {
		t.Errorf("%v\n%s", err, out.String())
	}
}
