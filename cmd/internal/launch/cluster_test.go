//go:build linux

package launch

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// cluster is an emulated one, whose nodes are joined by links of 1 Gbit/s.
type cluster struct {
	name   string
	script string
	hosts  string // the nodes' addresses; empty: not asked yet
}

// newCluster brings up one of some nodes until the test ends, or skips where that can't be. Clusters of this process differ in their
// letter.
func newCluster(t testing.TB, nodes int, letter string) *cluster {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("network namespaces are made by root only")
	}
	script, err := filepath.Abs("../../../testdata/cluster/cluster")
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{name: fmt.Sprintf("l%x%s", os.Getpid(), letter), script: script}
	t.Cleanup(func() {
		if out, err := exec.Command(script, "down", "--name", c.name).CombinedOutput(); err != nil {
			t.Errorf("cluster down: %v\n%s", err, out)
		}
	})
	out, err := exec.CommandContext(t.Context(), script, "up", strconv.Itoa(nodes), "--rate", "1gbit", "--name", c.name).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 3 {
		t.Skip(strings.TrimSpace(string(out)))
	}
	if err != nil {
		t.Fatalf("cluster up: %v\n%s", err, out)
	}
	return c
}

// launch starts a job of two ranks on each node from node 0, as a user would.
func (c *cluster) launch(t *testing.T, program ...string) (*exec.Cmd, *buffer) {
	t.Helper()
	return c.start(t, Options{
		Hosts:   "node0:2,node1:2,node2:2,node3:2",
		Program: rankLine(t, program[0], program[1:]...),
		Timeout: forever,
	})
}

// start starts any job from node 0.
func (c *cluster) start(t testing.TB, o Options) (*exec.Cmd, *buffer) {
	t.Helper()
	o.Launcher, o.Dir = c.script+" rsh --name "+c.name, "/"
	out := &buffer{}
	cmd := launcherCommand(t.Context(), t, o, out, c.script, "exec", "--name", c.name, "0")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

func TestCluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 4, "c")
	t.Run("conform", func(t *testing.T) {
		most := "4" // each shape with some algorithms: TestCollectivesConform has the others, and here the network is new
		if os.Getenv("TIERFLOW_TEST_LONG") != "" {
			most = "12"
		}
		cmd, out := c.launch(t, "conform", most, "30000")
		if err := cmd.Wait(); err != nil || count(out.String(), "conforms to true") != 8 {
			t.Errorf("%v\n%s", err, out.String())
		}
	})
	t.Run("large", func(t *testing.T) {
		cmd, out := c.launch(t, "large")
		if err := cmd.Wait(); err != nil || count(out.String(), "on 4 nodes is content") != 8 {
			t.Errorf("%v\n%s", err, out.String())
		}
		t.Log(strings.TrimSpace(string(regexp.MustCompile(`(?m)^.*rank 0 .*$`).Find(bytes.TrimSpace([]byte(out.String()))))))
	})
	t.Run("link down", func(t *testing.T) {
		cmd, out := c.launch(t, "victim", "none")
		out.awaitLong(t, 8, "has begun")
		if text, err := exec.Command("ip", "-n", c.name+"3", "link", "set", "eth0", "down").CombinedOutput(); err != nil {
			t.Fatalf("link down: %v\n%s", err, text)
		}
		_ = cmd.Wait() // ranks that are cut off can't say goodbye
		if got := count(out.String(), `rank [0-5] blames [67] `); got != 6 {
			t.Errorf("%d of the other nodes' 6 ranks name one of the lost node:\n%s", got, out.String())
		}
	})
}
