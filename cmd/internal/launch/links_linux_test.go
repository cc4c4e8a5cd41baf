package launch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// reset resets all TCP connections of a node, as a firewall does that forgets them.
func (c *cluster) reset(t *testing.T, node int) {
	t.Helper()
	if out, err := exec.Command("ip", "netns", "exec", c.name+strconv.Itoa(node), "ss", "-K", "-t", "-n").CombinedOutput(); err != nil {
		t.Fatalf("reset connections: %v\n%s", err, out)
	}
}

// Connections that are reset, and cables that are out for two seconds, cost no rank: all go on, with each other.
func TestBrokenLinks(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ss"); err != nil {
		t.Skip("connections are reset by ss of iproute2")
	}
	const nodes, rounds = 3, 4
	c := newCluster(t, nodes, "k")
	end := filepath.Join(t.TempDir(), "end")
	cmd, out := c.start(t, Options{Hosts: "node0:2,node1:1,node2:2", Min: 1, Program: rankLine(t, "islander", end), Timeout: forever})
	said := func(what string, n int) {
		t.Helper()
		eventually(t, func() error {
			if strings.Contains(out.String(), "stands still") || count(out.String(), what) < n {
				return fmt.Errorf("%d times of %d was said %q:\n%s", count(out.String(), what), n, what, out.String())
			}
			return nil
		})
	}
	said("has begun", 5)
	for round := range rounds {
		switch node := round % nodes; round % 4 {
		case 1: // the cable is out
			c.cut(t, way{node, 0}, way{0, node})
			pause(2 * time.Second)
			c.heal(t, way{node, 0}, way{0, node})
			continue // nothing breaks
		case 3: // and connections are reset meanwhile
			c.cut(t, way{1, 2}, way{2, 1})
			c.reset(t, 1)
			pause(2 * time.Second)
			c.heal(t, way{1, 2}, way{2, 1})
		default:
			c.reset(t, node)
		}
		said("another 50 sums", count(out.String(), "another 50 sums")+5)
	}
	said("goes on with 11111", 5)
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(errors.Join(err, errors.New(out.String())))
	}
	if less := regexp.MustCompile(`goes on with 1*0.*`).FindString(out.String()); less != "" {
		t.Errorf("%s:\n%s", less, out.String())
	}
}
