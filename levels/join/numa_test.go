package join

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tierflow/tierflow/levels"
)

// sysfs is a system with these lists of CPUs, by NUMA domain.
func sysfs(lists ...string) fstest.MapFS {
	sys := fstest.MapFS{"devices/system/node/possible": {Data: []byte("0-7\n")}}
	for i, list := range lists {
		sys[fmt.Sprintf("devices/system/node/node%d/cpulist", i)] = &fstest.MapFile{Data: []byte(list + "\n")}
	}
	return sys
}

func onCPUs(cpus ...int) affinity {
	return affinity{len(cpus), func(cpu int) bool { return slices.Contains(cpus, cpu) }}
}

func TestNUMADomain(t *testing.T) {
	for _, c := range []struct {
		name string
		sys  fstest.MapFS
		on   affinity
		want string
	}{
		{"no NUMA", fstest.MapFS{}, onCPUs(0, 1), ""},
		{"one domain", sysfs("0-3"), onCPUs(0, 1), "numa0"},
		{"inside the second", sysfs("0-3", "4-7"), onCPUs(4, 7), "numa1"},
		{"interleaved", sysfs("0,2,4", "1,3,5"), onCPUs(3), "numa1"},
		{"across both", sysfs("0-3", "4-7"), onCPUs(3, 4), ""},
		{"beyond what is listed", sysfs("0-3", "4-7"), onCPUs(3, 9), ""},
		{"memory only first", sysfs("", "0-3"), onCPUs(0), "numa1"},
		{"bound to nothing", sysfs("0-3"), onCPUs(), ""},
	} {
		if got, err := numaDomain(c.sys, c.on); got != c.want || err != nil {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
	got, err := numaDomain(sysfs("0-3", "4-x"), onCPUs(5))
	if got != "" || err == nil || !strings.Contains(err.Error(), `node1/cpulist: "4-x" is no list of numbers`) {
		t.Errorf("malformed: %q, %v", got, err)
	}
}

func TestUnknownDomainIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	cfg := &Config{Rank: 3, Log: slog.New(slog.NewTextHandler(&log, nil))}
	got := cfg.domain(func() (string, error) { return numaDomain(sysfs("!"), onCPUs(0)) })
	if got != "" || strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "NUMA domain unknown") {
		t.Errorf("%q, log %q", got, &log)
	}
	cfg.NUMA = "left"
	if got := cfg.domain(func() (string, error) { return "right", nil }); got != "left" {
		t.Errorf("overridden: %q", got)
	}
}

// TestNUMATopology: three levels only where that says something and all know.
func TestNUMATopology(t *testing.T) {
	for _, c := range []struct {
		name    string
		domains []string // of ranks two to a node
		depth   int
		inner   []int32 // level-0 domain of each rank
	}{
		{"two domains on each node", []string{"a", "b", "a", "b"}, 3, []int32{0, 1, 2, 3}},
		{"two domains on one node", []string{"a", "a", "a", "b"}, 3, []int32{0, 0, 1, 2}},
		{"one domain a node", []string{"a", "a", "b", "b"}, 2, []int32{0, 0, 1, 1}},
		{"one doesn't know", []string{"a", "b", "a", ""}, 2, []int32{0, 0, 1, 1}},
		{"none knows", []string{"", "", "", ""}, 2, []int32{0, 0, 1, 1}},
	} {
		peers := make([]*Peer, len(c.domains))
		for r, d := range c.domains {
			peers[r] = &Peer{Node: fmt.Sprintf("n%d", r/2), NUMA: d}
		}
		top, err := topologyOf(peers)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var inner []int32
		for r := range c.inner {
			inner = append(inner, top.Domain(levels.Rank(r), 0))
		}
		if top.Depth() != c.depth || top.Nodes() != 2 || !slices.Equal(inner, c.inner) {
			t.Errorf("%s: %v with domains %v, want %d levels and %v", c.name, top, inner, c.depth, c.inner)
		}
	}
}

// TestSiteTopology: a level of sites only where that says something and all know.
func TestSiteTopology(t *testing.T) {
	for _, c := range []struct {
		name  string
		sites []string // of ranks two to a node
		numa  []string
		want  string // symbols of levels
	}{
		{"two sites", []string{"a", "a", "b", "b"}, make([]string, 4), "siw"},
		{"two sites and domains", []string{"a", "a", "b", "b"}, []string{"0", "1", "0", "1"}, "msiw"},
		{"one site", []string{"a", "a", "a", "a"}, make([]string, 4), "si"},
		{"a node doesn't know", []string{"a", "a", "", ""}, make([]string, 4), "si"},
		{"none knows", make([]string, 4), make([]string, 4), "si"},
		{"a node at two sites", []string{"a", "a", "a", "b"}, make([]string, 4), `ranks 2 and 3 are on one node, but name the sites "a" and "b"; allowed is one site for a node`},
	} {
		peers := make([]*Peer, len(c.sites))
		for r := range peers {
			peers[r] = &Peer{Rank: levels.Rank(r), Node: fmt.Sprintf("n%d", r/2), Site: c.sites[r], NUMA: c.numa[r]}
		}
		got := ""
		if top, err := topologyOf(peers); err != nil {
			got = err.Error()
		} else {
			for k := range top.Depth() {
				got += string(top.Level(k).Symbol)
			}
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestRecordOfALongDomain(t *testing.T) {
	for _, bad := range []string{strings.Repeat("x", maxDomain+1), "a/b", "a:1", "ü"} {
		for what, p := range map[string]*Peer{"NUMA domain": {Size: 1, NUMA: bad}, "site": {Size: 1, Site: bad}} {
			if err := p.check(); err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("%s %.20q: %v", what, bad, err)
			}
		}
	}
}

func TestJoinThreeLevels(t *testing.T) {
	cs := configs(t, 8)
	for r := range cs {
		cs[r].Node, cs[r].NUMA = fmt.Sprint("n", r/4), fmt.Sprint("numa", r/2%2)
	}
	for _, j := range mustJoin(t, cs) {
		if j.Topology.Depth() != 3 || j.Topology.Nodes() != 2 || j.Topology.Domains(0) != 4 {
			t.Errorf("rank %d: %v", j.Rank, j.Topology)
		}
		if got := j.Topology.DomainName(7, 0); got != "numa1" {
			t.Errorf("rank 7 lives in %q", got)
		}
	}
}
