package seal

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"time"
)

// Anonymous returns what both sides of connections use that prove nobody's identity: TLS with
// a new key for each config. Whoever uses one must prove who it is over the connection,
// together with its [Conn.Binding], before anything else passes.
func Anonymous(protocol string) (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{ // TLS wants one; nobody looks at it
		SerialNumber: big.NewInt(1), NotBefore: now.AddDate(0, 0, -1), NotAfter: now.AddDate(10, 0, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	c := config(protocol)
	c.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
	return c, nil
}

// Mutual returns what both sides of connections use that show certificates, own this side's.
// Whoever dials gets the listener's chain judged, before anything passes; an error is told to
// the listener as "bad certificate". Whoever listens finds the dialer's chain in
// [Conn.State], and must judge it before he believes anything.
func Mutual(protocol string, own *tls.Certificate, judge func([]*x509.Certificate) error) *tls.Config {
	c := config(protocol)
	c.Certificates = []tls.Certificate{*own}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own, nil }
	c.ClientAuth = tls.RequireAnyClientCert
	if judge != nil {
		c.VerifyConnection = func(s tls.ConnectionState) error { return judge(s.PeerCertificates) }
	}
	return c
}

// config returns what all connections of this package have in common: TLS 1.3 and nothing
// else, full handshakes, and records that are as long as they can be. crypto/tls compares no
// names: ranks dial addresses that no certificate has.
func config(protocol string) *tls.Config {
	return &tls.Config{
		InsecureSkipVerify: true, // a bound proof counts, or what Mutual is given

		MinVersion: tls.VersionTLS13, MaxVersion: tls.VersionTLS13,
		NextProtos:                  []string{protocol},
		SessionTicketsDisabled:      true,
		DynamicRecordSizingDisabled: true,
	}
}
