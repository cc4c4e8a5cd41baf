package machine

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/levels"
)

// Version is the version of the file format.
const Version = 1

// Machine is the description of a machine. Every number is 0 or more.
type Machine struct {
	Version int `json:"version"`
	// Provenance names the source of the numbers. Method is "assumed" or how they were measured.
	Provenance costs.Provenance `json:"provenance"`
	// Links has one link a level, in any order.
	Links []Link `json:"links"`
	// CopyByte and ReduceByte are one rank's time to copy a byte, and to combine one with another,
	// ns a byte.
	CopyByte   float64 `json:"copy_byte_ns"`
	ReduceByte float64 `json:"reduce_byte_ns"`
	// PeerCopy and PeerByte are the additional time of a copy or a reduction for each operand in
	// the memory of another rank of the node: ns, and ns a byte. 0: as for its own.
	PeerCopy float64 `json:"peer_copy_ns,omitempty"`
	PeerByte float64 `json:"peer_byte_ns,omitempty"`
	// Step is a rank's time for each step beside its work, ns.
	Step float64 `json:"step_ns,omitempty"`
	// MemoryByte is the time of a node's memory to carry a byte, ns; all ranks of the node share
	// it. A copy carries its bytes twice, a reduction three times. 0: no limit.
	MemoryByte float64 `json:"memory_byte_ns,omitempty"`
	// Cores are the processors of the ranks.
	Cores Cores `json:"cores,omitzero"`
	// Unreadable says that ranks of a node can't read each other's memory in place. Then a rank
	// copies shared data.
	Unreadable bool `json:"unreadable,omitempty"`
	// TLS says that connections between nodes were sealed when the links were measured: their
	// numbers include sealing.
	TLS bool `json:"tls,omitempty"`
	// SealByte and OpenByte are one rank's time to seal a byte for another node, and to open one,
	// ns. 0: unknown.
	SealByte float64 `json:"seal_byte_ns,omitempty"`
	OpenByte float64 `json:"open_byte_ns,omitempty"`
	// EagerMax is the largest payload without credit, bytes. Budget bounds the payload on its way
	// between two ranks without credit, bytes. 0: an executor's defaults; EagerMax -1: none.
	EagerMax int64 `json:"eager_max_bytes,omitempty"`
	Budget   int64 `json:"budget_bytes,omitempty"`
	// Noise is by how much a transfer or a piece of work takes longer than these numbers
	// on average, as a share of them; 0: never. A simulation without a seed ignores it.
	Noise float64 `json:"noise,omitempty"`
}

// Link is the link of ranks with a common domain of a level, and none inside it. The package
// comment has the formulas. Every number is 0 or more, and 0 if the file has none.
type Link struct {
	Level Symbol `json:"level"`
	// Latency is how long the first byte is on its way, ns.
	Latency float64 `json:"latency_ns"`
	// Byte is the time of one direction of a domain for a byte, ns. 0: no limit.
	Byte float64 `json:"byte_ns,omitempty"`
	// Gap is the time of one direction of a domain for a message beside its bytes, ns.
	Gap float64 `json:"gap_ns,omitempty"`
	// Send and Recv keep the ranks' processors busy, ns a message.
	Send float64 `json:"send_ns,omitempty"`
	Recv float64 `json:"recv_ns,omitempty"`
	// SendMore and RecvMore take their place for messages after the first, if several go or come
	// together: all to another rank between two looks at its link, and all from another rank found
	// there at one look. 0: as Send and Recv.
	SendMore float64 `json:"send_more_ns,omitempty"`
	RecvMore float64 `json:"recv_more_ns,omitempty"`
	// SendByte and RecvByte keep the ranks' processors busy, ns a byte.
	SendByte float64 `json:"send_byte_ns,omitempty"`
	RecvByte float64 `json:"recv_byte_ns,omitempty"`
	// MessageBytes is the size of a message on the wire beside its payload, bytes.
	MessageBytes int64 `json:"message_bytes,omitempty"`
	// PacketBytes is the payload of a packet, and PacketExtra its size on the wire beside that,
	// bytes: 1448 and 66 for TCP over Ethernet with timestamps. PacketBytes 0: there are no
	// packets, and PacketExtra is 0.
	PacketBytes int64 `json:"packet_bytes,omitempty"`
	PacketExtra int64 `json:"packet_extra_bytes,omitempty"`
	// BufferBytes is how much of a message may still be unsent when its sender goes on, bytes: the
	// kernel's queue for a connection.
	BufferBytes int64 `json:"buffer_bytes,omitempty"`
	// BurstBytes is how much a direction of a domain lets pass in no time after it was idle
	// for as long as the wire takes for it, bytes: the depth of a token bucket.
	BurstBytes int64 `json:"burst_bytes,omitempty"`
}

// Cores are processors shared by ranks. A busy rank needs one.
type Cores struct {
	// PerNode is how many a node has. 0: one for each rank.
	PerNode int `json:"per_node,omitempty"`
	// InAll is how many all nodes together have, where they are emulated on one host. Not
	// both it and PerNode are more than 0.
	InAll int `json:"in_all,omitempty"`
	// Switch is the time to give a core to another rank, ns.
	Switch float64 `json:"switch_ns,omitempty"`
}

// Symbol is the letter of a level, see [levels.Level].
type Symbol byte

// MarshalText returns the letter.
func (s Symbol) MarshalText() ([]byte, error) { return []byte{byte(s)}, nil }

// UnmarshalText reads the letter; anything but a letter a to z is an error.
func (s *Symbol) UnmarshalText(text []byte) error {
	if len(text) != 1 || text[0] < 'a' || text[0] > 'z' {
		return fmt.Errorf("level %q; allowed is one letter a to z", text)
	}
	*s = Symbol(text[0])
	return nil
}

// Link returns the link of a level. If the machine has none, levels inside the node use that of the
// node. For any other level the error lists those it has.
func (m *Machine) Link(l levels.Level) (Link, error) {
	inside := -1
	have := ""
	for i, k := range m.Links {
		switch byte(k.Level) {
		case l.Symbol:
			return k, nil
		case levels.NodeSymbol:
			inside = i
		}
		have += fmt.Sprintf(" %c", k.Level)
	}
	if inside >= 0 && l.Symbol == numaSymbol {
		return m.Links[inside], nil
	}
	return Link{}, fmt.Errorf("machine: no link for level %v; there are links for%s", l, have)
}

// Sealed returns the same machine with TLS on the links between nodes: those of levels for which
// between is true. Sealing and opening a byte are added to the processor time of messages. false:
// the machine doesn't know their time.
func (m *Machine) Sealed(between func(Symbol) bool) (*Machine, bool) {
	if m.TLS {
		return m, true
	}
	sealed := *m
	sealed.TLS, sealed.Links = true, slices.Clone(m.Links)
	for i := range sealed.Links {
		if l := &sealed.Links[i]; between(l.Level) {
			l.SendByte += m.SealByte
			l.RecvByte += m.OpenByte
		}
	}
	return &sealed, m.SealByte > 0 && m.OpenByte > 0
}

// numaSymbol is the symbol of the level inside the node, see [levels.Standard].
const numaSymbol = 'm'

// check complains of the machine beside its links.
func (m *Machine) check() error {
	return errors.Join(
		checkNumbers(
			"copy_byte_ns", m.CopyByte, "reduce_byte_ns", m.ReduceByte, "peer_copy_ns", m.PeerCopy, "peer_byte_ns", m.PeerByte, "step_ns", m.Step, "memory_byte_ns", m.MemoryByte, "seal_byte_ns", m.SealByte, "open_byte_ns", m.OpenByte, "noise", m.Noise,
			"cores: per_node", float64(m.Cores.PerNode), "cores: in_all", float64(m.Cores.InAll), "cores: switch_ns", m.Cores.Switch,
			"eager_max_bytes", float64(max(0, m.EagerMax)), "budget_bytes", float64(m.Budget),
		),
		checkVersion(m.Version),
		m.Cores.check(),
	)
}

func (c *Cores) check() error {
	if c.PerNode > 0 && c.InAll > 0 {
		return fmt.Errorf("cores: %d per_node and %d in_all: give one of the two", c.PerNode, c.InAll)
	}
	return nil
}

func checkVersion(v int) error {
	if v != Version {
		return fmt.Errorf("version %d; this program reads version %d", v, Version)
	}
	return nil
}

// check complains of the link.
func (l *Link) check() error {
	err := checkNumbers(
		"latency_ns", l.Latency, "byte_ns", l.Byte, "gap_ns", l.Gap, "send_ns", l.Send, "recv_ns", l.Recv,
		"send_more_ns", l.SendMore, "recv_more_ns", l.RecvMore, "send_byte_ns", l.SendByte, "recv_byte_ns", l.RecvByte,
		"message_bytes", float64(l.MessageBytes), "packet_bytes", float64(l.PacketBytes),
		"packet_extra_bytes", float64(l.PacketExtra), "buffer_bytes", float64(l.BufferBytes), "burst_bytes", float64(l.BurstBytes),
	)
	if l.PacketBytes == 0 && l.PacketExtra > 0 {
		err = errors.Join(err, errors.New("packet_extra_bytes without packet_bytes"))
	}
	return err
}

// most bounds every number of a machine: a second for a byte, or a gigabyte for a message.
const most = 1e9

// checkNumbers checks pairs of a key and its number.
func checkNumbers(pairs ...any) error {
	var errs []error
	for i := 0; i < len(pairs); i += 2 {
		if v := pairs[i+1].(float64); v < 0 || v > most || math.IsNaN(v) {
			errs = append(errs, fmt.Errorf("%s: %v; allowed are 0 to %.0e", pairs[i], v, most))
		}
	}
	return errors.Join(errs...)
}
