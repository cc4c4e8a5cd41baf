package sealtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// Authority is a CA that lives as long as the test.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	next int64
}

// Leaf is what a certificate of a rank says.
type Leaf struct {
	Name     string             // DNS name; empty: none
	From, To time.Time          // zero: an hour ago, and in an hour
	Usages   []x509.ExtKeyUsage // nil: of both sides
}

// NewAuthority makes a CA with a new key.
func NewAuthority(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-24 * time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &Authority{cert: cert, key: key, next: 2}, err
}

// Write writes ca.crt, tls.crt and tls.key with a new key to a folder, and returns what
// TIERFLOW_TLS is with them. Files that are there are replaced one by one, each by a rename.
func (a *Authority) Write(dir string, leaf Leaf) (option string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.next), Subject: pkix.Name{CommonName: "a rank"},
		NotBefore: leaf.From, NotAfter: leaf.To, ExtKeyUsage: leaf.Usages, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	a.next++
	if leaf.Name != "" {
		template.DNSNames = []string{leaf.Name}
	}
	if leaf.From.IsZero() {
		template.NotBefore = time.Now().Add(-time.Hour)
	}
	if leaf.To.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	if leaf.Usages == nil {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return "", err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", err
	}
	for _, f := range []struct {
		name, kind string
		der        []byte
	}{{"tls.key", "PRIVATE KEY", secret}, {"tls.crt", "CERTIFICATE", der}, {"ca.crt", "CERTIFICATE", a.cert.Raw}} {
		path := filepath.Join(dir, f.name)
		text := pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.der})
		if err := os.WriteFile(path+".new", text, 0o600); err != nil {
			return "", err
		}
		if err := os.Rename(path+".new", path); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("cert=%[1]s/tls.crt,key=%[1]s/tls.key,ca=%[1]s/ca.crt", dir), nil
}
