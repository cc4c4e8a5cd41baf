package join

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tierflow/tierflow/levels/files"
)

// certificates are the files by which a rank proves its identity. They are read again when they have
// changed: whoever renews certificates writes new files while the job runs.
type certificates struct {
	certFile, keyFile, caFile string
	id                        string       // glob of the peers' names; empty: this rank's own name
	log                       *slog.Logger // nil: nobody is told of useless files

	mu     sync.Mutex
	stamps [3]os.FileInfo // of the files when they were read last
	now    *material      // of the last good files
}

// material is the contents of the files.
type material struct {
	pair    tls.Certificate
	leaf    *x509.Certificate
	roots   *x509.CertPool
	issuers string // the subjects of roots, for people
	id      string // glob of the peers' names, never empty
}

// anyID is the id of whoever has a certificate of the CA.
const anyID = "*"

// parseCertificates reads cert=F,key=F,ca=F and maybe ,id=GLOB. It opens no file.
func parseCertificates(text string) (*certificates, error) {
	c := &certificates{}
	places := map[string]*string{"cert": &c.certFile, "key": &c.keyFile, "ca": &c.caFile, "id": &c.id}
	for item := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(item, "=")
		place := places[name]
		switch {
		case place == nil || value == "":
			return nil, fmt.Errorf("TLS %q: item %q; allowed are cert=FILE, key=FILE, ca=FILE and id=GLOB", text, item)
		case *place != "":
			return nil, fmt.Errorf("TLS %q: %s twice; allowed is once", text, name)
		}
		*place = value
	}
	for _, name := range []string{"cert", "key", "ca"} {
		if *places[name] == "" {
			return nil, fmt.Errorf("TLS %q: %s= is missing; needed are cert=FILE, key=FILE and ca=FILE", text, name)
		}
	}
	if _, err := path.Match(c.id, ""); err != nil {
		return nil, fmt.Errorf("TLS %q: id %q is no pattern; allowed are such as *.train.example.org and spiffe://example.org/train/*", text, c.id)
	}
	return c, nil
}

// load returns the present contents of the files. Useless files, such as a key of
// another certificate while both are renewed, leave the contents from before.
func (c *certificates) load() (*material, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var stamps [3]os.FileInfo
	for i, name := range []string{c.certFile, c.keyFile, c.caFile} {
		info, err := os.Stat(name)
		if err != nil && c.now == nil {
			return nil, fileError(name, err)
		}
		stamps[i] = info // nil: it is gone
	}
	if c.now != nil && slices.EqualFunc(stamps[:], c.stamps[:], sameFile) {
		return c.now, nil
	}
	c.stamps = stamps
	fresh, err := c.read()
	switch {
	case err == nil:
		c.now = fresh
		c.warnOfKey(stamps[1])
	case c.now == nil:
		return nil, err
	case c.log != nil:
		c.log.Warn("certificate files have changed and can't be used; those from before stay", "error", err)
	}
	return c.now, nil
}

// warnOfKey warns of a key that everybody on the host may read.
func (c *certificates) warnOfKey(key os.FileInfo) {
	const others = 0o007
	if c.log != nil && key != nil && runtime.GOOS != "windows" && key.Mode().Perm()&others != 0 {
		c.log.Warn("every user of this host may use the private key", "file", c.keyFile, "mode", key.Mode().Perm(), "better", "chmod o= FILE")
	}
}

func sameFile(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

func fileError(name string, err error) error {
	if cause, ok := errors.AsType[*os.PathError](err); ok {
		err = cause.Err // the name is said already
	}
	return &TLSError{Source: name, Reason: fmt.Sprintf("%s: %v", name, err), Err: err}
}

// maxPEM bounds a file, bytes: bundles of all public authorities have a quarter of it.
const maxPEM = 1 << 20

// read reads all files.
func (c *certificates) read() (*material, error) {
	var texts [3][]byte
	for i, name := range []string{c.certFile, c.keyFile, c.caFile} {
		var err error
		if texts[i], err = files.Read(name, maxPEM); err != nil {
			return nil, fileError(name, err)
		}
	}
	wrong := func(name, format string, args ...any) error {
		return &TLSError{Source: name, Reason: name + ": " + fmt.Sprintf(format, args...)}
	}
	chain, err := parsePEM(texts[0])
	if err != nil {
		return nil, wrong(c.certFile, "%v; allowed are certificates in PEM, this rank's first", err)
	}
	pair, err := tls.X509KeyPair(texts[0], texts[1])
	if err != nil {
		return nil, wrong(c.keyFile, "%v; allowed is the key of the first certificate in %s, in PEM", err, c.certFile)
	}
	authorities, err := parsePEM(texts[2])
	if err != nil {
		return nil, wrong(c.caFile, "%v; allowed are certificates of authorities, in PEM", err)
	}
	m := &material{pair: pair, leaf: chain[0], roots: x509.NewCertPool(), id: c.id}
	var subjects []string
	for _, a := range authorities {
		m.roots.AddCert(a)
		subjects = append(subjects, a.Subject.String())
	}
	m.issuers = strings.Join(subjects, " or ")
	if missing := lacking(m.leaf); missing != "" {
		return nil, wrong(c.certFile, "it lacks %s; every rank dials and listens, so both serverAuth and clientAuth are needed", missing)
	}
	if own := names(m.leaf); m.id == "" && len(own) == 0 {
		return nil, wrong(c.certFile, "it has neither a URI nor a DNS name, so id= has to say whose certificates are allowed (id=* for all of %s)", m.issuers)
	} else if m.id == "" {
		m.id = literal.Replace(own[0])
	}
	return m, nil
}

// literal keeps a name from being a pattern.
var literal = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`)

// parsePEM returns all certificates of a text, one at least.
func parsePEM(text []byte) (all []*x509.Certificate, err error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	if all == nil {
		return nil, errors.New("no certificate in it")
	}
	return all, nil
}

// lacking returns a usage needed by ranks and missing in a certificate; empty: none is.
func lacking(leaf *x509.Certificate) string {
	has := func(u x509.ExtKeyUsage) bool {
		return len(leaf.ExtKeyUsage)+len(leaf.UnknownExtKeyUsage) == 0 || // for all uses
			slices.Contains(leaf.ExtKeyUsage, u) || slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageAny)
	}
	switch {
	case !has(x509.ExtKeyUsageClientAuth):
		return "clientAuth"
	case !has(x509.ExtKeyUsageServerAuth):
		return "serverAuth"
	}
	return ""
}

// names returns the names of the owner of a certificate: its URIs, then its DNS names. The common name says
// nothing: anybody may be called anything there.
func names(leaf *x509.Certificate) (all []string) {
	for _, u := range leaf.URIs {
		all = append(all, u.String())
	}
	return append(all, leaf.DNSNames...)
}

// describe describes a certificate for people.
func describe(leaf *x509.Certificate) string {
	name := leaf.Subject.String()
	if all := names(leaf); len(all) > 0 {
		name = strings.Join(all, ", ")
	}
	return fmt.Sprintf("certificate of %s by %s, from %s until %s", name, leaf.Issuer, date(leaf.NotBefore), date(leaf.NotAfter))
}

func date(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// judge returns the fault of the other side's chain; welcomed: none.
// usage is the role of the other side: a dialer is a client.
func (m *material) judge(chain []*x509.Certificate, usage x509.ExtKeyUsage, now time.Time) (verdict, error) {
	if len(chain) == 0 {
		return badCertificate, errors.New("it has shown no certificate")
	}
	leaf, between := chain[0], x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	shown := "its " + describe(leaf)
	if now.Before(leaf.NotBefore) {
		return earlyCertificate, fmt.Errorf("%s is not valid yet: the time here is %s", shown, date(now))
	}
	if now.After(leaf.NotAfter) {
		return lateCertificate, fmt.Errorf("%s has expired: the time here is %s", shown, date(now))
	}
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: m.roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage},
	})
	if err != nil {
		if foreign, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
			return foreignCertificate, fmt.Errorf("%s is of another CA; allowed is %s: %w", shown, m.issuers, foreign)
		}
		return badCertificate, fmt.Errorf("%s can't be used: %w", shown, err)
	}
	if m.id == anyID || slices.ContainsFunc(names(leaf), func(name string) bool {
		ok, _ := path.Match(m.id, name) // the pattern was tried before
		return ok
	}) {
		return welcomed, nil
	}
	return strangeCertificate, fmt.Errorf("%s has another name; allowed is %s", shown, m.id)
}
