package launch

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Ranks in a container, behind a host that translates addresses and lets a range of ports in, join a job with others outside,
// and so they do when rank 0 is in the container.
func TestNAT(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("translating addresses takes nftables:", err)
	}
	c := newCluster(t, 2, "n")
	inside, door := c.name+"-in", c.name+"1"
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", inside).Run() })
	for _, line := range []string{
		"ip netns add IN",
		"ip -n DOOR link add inside type veth peer name eth0 netns IN",
		"ip -n DOOR addr add 192.168.77.1/24 dev inside",
		"ip -n DOOR link set inside up",
		"ip -n IN addr add 192.168.77.2/24 dev eth0",
		"ip -n IN link set lo up",
		"ip -n IN link set eth0 up",
		"ip -n IN route add default via 192.168.77.1",
		"ip netns exec DOOR sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'",
		"ip netns exec DOOR nft add table ip t",
		"ip netns exec DOOR nft 'add chain ip t in { type nat hook prerouting priority dstnat; }'",
		"ip netns exec DOOR nft 'add chain ip t out { type nat hook postrouting priority srcnat; }'",
		"ip netns exec DOOR nft 'add rule ip t in iifname eth0 tcp dport 40000-40019 dnat to 192.168.77.2'",
		"ip netns exec DOOR nft 'add rule ip t out oifname eth0 masquerade'",
	} {
		line = strings.NewReplacer("IN", inside, "DOOR", door).Replace(line)
		out, err := exec.CommandContext(t.Context(), "sh", "-c", line).CombinedOutput()
		switch {
		case err != nil && strings.Contains(line, "nft"):
			t.Skipf("this kernel can't translate addresses: %s: %v\n%s", line, err, out)
		case err != nil:
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	address := addressOf(t, door)
	// The launcher's shell: into the container, which tells its ranks the address of its host, or to a node.
	rsh := filepath.Join(t.TempDir(), "rsh")
	script := fmt.Sprintf(`#!/bin/sh
host=$1; shift
[ "$host" != inside ] || exec ip netns exec %s unshare --uts sh -c "echo inside >/proc/sys/kernel/hostname; exec env TIERFLOW_ADVERTISE=%s TIERFLOW_BIND=none $*"
exec %s rsh --name %s "$host" "$@"
`, inside, address, c.script, c.name)
	if err := os.WriteFile(rsh, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, hosts := range []string{"node0:2,inside:2", "inside:2,node0:2"} {
		r := Options{
			Hosts: hosts, Launcher: rsh, Dir: "/", Timeout: forever,
			Export: []string{"TIERFLOW_PORTS=40000-40019"}, Program: rankLine(t, "conform", "2", "3000"),
		}
		out := &buffer{}
		cmd := launcherCommand(t.Context(), t, r, out, c.script, "exec", "--name", c.name, "0")
		if err := cmd.Run(); err != nil || count(out.String(), "conforms to true") != 4 {
			t.Errorf("%s: %v\n%s", hosts, err, out.String())
		}
	}
}

// addressOf returns the IPv4 address of a node.
func addressOf(t *testing.T, node string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ip", "-n", node, "-4", "-o", "addr", "show", "dev", "eth0").Output()
	fields := strings.Fields(string(out)) // 2: eth0 inet 10.1.2.3/24 …
	if err != nil || len(fields) < 4 {
		t.Fatalf("the address of %s: %q, %v", node, out, err)
	}
	address, _, _ := strings.Cut(fields[3], "/")
	return address
}
