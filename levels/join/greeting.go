package join

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tierflow/tierflow/levels"
)

const (
	protocolVersion = 7

	nonceLen    = 32
	proofLen    = sha256.Size
	greetingLen = 4 + 2 + 1 + 4 + 4 + nonceLen
	replyLen    = 4 + 2 + 1 + nonceLen
	answerLen   = 1 + proofLen
	confirmed   = 0x2a
)

const magic = "tfj1"

// errOtherRank: a process of the job has the port at which a rank was looked for.
var errOtherRank = errors.New("another rank listens there")

// verdict is a listener's answer to a greeting or proof.
type verdict uint8

const (
	welcomed verdict = iota + 1
	wrongVersion
	wrongRank
	wrongSecret
	wantsTLS
	wantsPlain
	wantsFiles         // TLS by certificates
	badCertificate     // for a reason in the listener's log
	earlyCertificate   // not valid yet
	lateCertificate    // expired
	foreignCertificate // of another CA
	strangeCertificate // of somebody else
)

// err is nil for welcomed.
func (v verdict) err(theirs uint16) error {
	switch v {
	case welcomed:
		return nil
	case wrongVersion:
		return fmt.Errorf("%w: it speaks version %d, this rank version %d", ErrVersion, theirs, protocolVersion)
	case wrongRank:
		return errOtherRank
	case wrongSecret:
		return fmt.Errorf("%w: it refused this rank's proof", ErrSecret)
	case wantsTLS:
		return &TLSError{Reason: "the listener has TIERFLOW_TLS=job, this rank off"}
	case wantsFiles:
		return &TLSError{Reason: "the listener has TIERFLOW_TLS=cert=…, this rank off"}
	case badCertificate:
		return refusedCertificate("it can't be used, the listener's log says why")
	case earlyCertificate:
		return refusedCertificate("it is not valid yet by the listener's clock")
	case lateCertificate:
		return refusedCertificate("it has expired by the listener's clock")
	case foreignCertificate:
		return refusedCertificate("it is of another CA")
	case strangeCertificate:
		return refusedCertificate("it has another name than is allowed there")
	default:
		return fmt.Errorf("unknown verdict %d", uint8(v))
	}
}

func refusedCertificate(why string) error {
	return &TLSError{Reason: "the listener refuses this rank's certificate: " + why}
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
	if err := checkFrame("greeting", b, greetingLen); err != nil {
		return g, err
	}
	g.version = binary.BigEndian.Uint16(b[4:])
	g.purpose = b[6]
	g.from = levels.Rank(binary.BigEndian.Uint32(b[7:]))
	g.to = levels.Rank(binary.BigEndian.Uint32(b[11:]))
	copy(g.nonce[:], b[15:])
	return g, nil
}

// checkFrame complains about the length of a frame, or its first bytes.
func checkFrame(name string, b []byte, length int) error {
	if len(b) != length {
		return fmt.Errorf("%s has %d bytes; allowed is %d", name, len(b), length)
	}
	if string(b[:4]) != magic {
		return fmt.Errorf("%s starts with %q; allowed is %q", name, b[:4], magic)
	}
	return nil
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
	if err := checkFrame("reply", b, replyLen); err != nil {
		return r, err
	}
	r.version = binary.BigEndian.Uint16(b[4:])
	r.verdict = verdict(b[6])
	copy(r.nonce[:], b[7:])
	return r, nil
}
