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

// Anonymous returns the config of both sides of connections without proof of an identity: TLS with
// a new key for each config. Whoever uses one must prove its identity over the connection,
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

// Mutual returns the config of both sides of connections with certificates, own this side's.
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

// config returns the common config of all connections of this package: TLS 1.3 and nothing
// else, full handshakes, and records as long as they can be. crypto/tls compares no
// names: ranks dial addresses, and no certificate has these.
func config(protocol string) *tls.Config {
	return &tls.Config{
		InsecureSkipVerify: true, // a bound proof counts, or the judge of Mutual

		MinVersion: tls.VersionTLS13, MaxVersion: tls.VersionTLS13,
		NextProtos:                  []string{protocol},
		SessionTicketsDisabled:      true,
		DynamicRecordSizingDisabled: true,
	}
}
