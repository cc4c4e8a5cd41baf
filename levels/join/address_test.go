package join

import (
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels/join/launcher"
	"github.com/tierflow/tierflow/levels/join/ports"

	"pgregory.net/rapid"

	"github.com/tierflow/tierflow/levels"
)

func TestFilters(t *testing.T) {
	for _, c := range []struct {
		list, name, addr string
		want             bool
	}{
		{"", "eth0", "10.0.0.1", true},
		{"eth0", "eth0", "10.0.0.1", true},
		{"eth0", "eth01", "10.0.0.1", false},
		{"eth*", "eth01", "10.0.0.1", true},
		{"!docker0", "eth0", "10.0.0.1", true},
		{"!docker0", "docker0", "172.17.0.1", false},
		{"eth*,!eth1", "eth1", "10.0.0.1", false},
		{"!eth1,eth*", "eth2", "10.0.0.1", true},
		{"10.0.0.0/8", "ib0", "10.1.0.1", true},
		{"10.0.0.0/8", "ib0", "11.1.0.1", false},
		{"*,!10.0.0.0/8", "ib0", "10.1.0.1", false},
		{"fd00::/8", "ib0", "fd00::1", true},
	} {
		filters, err := parseFilters(launcher.NewVars(func(string) string { return c.list }).List("LIST"))
		if err != nil {
			t.Fatal(err)
		}
		if got := admits(filters, c.name, netip.MustParseAddr(c.addr)); got != c.want {
			t.Errorf("%q, %s %s: %v, want %v", c.list, c.name, c.addr, got, c.want)
		}
	}
	_, err := parseFilters([]string{"eth0", "10.0.0.0/99", "!", "a*b"})
	for _, bad := range []string{`"10.0.0.0/99"`, `"!"`, `"a*b"`} {
		if err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s was let through: %v", bad, err)
		}
	}
}

func FuzzParseFilter(f *testing.F) {
	for _, s := range []string{"eth0", "!docker*", "10.0.0.0/8", "!fd00::/8", "*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if fl, err := parseFilter(s); err == nil && fl.name == "" && !fl.prefix {
			t.Errorf("%q became %+v", s, fl)
		}
	})
}

func TestNoAddressLeft(t *testing.T) {
	filters, _ := parseFilters([]string{"nosuch0"})
	if _, _, err := ownAddresses(filters); err == nil || !strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("%v, want the addresses there are", err)
	}
}

func prefixes(list ...string) (ps []netip.Prefix) {
	for _, s := range list {
		ps = append(ps, netip.MustParsePrefix(s))
	}
	return ps
}

func TestCandidates(t *testing.T) {
	own := prefixes("192.168.1.5/24", "172.17.0.1/16", "127.0.0.1/8")
	var offered []netip.AddrPort
	for _, s := range []string{"10.9.9.9:1", "192.168.1.6:1", "172.17.0.1:1", "[fd00::6]:1", "127.0.0.1:1"} {
		offered = append(offered, netip.MustParseAddrPort(s))
	}
	// The system dials what no interface is near to from its second address, which a filter may not admit.
	route := func(a netip.Addr) netip.Addr { return netip.MustParseAddr("172.17.0.1") }
	print := func(own []netip.Prefix, filtered, sameHost bool, how Offer) string {
		targets, skipped := candidates(own, filtered, sameHost, how, offered, route)
		var b strings.Builder
		for _, t := range targets {
			fmt.Fprintf(&b, "%s", t.address)
			if t.source.IsValid() {
				fmt.Fprintf(&b, " from %s", t.source)
			}
			b.WriteString(", ")
		}
		return fmt.Sprintf("%s%v", &b, skipped)
	}
	const noV6 = "[fd00::6]:1: this rank has no IPv6 address"
	const ours = "172.17.0.1:1: is an address of this rank's own host too"
	for _, c := range []struct{ got, want string }{
		{print(own, false, false, Found), "192.168.1.6:1 from 192.168.1.5, 10.9.9.9:1, [" + ours + " " + noV6 + "]"},
		{print(own[:1], true, false, Found), "192.168.1.6:1 from 192.168.1.5, 10.9.9.9:1 from 192.168.1.5, 172.17.0.1:1 from 192.168.1.5, [" + noV6 + "]"},
		{print(own[:2], true, false, Listed), "10.9.9.9:1 from 172.17.0.1, 192.168.1.6:1 from 192.168.1.5, [" + ours + " " + noV6 + "]"},
		{print(own, false, true, Found), "127.0.0.1:1 from 127.0.0.1, 192.168.1.6:1 from 192.168.1.5, 172.17.0.1:1 from 172.17.0.1, 10.9.9.9:1, [" + noV6 + "]"},
		// In the order of the peer's user, even if the way is longer.
		{print(own, false, false, Listed), "10.9.9.9:1, 192.168.1.6:1 from 192.168.1.5, [" + ours + " " + noV6 + "]"},
		// An address that this host has, too, may lead into a container of it.
		{print(own, false, false, Advertised), "10.9.9.9:1, 192.168.1.6:1 from 192.168.1.5, 172.17.0.1:1 from 172.17.0.1, [" + noV6 + "]"},
		{print(own, false, true, Advertised), "127.0.0.1:1 from 127.0.0.1, 10.9.9.9:1, 192.168.1.6:1 from 192.168.1.5, 172.17.0.1:1 from 172.17.0.1, [" + noV6 + "]"},
	} {
		if c.got != c.want {
			t.Errorf("got  %s\nwant %s", c.got, c.want)
		}
	}
}

// Addresses come in the order of the list that admits them: the first item with them counts.
func TestPreference(t *testing.T) {
	for _, c := range []struct {
		list    string
		want    int // of eth1 with 10.1.2.3; -1: no order
		ordered bool
	}{
		{"", -1, false},
		{"!lo", -1, false},
		{"eth1", 0, false},
		{"!lo,eth1", 1, false},
		{"ib0,eth1", 1, true},
		{"ib0,eth*,eth1", 1, true},
		{"10.1.0.0/16,eth1,!lo", 0, true},
	} {
		filters, err := parseFilters(launcher.NewVars(func(string) string { return c.list }).List("LIST"))
		if err != nil {
			t.Fatal(err)
		}
		if got := preference(filters, "eth1", netip.MustParseAddr("10.1.2.3")); got != c.want || isOrdered(filters) != c.ordered {
			t.Errorf("%q: place %d, ordered %v", c.list, got, isOrdered(filters))
		}
	}
	all, _, err := ownAddresses(nil)
	if err != nil || len(all) < 2 {
		t.Skip("this host has too few addresses", err)
	}
	var list []string // each alone, the last one first
	for _, p := range slices.Backward(all) {
		list = append(list, netip.PrefixFrom(p.Addr(), p.Addr().BitLen()).String())
	}
	filters, _ := parseFilters(list)
	got, _, err := ownAddresses(filters)
	slices.Reverse(got)
	if err != nil || !slices.Equal(got, all) {
		t.Errorf("listed backwards, and turned round: %v, want %v, %v", got, all, err)
	}
}

// The system has an address to dial each of its own from.
func TestSystemSource(t *testing.T) {
	own, _, err := ownAddresses(nil)
	if err != nil {
		t.Skip(err)
	}
	for _, p := range own {
		if got := systemSource(p.Addr()); got.IsLoopback() != p.Addr().IsLoopback() || !slices.ContainsFunc(own, func(o netip.Prefix) bool { return o.Addr() == got }) {
			t.Errorf("dials %s from %s", p.Addr(), got)
		}
	}
	if got := systemSource(netip.MustParseAddr("ff05::9999")); got.IsValid() && !got.Is6() {
		t.Errorf("dials IPv6 from %s", got)
	}
}

// Peers dial a rank at the addresses that it is told to advertise, in their order, at the port of its listener.
func TestAdvertise(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has all of 127.0.0.0/8")
	}
	cs := configs(t, 3)
	for r := range cs {
		cs[r].Interfaces, cs[r].Node = nil, fmt.Sprint(r)
		cs[r].Rendezvous = append(cs[r].Rendezvous, "192.0.2.1:9") // ranks may be on other hosts, then
	}
	cs[1].Advertise = []netip.Addr{netip.MustParseAddr("127.0.0.3"), netip.MustParseAddr("127.0.0.2")}
	cs[2].Advertise = []netip.Addr{netip.MustParseAddr("203.0.113.7")}
	jobs := mustJoin(t, cs)
	for peer, want := range map[levels.Rank][]string{1: {"127.0.0.3", "127.0.0.2", "127.0.0.1"}, 2: {"127.0.0.1", "203.0.113.7"}} {
		var got []string
		routes, _ := jobs[0].Routes(peer)
		for _, way := range routes {
			host, port, _ := net.SplitHostPort(way.Address)
			if got = append(got, host); port != fmt.Sprint(jobs[0].Peers[peer].Addrs[0].Port()) {
				t.Errorf("rank %d is dialled at %s, and listens at %v", peer, way.Address, jobs[0].Peers[peer].Addrs)
			}
		}
		got = slices.DeleteFunc(got, func(a string) bool { return a == "::1" })
		if !slices.Equal(got, want) {
			t.Errorf("rank %d is dialled at %v, want %v", peer, got, want)
		}
	}
	first, _ := jobs[0].Routes(1)
	c, err := net.Dial("tcp", first[0].Address)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// Jobs of one host share a range of ports. Each rank has one port, at all its addresses.
func TestPorts(t *testing.T) {
	within := ports.Range{First: 20100, Last: 20163}
	taken := map[uint16]bool{}
	for range 2 {
		cs := configs(t, 4)
		for r := range cs {
			cs[r].Ports, cs[r].Node = within.String(), fmt.Sprint(r)
		}
		for _, p := range mustJoin(t, cs)[0].Peers {
			port := p.Addrs[0].Port()
			for _, a := range p.Addrs {
				if a.Port() != port || taken[port] || port < within.First || port > within.Last {
					t.Errorf("rank %d listens at %v, others at %v", p.Rank, p.Addrs, taken)
				}
			}
			taken[port] = true
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	full := configs(t, 2)[1:]
	full[0].Ports = fmt.Sprint(portOf(l))
	_, errs := joinAll(t, full, time.Minute)
	if err := errs[0]; err == nil || !strings.Contains(err.Error(), "TIERFLOW_PORTS="+full[0].Ports+": no port is free of 1: on each host every rank needs one") {
		t.Errorf("ports that are taken: %v", err)
	}
	// Rank 0 is going to listen there.
	meets := Config{Ports: "20200-20231", Rendezvous: []string{"h:20200"}}
	for range 100 {
		ls, offered, _, err := meets.openListeners(prefixes("127.0.0.1/8"), false)
		if err != nil || offered[0].Port() == 20200 {
			t.Errorf("offers %v, %v", offered, err)
		}
		closeListeners(ls)
	}
}

// The port of a dead rank may be another process's in no time: a rank of the same job, or one of another. A listener that says
// nothing may be a stopped process.
func TestKnockAtOthersPort(t *testing.T) {
	cs, others := configs(t, 3), configs(t, 2)
	for _, all := range [][]Config{cs, others} {
		for r := range all {
			all[r].Ports, all[r].Node = "20300-20363", fmt.Sprint(r)
		}
	}
	others[0].Secret, others[1].Secret = "of another job, long enough", "of another job, long enough"
	jobs, strangers := mustJoin(t, cs), mustJoin(t, others)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	own := jobs[0].Peers[1].Addrs
	for name, c := range map[string]struct {
		at   []netip.AddrPort
		gone bool
	}{
		"itself":        {own, false},
		"another rank":  {jobs[0].Peers[2].Addrs, true},
		"another job":   {strangers[0].Peers[1].Addrs, true},
		"says nothing":  {[]netip.AddrPort{netip.AddrPortFrom(own[0].Addr(), portOf(silent))}, false},
		"one of itself": {slices.Concat(jobs[0].Peers[2].Addrs, own), false},
	} {
		j, peer := &Job{Rank: 0, Size: 3, own: jobs[0].own, filtered: true, key: jobs[0].key, sharesPorts: true}, *jobs[0].Peers[1]
		peer.Addrs = c.at
		j.Peers = []*Peer{jobs[0].Peers[0], &peer, jobs[0].Peers[2]}
		if err := j.knock(t.Context(), 1); isRefused(err) != c.gone {
			t.Errorf("%s at the port: %v", name, err)
		}
	}
}

// TestTree: every rank reaches every other by next, leaders have at most 32 leaders
// below them, and only leaders talk between nodes.
func TestTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "ranks")
		paths := make([][]int32, n)
		for r := range paths {
			paths[r] = []int32{rapid.Int32Range(0, 80).Draw(t, "node")}
		}
		topo, err := levels.New(levels.Standard(2), paths)
		if err != nil {
			t.Fatal(err)
		}
		tr := newTree(topo)
		for r := range levels.Rank(n) {
			abroad := 0
			for _, c := range tr.children(r) {
				if topo.Node(c) != topo.Node(r) {
					abroad++
				}
			}
			if abroad > fanOut {
				t.Fatalf("rank %d has %d leaders below it", r, abroad)
			}
			at, hops := levels.Rank(0), 0
			for ; at != r && hops <= n; hops++ {
				at = tr.next(at, r)
			}
			for ; at != 0 && hops <= 2*n; hops++ {
				at = tr.next(at, 0)
			}
			if at != 0 || hops > 8 {
				t.Fatalf("rank %d: at %d after %d hops to it and back", r, at, hops)
			}
		}
	})
}

func TestNodeNames(t *testing.T) {
	var peers []*Peer
	for r, p := range []Peer{
		{Host: Host{"b1", "my host", "n1"}},
		{Host: Host{"b1", "my host", "n2"}},
		{Host: Host{"b2", "my host", "n1"}},
		{Host: Host{"b1", "my host", "n1"}},
		{Node: "my host"},
		{Node: "ü:"},
	} {
		p.Rank = levels.Rank(r)
		peers = append(peers, &p)
	}
	topo, err := topologyOf(peers)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := range peers {
		got = append(got, topo.DomainName(levels.Rank(r), 0))
	}
	if want := "my-host my-host:2 my-host:3 my-host my-host:4 --"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// children of r, ascending.
func (t *tree) children(r levels.Rank) []levels.Rank {
	var c []levels.Rank
	for child, parent := range t.parent {
		if parent == r {
			c = append(c, levels.Rank(child))
		}
	}
	return c
}
