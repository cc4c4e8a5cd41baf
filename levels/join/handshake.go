package join

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/seal"
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
// The dialer proves first: a stranger gets nothing to guess secrets
// against. By the confirm byte the dialer chooses this
// connection: it may try several addresses, and drops the others before.
//
// Where connections are TLS all of this is inside it, and each transcript ends with
// the channel's [binding]. Without TLS nothing of it has changed, so there
// was no need of a new version.

// errUnused: the dialer proved itself, then used another of its connections.
var errUnused = errors.New("no confirmation")

// Purposes from reserved on are this package's own.
const (
	reserved          uint8 = 0xf0
	purposeRendezvous uint8 = 0xf0
	purposeTree       uint8 = 0xf1
	purposeMend       uint8 = 0xf2 // a broken edge
	purposeProbe      uint8 = 0xf3 // whether packets pass
	purposeKnock      uint8 = 0xf4 // who listens; the connection ends before it is confirmed
)

// proof shows that its maker holds key. The role keeps a proof from being sent
// back as the other side's.
func proof(key []byte, role string, g *greeting, r *reply, binding []byte) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte("tierflow " + role + "\x00"))
	m.Write(g.append(nil))
	m.Write(r.append(nil))
	m.Write(binding)
	return m.Sum(nil)
}

// binding is a secret of the two ends of one TLS connection. As
// a part of the proofs it keeps out a man in the middle with TLS on both sides: the two ends would prove
// different things. The idea is tls-exporter's (RFC 9266).
func binding(c net.Conn) []byte {
	if s, ok := c.(*seal.Conn); ok {
		return s.Binding()
	}
	return nil
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
	if _, err := c.Write(proof(key, "dial", &g, &r, binding(c))); err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	if _, err := io.ReadFull(c, buf[:answerLen]); err != nil {
		return fmt.Errorf("handshake: no answer to the proof: %w", err)
	}
	if err := verdict(buf[0]).err(r.version); err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	if !hmac.Equal(buf[1:answerLen], proof(key, "listen", &g, &r, binding(c))) {
		return fmt.Errorf("handshake: %w: its proof is wrong", ErrSecret)
	}
	return nil
}

// confirm chooses the connection: the listener may use it.
func confirm(c net.Conn) error {
	_, err := c.Write([]byte{confirmed})
	return err
}

// welcome is the listener's side. The greeting it returns with an error is an
// unproved claim, zero if there was none. It calls heard after a greeting, and proven before the dialer knows
// that its proof was right. The caller sets deadlines on c.
func welcome(c net.Conn, key []byte, self levels.Rank, size int, heard, proven func()) (greeting, error) {
	var buf [max(greetingLen, proofLen)]byte
	if _, err := io.ReadFull(c, buf[:greetingLen]); err != nil {
		return greeting{}, fmt.Errorf("no greeting: %w", err)
	}
	if isHello(buf[:]) {
		return refuseTLS(c, buf[:greetingLen])
	}
	g, err := parseGreeting(buf[:greetingLen])
	if err != nil {
		return g, err
	}
	heard()
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
	if !hmac.Equal(buf[:proofLen], proof(key, "dial", &g, &r, binding(c))) {
		var none [answerLen]byte
		none[0] = byte(wrongSecret)
		c.Write(none[:]) // the proof was wrong whether or not this arrives
		return g, fmt.Errorf("%w: it claims to be rank %d", ErrSecret, g.from)
	}
	proven()
	if _, err := c.Write(append([]byte{byte(welcomed)}, proof(key, "listen", &g, &r, binding(c))...)); err != nil {
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
		return wrongRank // at the rendezvous its size is compared first, as that explains more
	}
	return welcomed
}

func refusal(g *greeting, v verdict, self levels.Rank) error {
	if v == wrongVersion {
		return fmt.Errorf("%w: it claims to be rank %d and speaks version %d, this rank version %d", ErrVersion, g.from, g.version, protocolVersion)
	}
	return fmt.Errorf("it claims to be rank %d and asks for rank %d; this is rank %d", g.from, g.to, self)
}
