package join

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/tierflow/tierflow/levels"
)

// jobIDLen is the length of the random number of a job, in bytes.
const jobIDLen = 16

// place is rank 0's word to each rank when the job is complete: its neighbours in the
// control tree. The table of all ranks comes down the tree: from rank 0 alone it would be
// gigabytes for thousands of ranks.
type place struct {
	Job  []byte
	Up   *Peer         // the parent; nil on rank 0
	Down []levels.Rank // the children, ascending
}

// maxPlace bounds the encoded form of a place: a record, and a number for each rank of a
// node or a fan-out.
func maxPlace(size int) int { return maxRecord + 8*size + MaxPayload }

// parsePlace reads the place of a rank of a job of the given size.
func parsePlace(b []byte, self levels.Rank, size int) (*place, error) {
	var p place
	if err := json.Unmarshal(b, &p); err != nil {
		return nil, fmt.Errorf("place in the tree: %w", err)
	}
	if len(p.Job) != jobIDLen || p.Up == nil {
		return nil, fmt.Errorf("place in the tree: job number of %d bytes, parent %v; allowed are %d, and one", len(p.Job), p.Up, jobIDLen)
	}
	if err := p.Up.check(); err != nil {
		return nil, fmt.Errorf("place in the tree: rank %d: %w", p.Up.Rank, err)
	}
	if p.Up.Size != size || p.Up.Rank >= self {
		return nil, fmt.Errorf("place in the tree: rank %d of %d above rank %d of %d", p.Up.Rank, p.Up.Size, self, size)
	}
	last := self
	for _, r := range p.Down {
		if r <= last || int(r) >= size {
			return nil, fmt.Errorf("place in the tree: rank %d below rank %d of %d", r, self, size)
		}
		last = r
	}
	return &p, nil
}

// table is the knowledge of all ranks when the job is complete.
type table struct {
	Job   []byte
	Peers []*Peer // by rank
}

// places returns the place of each rank.
func (t *table) places() ([]*place, error) {
	topology, err := topologyOf(t.Peers)
	if err != nil {
		return nil, err
	}
	tr := newTree(topology)
	all := make([]*place, len(t.Peers))
	for r := range all {
		all[r] = &place{Job: t.Job}
		if up := tr.parent[r]; up >= 0 {
			all[r].Up = t.Peers[up]
			all[up].Down = append(all[up].Down, levels.Rank(r)) // up < r
		}
	}
	return all, nil
}

// packed is a table on its way: common parts of records are there once.
type packed struct {
	Common []common
	Ranks  []row
}

// common is the common part of the records of a host.
type common struct {
	Version int
	Host    Host
	Kind    string       `json:",omitempty"`
	Node    string       `json:",omitempty"`
	NUMA    string       `json:",omitempty"`
	Site    string       `json:",omitempty"`
	UID     int          `json:",omitempty"`
	Space   string       `json:",omitempty"`
	IPs     []netip.Addr `json:",omitempty"`
	Offer   Offer        `json:",omitempty"`
}

// row is the rest of a rank's record.
type row struct {
	C int      // index of its common
	T []uint16 `json:",omitempty"` // ports: one for all addresses, or one for each
	X string   `json:",omitempty"` // unix listener
	P int      // process
	B uint64   `json:",omitempty"` // when it began
	H []byte   `json:",omitempty"` // hello
}

// encode packs the table.
func (t *table) encode() []byte {
	var p packed
	index := map[string]int{}
	for _, peer := range t.Peers {
		c := common{peer.Version, peer.Host, peer.Kind, peer.Node, peer.NUMA, peer.Site, peer.UID, peer.Space, nil, peer.Offer}
		r := row{X: peer.Unix, P: peer.PID, B: peer.Born, H: peer.Hello}
		for _, a := range peer.Addrs {
			c.IPs = append(c.IPs, a.Addr())
			r.T = append(r.T, a.Port())
		}
		if len(slices.Compact(slices.Clone(r.T))) == 1 {
			r.T = r.T[:1]
		}
		key, _ := json.Marshal(&c) // of plain fields: can't fail
		i, ok := index[string(key)]
		if !ok {
			i = len(p.Common)
			index[string(key)] = i
			p.Common = append(p.Common, c)
		}
		r.C = i
		p.Ranks = append(p.Ranks, r)
	}
	b, _ := json.Marshal(&p) // of plain fields: can't fail
	return b
}

// parseTable reads the table of a job of the given size. Ranks share common
// strings.
func parseTable(b []byte, size int) (*table, error) {
	var p packed
	if err := json.Unmarshal(b, &p); err != nil {
		return nil, fmt.Errorf("table of ranks: %w", err)
	}
	if len(p.Ranks) != size {
		return nil, fmt.Errorf("table of ranks: %d ranks; allowed are %d", len(p.Ranks), size)
	}
	t := &table{Peers: make([]*Peer, size)}
	for i := range p.Ranks {
		peer, err := p.peer(levels.Rank(i), size)
		if err == nil {
			err = peer.check()
		}
		if err != nil {
			return nil, fmt.Errorf("table of ranks: rank %d: %w", i, err)
		}
		t.Peers[i] = peer
	}
	return t, nil
}

// peer returns the record of a rank.
func (p *packed) peer(rank levels.Rank, size int) (*Peer, error) {
	r := &p.Ranks[rank]
	if r.C < 0 || r.C >= len(p.Common) {
		return nil, fmt.Errorf("host %d of %d", r.C, len(p.Common))
	}
	c := &p.Common[r.C]
	if n := len(r.T); n > 1 && n != len(c.IPs) || (n == 0) != (len(c.IPs) == 0) {
		return nil, fmt.Errorf("%d ports for %d addresses", n, len(c.IPs))
	}
	if len(c.IPs) > maxAddresses { // before they are multiplied
		return nil, errors.New("too many addresses")
	}
	peer := &Peer{
		Rank: rank, Size: size, Version: c.Version, Host: c.Host, Kind: c.Kind, Node: c.Node, NUMA: c.NUMA, Site: c.Site,
		Unix: r.X, PID: r.P, Born: r.B, Space: c.Space, UID: c.UID, Hello: r.H, Offer: c.Offer,
	}
	for i, ip := range c.IPs {
		peer.Addrs = append(slices.Grow(peer.Addrs, len(c.IPs)-i), netip.AddrPortFrom(ip, r.T[i%len(r.T)]))
	}
	return peer, nil
}
