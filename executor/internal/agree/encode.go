package agree

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Append appends a message as it travels among n ranks: kind, sender and receiver, flags, calls, ballot, two to four sets, and
// the decision if there is one. All numbers are big-endian, all sets have a bit for each rank.
func (m *Message) Append(b []byte, n int) []byte {
	flags := byte(0)
	if m.OK {
		flags |= flagOK
	}
	if m.Value != nil {
		flags |= flagValue
	}
	if m.Missing != nil {
		flags |= flagMissing
	}
	if m.Left.Count() > 0 {
		flags |= flagLeft
	}
	b = append(b, byte(m.Kind), flags)
	b = binary.BigEndian.AppendUint32(b, uint32(m.From))
	b = binary.BigEndian.AppendUint32(b, uint32(m.To))
	b = binary.BigEndian.AppendUint32(b, m.Calls)
	b = binary.BigEndian.AppendUint32(b, uint32(m.Ballot.Root))
	b = binary.BigEndian.AppendUint32(b, m.Ballot.Count)
	b = m.Proven.append(m.Lost.append(b, n), n)
	if m.Missing != nil {
		b = m.Missing.append(b, n)
	}
	if flags&flagLeft != 0 {
		b = m.Left.append(b, n)
	}
	if d := m.Value; d != nil {
		ok := byte(0)
		if d.OK {
			ok = flagOK
		}
		b = binary.BigEndian.AppendUint64(append(b, ok), d.ID)
		b = binary.BigEndian.AppendUint32(b, d.Calls[0])
		b = binary.BigEndian.AppendUint32(b, d.Calls[1])
		b = d.Proven.append(d.Lost.append(d.Members.append(b, n), n), n)
	}
	return b
}

const (
	flagOK      = 1
	flagValue   = 2
	flagMissing = 4
	flagLeft    = 8

	messageLen  = 2 + 5*4 // without its sets
	decisionLen = 1 + 8 + 2*4
)

// setLen is how many bytes a set of n ranks takes.
func setLen(n int) int { return (n + 7) / 8 }

// append appends a set of n ranks, the lowest eight first.
func (s Set) append(b []byte, n int) []byte {
	for i := range setLen(n) {
		word := uint64(0)
		if i/8 < len(s) {
			word = s[i/8]
		}
		b = append(b, byte(word>>(i%8*8)))
	}
	return b
}

// Parse reads a message of n ranks, written by [Message.Append]. One that no machine sends is an error.
func Parse(b []byte, n int) (Message, error) {
	want := messageLen + 2*setLen(n)
	if len(b) < want {
		return Message{}, fmt.Errorf("a message of %d bytes; allowed are %d or more", len(b), want)
	}
	flags := b[1]
	if flags&flagValue != 0 {
		want += decisionLen + 3*setLen(n)
	}
	if flags&flagMissing != 0 {
		want += setLen(n)
	}
	if flags&flagLeft != 0 {
		want += setLen(n)
	}
	if len(b) != want {
		return Message{}, fmt.Errorf("a message of %d bytes; allowed are %d", len(b), want)
	}
	m := Message{
		Kind: Kind(b[0]), OK: flags&flagOK != 0,
		From: int(binary.BigEndian.Uint32(b[2:])), To: int(binary.BigEndian.Uint32(b[6:])), Calls: binary.BigEndian.Uint32(b[10:]),
		Ballot: Ballot{int32(binary.BigEndian.Uint32(b[14:])), binary.BigEndian.Uint32(b[18:])},
	}
	sets := reader{b[messageLen:], n, nil}
	m.Lost, m.Proven = sets.next(), sets.next()
	if flags&flagMissing != 0 {
		m.Missing = sets.next()
	}
	if flags&flagLeft != 0 {
		m.Left = sets.next()
	}
	if flags&flagValue != 0 {
		d := sets.rest
		m.Value = &Decision{
			OK: d[0] == flagOK, ID: binary.BigEndian.Uint64(d[1:]),
			Calls: [2]uint32{binary.BigEndian.Uint32(d[9:]), binary.BigEndian.Uint32(d[13:])},
		}
		if d[0] > flagOK {
			return Message{}, fmt.Errorf("flags %#x of a decision; allowed are 0 and 1", d[0])
		}
		sets.rest = d[decisionLen:]
		m.Value.Members, m.Value.Lost, m.Value.Proven = sets.next(), sets.next(), sets.next()
	}
	if sets.err != nil {
		return Message{}, sets.err
	}
	return m, m.check(n, flags)
}

// reader reads sets of n ranks.
type reader struct {
	rest []byte
	n    int
	err  error
}

func (r *reader) next() Set {
	s := make(Set, (r.n+63)/64)
	for i, b := range r.rest[:setLen(r.n)] {
		s[i/8] |= uint64(b) << (i % 8 * 8)
	}
	if !All(r.n).Includes(s) {
		r.err = fmt.Errorf("a set with rank %d; allowed are 0 to %d", slices.Max(s.Ranks()), r.n-1)
	}
	r.rest = r.rest[setLen(r.n):]
	return s
}

// check returns why no machine of n ranks sends m.
func (m *Message) check(n int, flags byte) error {
	switch {
	case flags&^(flagOK|flagValue|flagMissing|flagLeft) != 0:
		return fmt.Errorf("flags %#x; allowed are 0 to %d", flags, flagOK|flagValue|flagMissing|flagLeft)
	case !m.Lost.Includes(m.Left) || flags&flagLeft != 0 && m.Left.Count() == 0:
		return fmt.Errorf("a message that leaves %v out, and counts %v as lost", m.Left.Ranks(), m.Lost.Ranks())
	case m.Missing != nil && m.Kind != Start:
		return fmt.Errorf("a message of kind %d with missing ranks", m.Kind)
	case m.Kind < Start || m.Kind > Decide:
		return fmt.Errorf("a message of kind %d; allowed are %d to %d", m.Kind, Start, Decide)
	case m.From >= n || m.To >= n || m.From == m.To:
		return fmt.Errorf("a message from rank %d to rank %d; allowed are two of 0 to %d", m.From, m.To, n-1)
	case m.Ballot.Root < 0 || int(m.Ballot.Root) >= n:
		return fmt.Errorf("a ballot of rank %d; allowed are 0 to %d", m.Ballot.Root, n-1)
	case (m.Value != nil) != (m.Kind == Propose || m.Kind == Decide) && (m.Kind != Vote):
		return fmt.Errorf("a message of kind %d with value: %v", m.Kind, m.Value != nil)
	case !m.Lost.Includes(m.Proven) || m.Lost.Has(m.From):
		return fmt.Errorf("rank %d counts %v as lost, %v of them for certain", m.From, m.Lost.Ranks(), m.Proven.Ranks())
	case m.Value != nil && m.Value.Members.Count() == 0:
		return fmt.Errorf("a decision without members")
	}
	return nil
}
