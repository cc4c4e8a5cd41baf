package doctor

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Between two hosts packets above some size get lost without a word, as on a way with a smaller MTU whose ICMP messages are
// filtered. The command says so, and not only that ranks are lost or slow; with TLS no rank can join, and it says why.
func TestLostPackets(t *testing.T) {
	t.Parallel() // it mostly waits
	script := cluster(t, 2)
	for _, port := range []string{"port0", "port1"} { // a bucket drops what it can't hold
		out, err := exec.Command("tc", "-n", script.name+"br", "qdisc", "change", "dev", port, "root",
			"handle", "1:", "tbf", "rate", "1gbit", "burst", "1400", "latency", "50ms").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for _, test := range []struct {
		tls  string
		want string // of rank 1, or of rank 0 about it
	}{
		{"off", "problem: small packets from node1 come to node0, those of 1500 bytes, such as r1>r0, don't (1 pair of ranks): a network on the way has a smaller MTU"},
		{"job", "packets of up to 1500 bytes were sent again and again: they get lost, or the MTU on the way is smaller"},
	} {
		var all [2]*exec.Cmd
		var outs [2]bytes.Buffer
		for r := range all {
			c := script.exec(t, r, append([]string{os.Args[0]}, lenient...)...)
			for name, value := range place(t, r, len(all)) {
				c.Env = append(c.Env, name+"="+value)
			}
			c.Env = append(c.Env, asRank+"=1", "TIERFLOW_RENDEZVOUS=node0:4000", "TIERFLOW_SECRET="+strings.Repeat("s", 32),
				"TIERFLOW_TLS="+test.tls, "TIERFLOW_JOIN_TIMEOUT=8s")
			c.Stdout, c.Stderr = &outs[r], &outs[r]
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			all[r] = c
		}
		said := ""
		for r, c := range all {
			_ = c.Wait() // rank 0's status is 1, and rank 1's if it hears no more of rank 0
			said += outs[r].String()
		}
		if !strings.Contains(said, test.want) {
			t.Errorf("TLS %s: the ranks say\n%s\nwant %q", test.tls, said, test.want)
		}
	}
}

// namespaces are an emulated cluster.
type namespaces struct{ script, name string }

// cluster brings one up until the test ends, or skips where that can't be.
func cluster(t *testing.T, nodes int) namespaces {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("network namespaces are made by root only")
	}
	script, err := filepath.Abs("../../../testdata/cluster/cluster")
	if err != nil {
		t.Fatal(err)
	}
	n := namespaces{script, fmt.Sprintf("d%xp", os.Getpid())}
	out, err := exec.CommandContext(t.Context(), script, "up", fmt.Sprint(nodes), "--name", n.name).CombinedOutput()
	if err != nil && strings.Contains(err.Error(), "exit status 3") {
		t.Skip(strings.TrimSpace(string(out)))
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command(script, "down", "--name", n.name).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	return n
}

// exec is a command on a node, not yet started.
func (n namespaces) exec(t *testing.T, node int, args ...string) *exec.Cmd {
	c := exec.CommandContext(t.Context(), n.script, append([]string{"exec", "--name", n.name, fmt.Sprint(node)}, args...)...)
	c.Env = os.Environ()
	return c
}
