package join

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/seal"
)

// guard makes connections between hosts TLS; nil leaves them plain.
//
// Without certificates it proves nobody's identity: the handshake inside does, bound
// to the TLS channel. So greet and welcome are the only ones to read and write before that is
// over. With certificates both are needed.
type guard struct {
	protocol  string
	config    *tls.Config   // without certificates
	files     *certificates // nil: without
	admission []byte
	state     atomic.Pointer[tls.ConnectionState] // of some connection
	made      atomic.Int64                        // connections
	failed    atomic.Int64                        // handshakes
}

// Application protocols of connections: by the job's secret, and by certificates. They
// differ: so two ranks of different kinds don't agree.
const (
	protocolJob   = "tierflow-job"
	protocolFiles = "tierflow-files"
)

// newGuard returns nil if connections are to be plain.
func newGuard(cfg *Config) (*guard, error) {
	if cfg.TLS == "" || cfg.TLS == tlsOff || cfg.Size == 1 {
		return nil, nil
	}
	g := &guard{protocol: protocolJob, admission: derive(cfg.Secret, "admission", nil)}
	var err error
	if cfg.hasCertificates() {
		g.protocol = protocolFiles
		if g.files, err = parseCertificates(cfg.TLS); err != nil {
			return nil, err
		}
		g.files.log = cfg.logger()
		_, err = g.files.load()
		return g, err
	}
	if err := checkSecret(cfg.Secret); err != nil { // it may have come by the launcher
		return nil, err
	}
	g.config, err = seal.Anonymous(protocolJob)
	return g, err
}

// setting is the value of TIERFLOW_TLS, for people.
func (g *guard) setting() string { return settingOf([]string{g.protocol}) }

// settingOf is the setting of a rank, by its protocols.
func settingOf(protocols []string) string {
	if slices.Contains(protocols, protocolFiles) {
		return "cert=…"
	}
	return tlsJob
}

// dial makes a connection dialled by this rank TLS. The caller sets deadlines, and
// closes c after an error. What ctx ends hasn't failed: another address was faster.
func (g *guard) dial(ctx context.Context, c net.Conn, from levels.Rank) (net.Conn, error) {
	if _, local := c.(*net.UnixConn); g == nil || local {
		return c, nil
	}
	sealed, err := g.dialSealed(c, from)
	if err != nil {
		if ctx.Err() == nil {
			g.failed.Add(1)
		}
		return nil, g.explain(err, c)
	}
	g.note(sealed)
	return sealed, nil
}

func (g *guard) dialSealed(c net.Conn, from levels.Rank) (*seal.Conn, error) {
	cfg := g.config
	if g.files == nil {
		cfg = cfg.Clone()
	} else {
		m, err := g.files.load()
		if err != nil {
			return nil, err
		}
		cfg = seal.Mutual(protocolFiles, &m.pair, func(chain []*x509.Certificate) error {
			if _, err := m.judge(chain, x509.ExtKeyUsageServerAuth, time.Now()); err != nil {
				return &TLSError{Reason: err.Error(), Err: err}
			}
			return nil
		})
	}
	cfg.NextProtos = append(cfg.NextProtos, g.ticket(from))
	return seal.Client(c, cfg)
}

func (g *guard) note(c *seal.Conn) {
	g.made.Add(1)
	state := c.State()
	g.state.Store(&state)
}

// explain explains the end of a dialer's handshake.
func (g *guard) explain(err error, c net.Conn) error {
	header, foreign := errors.AsType[tls.RecordHeaderError](err)
	text, reason := err.Error(), ""
	known, judged := errors.AsType[*TLSError](err)
	switch {
	case judged:
		reason, err = known.Reason, known.Err
	case foreign && string(header.RecordHeader[:4]) == magic:
		reason = fmt.Sprintf("the listener has TIERFLOW_TLS=off, this rank %s", g.setting())
	case foreign:
		reason = fmt.Sprintf("what listens there does not speak TLS: its first bytes are %q", header.RecordHeader[:])
	case strings.HasSuffix(text, "remote error: tls: no application protocol"):
		reason = fmt.Sprintf("what listens there has another kind of TIERFLOW_TLS, this rank %s, or is no rank of tierflow", g.setting())
	case strings.HasSuffix(text, "remote error: tls: internal error"):
		return fmt.Errorf("handshake: %w: it refused this rank's admission", ErrSecret)
	case isDropped(err) || timedOut(err):
		return fmt.Errorf("TLS handshake: %w", err)
	default:
		reason = text
	}
	return &TLSError{Source: c.RemoteAddr().String(), Reason: reason, Err: err}
}

// addRefusal adds the refused certificate of this rank to an error of a dialer's handshake.
func (g *guard) addRefusal(err error, c net.Conn) error {
	failed, ok := errors.AsType[*TLSError](err)
	if !ok || g == nil || g.files == nil {
		return err
	}
	g.failed.Add(1)
	failed.Source = c.RemoteAddr().String()
	if m, err := g.files.load(); err == nil {
		failed.Reason += fmt.Sprintf(" (%s: %s)", g.files.certFile, describe(m.leaf))
	}
	return err
}

// receive makes an accepted connection TLS. The greeting it returns with an error is a
// claim. It calls heard after a hello with a ticket of the secret. The caller sets deadlines, and closes c
// after an error.
func (g *guard) receive(c net.Conn, self levels.Rank, heard func()) (net.Conn, greeting, error) {
	if _, local := c.(*net.UnixConn); g == nil || local {
		return c, greeting{}, nil
	}
	sealed, claim, err := g.receiveSealed(c, self, heard)
	if err != nil {
		if !isDropped(err) && !errors.Is(err, io.ErrUnexpectedEOF) { // as by a dialer of which another attempt was faster
			g.failed.Add(1)
		}
		return nil, claim, err
	}
	g.note(sealed)
	return sealed, claim, nil
}

func (g *guard) receiveSealed(c net.Conn, self levels.Rank, heard func()) (*seal.Conn, greeting, error) {
	var first [1]byte
	if _, err := c.Read(first[:]); err != nil {
		return nil, greeting{}, fmt.Errorf("no greeting: %w", err)
	}
	if first[0] == magic[0] {
		claim, err := g.refusePlain(c, first[:])
		return nil, claim, err
	}
	cfg := g.config
	var m *material
	if g.files == nil {
		cfg = cfg.Clone()
	} else {
		var err error
		if m, err = g.files.load(); err != nil {
			return nil, greeting{}, err
		}
		cfg = seal.Mutual(protocolFiles, &m.pair, nil)
	}
	var claim greeting
	var refused error
	cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		known := false
		if claim, known, refused = g.admit(hello.SupportedProtos, self); known {
			heard()
			return nil, nil // a rank of another kind is told so: there is no common protocol
		}
		return nil, refused
	}
	sealed, err := seal.Server(c, cfg, first[:])
	switch {
	case refused != nil:
		return nil, claim, refused
	case err != nil && (isDropped(err) || timedOut(err)):
		return nil, claim, fmt.Errorf("TLS handshake: %w", err)
	case err != nil && m != nil && strings.HasSuffix(err.Error(), "remote error: tls: bad certificate"):
		return nil, claim, &TLSError{Reason: fmt.Sprintf("rank %d refuses this rank's certificate, its error says why (%s: %s)",
			claim.from, g.files.certFile, describe(m.leaf)), Err: err}
	case err != nil:
		return nil, claim, &TLSError{Reason: err.Error(), Err: err}
	case m == nil:
		return sealed, claim, nil
	}
	if v, err := m.judge(sealed.State().PeerCertificates, x509.ExtKeyUsageClientAuth, time.Now()); err != nil {
		refuseCertificate(sealed, v)
		return nil, claim, &TLSError{Reason: fmt.Sprintf("it claims to be rank %d: %v", claim.from, err), Err: err}
	}
	return sealed, claim, nil
}

// refuseCertificate tells a dialer the fault of its certificate: with TLS 1.3 its own
// handshake was over before anybody looked at the certificate.
func refuseCertificate(c net.Conn, v verdict) {
	var greeting [greetingLen]byte
	if _, err := io.ReadFull(c, greeting[:]); err != nil {
		return // it is refused whether or not it hears why
	}
	r := reply{version: protocolVersion, verdict: v}
	c.Write(r.append(nil))
	c.Close() // says the end: so the reply arrives
}

// A ticket is an application protocol named by a dialer beside the true one: its rank, and
// a proof of the secret. It proves little, since an eavesdropper can repeat it. But
// without one the listener does nothing dear.
const (
	ticketPrefix = "tierflow-rank-"
	ticketNonce  = 16
)

func (g *guard) ticket(from levels.Rank) string {
	var b [ticketNonce]byte
	rand.Read(b[:])
	return ticketPrefix + strconv.Itoa(int(from)) + "-" + base64.RawURLEncoding.EncodeToString(append(b[:], g.stamp(b[:])...))
}

func (g *guard) stamp(nonce []byte) []byte {
	m := hmac.New(sha256.New, g.admission)
	m.Write(nonce)
	return m.Sum(nil)[:ticketNonce]
}

// admit looks at a ticket. The greeting is a claim; known: its maker holds the secret.
func (g *guard) admit(protocols []string, self levels.Rank) (claim greeting, known bool, err error) {
	claim, stamped := readTicket(protocols)
	claim.to = self
	known = len(stamped) == 2*ticketNonce && hmac.Equal(stamped[ticketNonce:], g.stamp(stamped[:ticketNonce]))
	switch {
	case claim.version == 0:
		return claim, false, &TLSError{Reason: "a stranger's hello, without a rank"}
	case !slices.Contains(protocols, g.protocol):
		return claim, known, &TLSError{Reason: fmt.Sprintf("rank %d has TIERFLOW_TLS=%s, this rank %s", claim.from, settingOf(protocols), g.setting())}
	case !known:
		return claim, false, fmt.Errorf("%w: it claims to be rank %d", ErrSecret, claim.from)
	}
	return claim, true, nil
}

// readTicket returns the claim of a ticket, of version 0 if there is none.
func readTicket(protocols []string) (claim greeting, stamped []byte) {
	for _, p := range protocols {
		text, ok := strings.CutPrefix(p, ticketPrefix)
		if !ok {
			continue
		}
		number, code, _ := strings.Cut(text, "-")
		r, err := strconv.ParseUint(number, 10, 31)
		if err != nil || r >= levels.MaxRanks {
			continue
		}
		stamped, _ = base64.RawURLEncoding.DecodeString(code)
		return greeting{version: protocolVersion, from: levels.Rank(r)}, stamped
	}
	return greeting{}, nil
}

// refusePlain tells a dialer without TLS that it needs it. first are the bytes
// already read of its greeting.
func (g *guard) refusePlain(c net.Conn, first []byte) (greeting, error) {
	var buf [greetingLen]byte
	n := copy(buf[:], first)
	if _, err := io.ReadFull(c, buf[n:]); err != nil {
		return greeting{}, fmt.Errorf("no greeting: %w", err)
	}
	claim, err := parseGreeting(buf[:])
	if err != nil {
		return claim, err
	}
	r := reply{version: protocolVersion, verdict: wantsTLS}
	if g.files != nil {
		r.verdict = wantsFiles
	}
	c.Write(r.append(nil)) // it is refused whether or not this arrives
	return claim, &TLSError{Reason: fmt.Sprintf("rank %d has TIERFLOW_TLS=off, this rank %s", claim.from, g.setting())}
}

// refuseTLS tells a dialer that TLS is not wanted here. first are the bytes already read of
// its hello.
func refuseTLS(c net.Conn, first []byte) (greeting, error) {
	protocols := seal.Protocols(c, first)
	claim, _ := readTicket(protocols)
	r := reply{version: protocolVersion, verdict: wantsPlain}
	c.Write(r.append(nil)) // it is refused whether or not this arrives
	if claim.version == 0 {
		return claim, &TLSError{Reason: "a stranger speaks TLS, and this rank has TIERFLOW_TLS=off"}
	}
	return claim, &TLSError{Reason: fmt.Sprintf("rank %d has TIERFLOW_TLS=%s, this rank off", claim.from, settingOf(protocols))}
}

// isHello reports whether the first bytes of a connection begin TLS.
func isHello(b []byte) bool { return b[0] == 0x16 }

// DescribeTLS explains a setting of TIERFLOW_TLS to this rank, for people, or returns its
// fault. It reads certificates, and can't know whether the other ranks agree.
func DescribeTLS(setting string) (string, error) {
	cfg := Config{Size: 2, TLS: setting, Secret: strings.Repeat("?", minSecret)} // as if it had one
	if err := cfg.checkTLS(); err != nil {
		return "", err
	}
	g, err := newGuard(&cfg)
	if g == nil {
		return "plain TCP", err
	}
	return g.String(), err
}

// String says how connections are sealed, for people.
func (g *guard) String() string {
	how := "TLS 1.3, "
	if s := g.state.Load(); s != nil {
		how += s.CurveID.String() + ", "
	}
	how += "AES-128-GCM, by "
	if g.files == nil {
		return how + "the job's secret"
	}
	m, err := g.files.load()
	if err != nil {
		return how + "certificates that can't be read: " + err.Error()
	}
	return fmt.Sprintf("%scertificates of %s with names like %s; this rank's holds until %s", how, m.issuers, m.id, date(m.leaf.NotAfter))
}
