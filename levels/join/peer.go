package join

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/levels"
)

// MaxHello is the longest Hello, in bytes.
const MaxHello = 4 << 10

// maxRecord bounds the encoded form of one Peer: Hello in base 64, 64 addresses,
// names.
const maxRecord = 16 << 10

// Peer is the record of a rank, from itself when it joined.
type Peer struct {
	Rank    levels.Rank
	Size    int // of the job, as this rank was told
	Version int // of this package's protocol
	Host    Host
	Kind    string           // of the host: its processors and the speed of its network; empty: unknown
	Node    string           // override of the node's identity, if any
	NUMA    string           // NUMA domain of the node; empty: unknown, or several
	Site    string           // site of the node; empty: unknown
	Addrs   []netip.AddrPort // its listeners, in the order to try
	Offer   Offer            // how Addrs came about
	Unix    string           // its unix listener, for ranks of the same host
	PID     int
	Born    uint64 // when its process began, see package process; 0: unknown
	Space   string // name space of PID; empty: unknown
	UID     int
	Hello   []byte // the caller's
}

// Offer is how the addresses of a rank and their order came about.
type Offer uint8

const (
	Found      Offer = iota // the system's interfaces have them
	Listed                  // so, and Interfaces has the order
	Advertised              // Advertise has them; they may be translated on the way
)

// nodeKey is equal for ranks of one node.
func (p *Peer) nodeKey() string {
	if p.Node != "" {
		return "as told " + p.Node
	}
	return strings.Join([]string{p.Host.Boot, p.Host.Name, p.Host.Net}, " ")
}

// where names a peer for people.
func (p *Peer) where() string { return fmt.Sprintf("pid %d on %s", p.PID, p.Host.Name) }

// parsePeer reads one record. Its rank and size are checked by rank 0, who can
// say more about them.
func parsePeer(b []byte) (*Peer, error) {
	var p Peer
	if len(b) > maxRecord {
		return nil, fmt.Errorf("record of %d bytes; allowed are %d", len(b), maxRecord)
	}
	if err := json.Unmarshal(b, &p); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("record of rank %d: %w", p.Rank, err)
	}
	return &p, nil
}

func (p *Peer) check() error {
	switch {
	case p.Rank < 0 || p.Rank >= levels.MaxRanks:
		return fmt.Errorf("allowed are ranks 0 to %d", levels.MaxRanks-1)
	case int(p.Rank) >= p.Size:
		return fmt.Errorf("a job of %d ranks has no such rank", p.Size)
	case len(p.Addrs) > maxAddresses:
		return fmt.Errorf("%d addresses; allowed are %d", len(p.Addrs), maxAddresses)
	case len(p.Kind) > maxKind:
		return fmt.Errorf("a kind of host of %d bytes; allowed are %d", len(p.Kind), maxKind)
	case len(p.Hello) > MaxHello:
		return fmt.Errorf("hello of %d bytes; allowed are %d", len(p.Hello), MaxHello)
	case slices.ContainsFunc(p.Addrs, func(a netip.AddrPort) bool { return !a.IsValid() || a.Port() == 0 }):
		return errors.New("an address without host or port")
	}
	return errors.Join(checkDomain("NUMA domain", p.NUMA), checkDomain("site", p.Site))
}

// topologyOf places the ranks on nodes. A node has the name it was told to have or
// its host's, with a number behind if several nodes share one. All ranks decide
// from the same records, so one rank without a NUMA domain or site, as in
// older versions, keeps all without that level.
func topologyOf(peers []*Peer) (*levels.Topology, error) {
	names, taken := map[string]string{}, map[string]int{}
	paths := make([][]string, len(peers))
	for r, p := range peers {
		key := p.nodeKey()
		if names[key] == "" {
			name := nodeName(p)
			taken[name]++
			if n := taken[name]; n > 1 {
				name = fmt.Sprintf("%s:%d", name, n)
			}
			names[key] = name
		}
		paths[r] = []string{p.NUMA, names[key], p.Site}
	}
	several, err := checkSites(peers)
	if err != nil {
		return nil, err
	}
	from, to := 1, 2
	if bound(peers) {
		from = 0
	}
	if several {
		to = 3
	}
	for r := range paths {
		paths[r] = paths[r][from:to]
	}
	return levels.Named(levels.Standard(4)[from:to+1], paths)
}

// checkSites reports whether all ranks know their site, and there are several. A node at
// two sites is an error.
func checkSites(peers []*Peer) (bool, error) {
	at := map[string]*Peer{} // by node: its first rank
	several := false
	for _, p := range peers {
		first, ok := at[p.nodeKey()]
		if !ok {
			at[p.nodeKey()] = p
		} else if first.Site != p.Site {
			return false, fmt.Errorf("ranks %d and %d are on one node, but name the sites %q and %q; allowed is one site for a node",
				first.Rank, p.Rank, first.Site, p.Site)
		}
		several = several || p.Site != peers[0].Site
	}
	known := !slices.ContainsFunc(peers, func(p *Peer) bool { return p.Site == "" })
	return several && known, nil
}

// bound reports whether all ranks know their NUMA domain, and two of one node
// live in different ones: else that level would tell nothing.
func bound(peers []*Peer) bool {
	domain := map[string]string{} // by node: its first rank's
	several := false
	for _, p := range peers {
		if p.NUMA == "" {
			return false
		}
		first, ok := domain[p.nodeKey()]
		if !ok {
			domain[p.nodeKey()] = p.NUMA
		}
		several = several || ok && first != p.NUMA
	}
	return several
}

// nodeName keeps to the characters a topology allows. A colon is ours, see above.
func nodeName(p *Peer) string {
	name := p.Node
	if name == "" {
		name = p.Host.Name
	}
	name = strings.Map(func(r rune) rune {
		if isBad(r) {
			return '-'
		}
		return r
	}, name)
	if name == "" {
		name = "node"
	}
	return name[:min(len(name), 200)]
}

// maxDomain is the longest name of a NUMA domain or a site, in bytes.
const maxDomain = 63

// isBad reports whether a topology allows no r in names.
func isBad(r rune) bool {
	return !strings.ContainsRune("._-", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

// checkDomain keeps to names allowed in a topology; "" is an unknown domain.
func checkDomain(what, name string) error {
	if len(name) > maxDomain || strings.ContainsFunc(name, isBad) {
		return fmt.Errorf("%s %.70q; allowed are up to %d ASCII letters, digits and . _ -", what, name, maxDomain)
	}
	return nil
}
