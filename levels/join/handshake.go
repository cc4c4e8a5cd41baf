package join

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/tierflow/tierflow/levels"
)

// The handshake, all messages of fixed length:
//
//	dialer                                  listener
//	greeting: version purpose from to nonce →
//	                                        ← reply: version verdict nonce
//	proof: HMAC(key, "dial" transcript)     →
//	                                        ← answer: verdict HMAC(key, "listen" transcript)
//	confirm: one byte                       →
//
// The dialer proves first, so that a stranger gets nothing to guess secrets
// against. The confirm byte tells the listener that the dialer chose this
// connection: one that tries several addresses drops the others before it.

const (
	protocolVersion = 1

	nonceLen    = 32
	proofLen    = sha256.Size
	greetingLen = 4 + 2 + 1 + 4 + 4 + nonceLen
	replyLen    = 4 + 2 + 1 + nonceLen
	answerLen   = 1 + proofLen
	confirmed   = 0x2a
)

const magic = "tfj1"

// errUnused: the dialer proved itself, then used another of its connections.
var errUnused = errors.New("no confirmation")

// Purposes from reserved on are this package's own.
const (
	reserved          uint8 = 0xf0
	purposeRendezvous uint8 = 0xf0
	purposeTree       uint8 = 0xf1
)

// verdict is what a listener thinks of a greeting or proof.
type verdict uint8

const (
	welcomed verdict = iota + 1
	wrongVersion
	wrongRank
	wrongSecret
)

// err is nil for welcomed.
func (v verdict) err(theirs uint16) error {
	switch v {
	case welcomed:
		return nil
	case wrongVersion:
		return fmt.Errorf("%w: it speaks version %d, this rank version %d", ErrVersion, theirs, protocolVersion)
	case wrongRank:
		return fmt.Errorf("another rank listens there")
	case wrongSecret:
		return fmt.Errorf("%w: it refused this rank's proof", ErrSecret)
	default:
		return fmt.Errorf("unknown verdict %d", uint8(v))
	}
}

// greeting opens a connection. Until the proof it is only a claim.
type greeting struct {
	version  uint16
	purpose  uint8
	from, to levels.Rank
	nonce    [nonceLen]byte
}

func newGreeting(purpose uint8, from, to levels.Rank) greeting {
	g := greeting{version: protocolVersion, purpose: purpose, from: from, to: to}
	rand.Read(g.nonce[:]) // never fails: it ends the process instead
	return g
}

func (g *greeting) append(b []byte) []byte {
	b = append(b, magic...)
	b = binary.BigEndian.AppendUint16(b, g.version)
	b = append(b, g.purpose)
	b = binary.BigEndian.AppendUint32(b, uint32(g.from))
	b = binary.BigEndian.AppendUint32(b, uint32(g.to))
	return append(b, g.nonce[:]...)
}

// parseGreeting accepts any version: telling the dialer is the listener's job.
func parseGreeting(b []byte) (greeting, error) {
	var g greeting
	if len(b) != greetingLen {
		return g, fmt.Errorf("greeting has %d bytes; allowed is %d", len(b), greetingLen)
	}
	if string(b[:4]) != magic {
		return g, fmt.Errorf("greeting starts with %q; allowed is %q", b[:4], magic)
	}
	g.version = binary.BigEndian.Uint16(b[4:])
	g.purpose = b[6]
	g.from = levels.Rank(binary.BigEndian.Uint32(b[7:]))
	g.to = levels.Rank(binary.BigEndian.Uint32(b[11:]))
	copy(g.nonce[:], b[15:])
	return g, nil
}

// reply is the listener's challenge, or its refusal.
type reply struct {
	version uint16
	verdict verdict
	nonce   [nonceLen]byte
}

func (r *reply) append(b []byte) []byte {
	b = append(b, magic...)
	b = binary.BigEndian.AppendUint16(b, r.version)
	b = append(b, byte(r.verdict))
	return append(b, r.nonce[:]...)
}

func parseReply(b []byte) (reply, error) {
	var r reply
	if len(b) != replyLen {
		return r, fmt.Errorf("reply has %d bytes; allowed is %d", len(b), replyLen)
	}
	if string(b[:4]) != magic {
		return r, fmt.Errorf("reply starts with %q; allowed is %q", b[:4], magic)
	}
	r.version = binary.BigEndian.Uint16(b[4:])
	r.verdict = verdict(b[6])
	copy(r.nonce[:], b[7:])
	return r, nil
}

// proof shows that its maker holds key. The role keeps a proof from being sent
// back as the other side's.
func proof(key []byte, role string, g *greeting, r *reply) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte("tierflow " + role + "\x00"))
	m.Write(g.append(nil))
	m.Write(r.append(nil))
	return m.Sum(nil)
}

// rendezvousKey and jobKey keep the uses of one secret apart.
func rendezvousKey(secret string) []byte { return derive(secret, "rendezvous", nil) }

func jobKey(secret string, job []byte) []byte { return derive(secret, "job", job) }

func derive(secret, use string, salt []byte) []byte {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte("tierflow key " + use + "\x00"))
	m.Write(salt)
	return m.Sum(nil)
}

// greet is the dialer's side up to the point where the listener has proved
// itself; [confirm] ends it. The caller sets deadlines on c.
func greet(c net.Conn, key []byte, g greeting) error {
	if _, err := c.Write(g.append(nil)); err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	var buf [max(replyLen, answerLen)]byte
	if _, err := io.ReadFull(c, buf[:replyLen]); err != nil {
		return fmt.Errorf("handshake: no reply: %w", err)
	}
	r, err := parseReply(buf[:replyLen])
	if err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	if err := r.verdict.err(r.version); err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	if _, err := c.Write(proof(key, "dial", &g, &r)); err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	if _, err := io.ReadFull(c, buf[:answerLen]); err != nil {
		return fmt.Errorf("handshake: no answer to the proof: %w", err)
	}
	if err := verdict(buf[0]).err(r.version); err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	if !hmac.Equal(buf[1:answerLen], proof(key, "listen", &g, &r)) {
		return fmt.Errorf("handshake: %w: its proof is wrong", ErrSecret)
	}
	return nil
}

// confirm tells the listener that the connection will be used.
func confirm(c net.Conn) error {
	_, err := c.Write([]byte{confirmed})
	return err
}

// welcome is the listener's side. The greeting it returns with an error is an
// unproved claim, zero if there was none. The caller sets deadlines on c.
func welcome(c net.Conn, key []byte, self levels.Rank, size int) (greeting, error) {
	var buf [max(greetingLen, proofLen)]byte
	if _, err := io.ReadFull(c, buf[:greetingLen]); err != nil {
		return greeting{}, fmt.Errorf("no greeting: %w", err)
	}
	g, err := parseGreeting(buf[:greetingLen])
	if err != nil {
		return g, err
	}
	r := reply{version: protocolVersion, verdict: judge(&g, self, size)}
	rand.Read(r.nonce[:])
	if _, err := c.Write(r.append(nil)); err != nil {
		return g, err
	}
	if r.verdict != welcomed {
		return g, refusal(&g, r.verdict, self)
	}
	if _, err := io.ReadFull(c, buf[:proofLen]); err != nil {
		return g, fmt.Errorf("no proof: %w", err)
	}
	if !hmac.Equal(buf[:proofLen], proof(key, "dial", &g, &r)) {
		var none [answerLen]byte
		none[0] = byte(wrongSecret)
		c.Write(none[:]) // the proof was wrong whether or not this arrives
		return g, fmt.Errorf("%w: it claims to be rank %d", ErrSecret, g.from)
	}
	if _, err := c.Write(append([]byte{byte(welcomed)}, proof(key, "listen", &g, &r)...)); err != nil {
		return g, err
	}
	if _, err := io.ReadFull(c, buf[:1]); err != nil {
		return g, fmt.Errorf("%w: %w", errUnused, err)
	}
	if buf[0] != confirmed {
		return g, fmt.Errorf("confirmation is %#x; allowed is %#x", buf[0], confirmed)
	}
	return g, nil
}

func judge(g *greeting, self levels.Rank, size int) verdict {
	switch {
	case g.version != protocolVersion:
		return wrongVersion
	case g.to != self || g.from == self || g.from < 0 || g.from >= levels.MaxRanks:
		return wrongRank
	case int(g.from) >= size && g.purpose != purposeRendezvous:
		return wrongRank // at the rendezvous its size is compared first, which explains more
	}
	return welcomed
}

func refusal(g *greeting, v verdict, self levels.Rank) error {
	if v == wrongVersion {
		return fmt.Errorf("%w: it claims to be rank %d and speaks version %d, this rank version %d", ErrVersion, g.from, g.version, protocolVersion)
	}
	return fmt.Errorf("it claims to be rank %d and asks for rank %d; this is rank %d", g.from, g.to, self)
}
