package join

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tierflow/tierflow/levels"
)

// manyPeers are those of some nodes of some ranks, as real ones tell them.
func manyPeers(nodes, each int) []*Peer {
	var all []*Peer
	for r := range nodes * each {
		node := r / each
		p := &Peer{
			Rank: levels.Rank(r), Size: nodes * each, Version: protocolVersion, UID: 1000, PID: 100000 + r, Born: uint64(5_000_000 + r), Space: "pid:[4026531836]",
			Host: Host{Boot: fmt.Sprintf("7f1c2a90-55b0-4f6e-9c7e-%012x", node), Name: fmt.Sprintf("node%04d.cluster.example", node), Net: "4026531840"},
			NUMA: fmt.Sprint("numa", r%2), Unix: fmt.Sprintf("@tierflow-%026d", r*7919),
		}
		for _, ip := range []string{fmt.Sprintf("10.1.%d.%d", node/250, node%250+1), fmt.Sprintf("fd00::%x", node+1), "127.0.0.1", "::1"} {
			p.Addrs = append(p.Addrs, netip.AddrPortFrom(netip.MustParseAddr(ip), uint16(32768+r%20000)))
		}
		all = append(all, p)
	}
	return all
}

// A table comes out as it went in.
func TestTableRoundTrip(t *testing.T) {
	peers := manyPeers(3, 2)
	peers[1].Hello = []byte("hi")
	peers[2].Addrs[1] = netip.MustParseAddrPort("[fd00::9]:99") // a port of its own
	peers[4].Offer = Advertised
	peers[3].Addrs, peers[3].Site, peers[3].Node, peers[3].UID = nil, "x", "elsewhere", 0
	table := table{Peers: peers}
	got, err := parseTable(table.encode(), len(peers))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(peers, got.Peers, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b }), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

// Each rank's neighbours are there once, and rank 0 tells nobody more than they need.
func TestPlaces(t *testing.T) {
	table := table{Job: make([]byte, jobIDLen), Peers: manyPeers(40, 8)}
	places, err := table.places()
	if err != nil {
		t.Fatal(err)
	}
	above := make([]int, len(places))
	for r, p := range places {
		if (p.Up == nil) != (r == 0) {
			t.Errorf("rank %d is below %v", r, p.Up)
		}
		for _, child := range p.Down {
			above[child]++
			if places[child].Up.Rank != levels.Rank(r) {
				t.Errorf("rank %d is below rank %d, and above it %d", child, r, places[child].Up.Rank)
			}
		}
	}
	for r, n := range above {
		if (n == 1) != (r > 0) {
			t.Errorf("rank %d has %d parents", r, n)
		}
	}
}

// The table of 4,096 ranks is some hundred kilobytes. Rank 0 sends it to its children only,
// fewer than a fan-out and a node.
func TestTableIsSmall(t *testing.T) {
	for _, n := range []int{256, 1024, 4096} {
		table := table{Peers: manyPeers(n/32, 32)}
		if size := len(table.encode()) / n; size > 110 {
			t.Errorf("%d ranks: %d bytes for each in the table; want at most 110", n, size)
		}
	}
}

func TestWrongTables(t *testing.T) {
	for text, want := range map[string]string{
		`{`:                           "unexpected end",
		`{"Ranks":[]}`:                "0 ranks; allowed are 2",
		`{"Ranks":[{"C":0},{"C":0}]}`: "rank 0: host 0 of 0",
		`{"Common":[{}],"Ranks":[{"C":-1},{"C":0}]}`:                                          "host -1 of 1",
		`{"Common":[{"IPs":["::1"]}],"Ranks":[{"C":0,"T":[7]},{"C":0}]}`:                      "rank 1: 0 ports for 1 addresses",
		`{"Common":[{"IPs":["::1"]}],"Ranks":[{"C":0,"T":[7]},{"C":0,"T":[7,8]}]}`:            "2 ports for 1 addresses",
		`{"Common":[{"IPs":["::1"]}],"Ranks":[{"C":0,"T":[7]},{"C":0,"T":[0]}]}`:              "an address without host or port",
		`{"Common":[{"IPs":["::1"],"Site":"a b"}],"Ranks":[{"C":0,"T":[7]},{"C":0,"T":[7]}]}`: "site",
	} {
		if _, err := parseTable([]byte(text), 2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
	job := `"Job":"AAAAAAAAAAAAAAAAAAAAAA=="`
	for text, want := range map[string]string{
		`[`:                                      "unexpected end",
		`{}`:                                     "job number of 0 bytes",
		`{` + job + `}`:                          "parent <nil>",
		`{` + job + `,"Up":{"Rank":3,"Size":9}}`: "rank 3 of 9 above rank 3 of 9",
		`{` + job + `,"Up":{"Rank":1,"Size":8}}`: "rank 1 of 8 above",
		`{` + job + `,"Up":{"Rank":1,"Size":9},"Down":[3]}`:   "rank 3 below rank 3",
		`{` + job + `,"Up":{"Rank":1,"Size":9},"Down":[5,5]}`: "rank 5 below",
		`{` + job + `,"Up":{"Rank":1,"Size":9},"Down":[9]}`:   "rank 9 below",
	} {
		if _, err := parsePlace([]byte(text), 3, 9); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
}

// The place of a rank above all others is within its bound, in jobs of all sizes.
func TestLargestPlaceFits(t *testing.T) {
	p := place{Job: make([]byte, jobIDLen), Up: &Peer{}}
	for size := levels.Rank(1); size <= levels.MaxRanks; size *= 2 {
		for r := levels.Rank(len(p.Down)); r < size; r++ {
			p.Down = append(p.Down, r)
		}
		if b, err := json.Marshal(&p); err != nil || len(b)+maxRecord > maxPlace(int(size)) {
			t.Errorf("%d ranks: %d bytes beside a record, %v; the bound is %d", size, len(b), err, maxPlace(int(size)))
		}
	}
}
