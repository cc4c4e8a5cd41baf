package join

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/levels/join/seal"
	"github.com/tierflow/tierflow/levels/join/seal/sealtest"
)

// authority returns a CA.
func authority(t testing.TB, name string) *sealtest.Authority {
	t.Helper()
	a, err := sealtest.NewAuthority(name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// write returns TIERFLOW_TLS for files of a leaf in dir.
func write(t testing.TB, a *sealtest.Authority, dir string, leaf sealtest.Leaf) string {
	t.Helper()
	option, err := a.Write(dir, leaf)
	if err != nil {
		t.Fatal(err)
	}
	return option
}

// certifiedConfigs are configs with certificates of one CA, each rank on a node of its own.
func certifiedConfigs(t testing.TB, n int) []Config {
	ca, cs := authority(t, "train-ca"), tlsConfigs(t, n)
	for r := range cs {
		cs[r].TLS = write(t, ca, t.TempDir(), sealtest.Leaf{Name: "ranks.train"})
	}
	return cs
}

// said keeps what is logged.
type said struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// disagree joins two ranks that can't come together: rank 1 fails at once with one in its
// error, and rank 0 logs zero at once. Rank 0 would wait for another rank 1 then.
func disagree(t *testing.T, cs []Config, zero, one string) {
	t.Helper()
	log := &said{}
	cs[0].Log = slog.New(slog.NewTextHandler(log, nil))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	told := make(chan error, 1)
	go func() { // ends when ctx does
		_, err := Join(ctx, cs[0])
		told <- err
	}()
	_, err := Join(ctx, cs[1])
	var named *TLSError
	if !errors.As(err, &named) || !errors.Is(err, ErrTLS) || !strings.Contains(err.Error(), one) {
		t.Errorf("rank 1: %v, want %q", err, one)
	}
	if clocktest.Await(ctx, func() bool { return strings.Contains(log.String(), zero) }) != nil {
		t.Errorf("rank 0 has logged %q, want %q", log, zero)
	}
	cancel()
	if err := <-told; err == nil {
		t.Error("rank 0 has joined")
	}
}

// TestTLSFiles joins with certificates, dials, and says until when they hold.
func TestTLSFiles(t *testing.T) {
	t.Parallel()
	jobs := mustJoin(t, certifiedConfigs(t, 3))
	if got := jobs[2].Secured(); !strings.Contains(got, "by certificates of CN=train-ca with names like ranks.train; this rank's holds until 2") {
		t.Errorf("secured by %q", got)
	}
	s, ok := jobs[2].TLSState()
	if !ok || s.Made == 0 || s.Failed > 0 || s.Expires.Before(time.Now()) {
		t.Errorf("state %+v, %t", s, ok)
	}
	came := make(chan net.Conn, 1)
	jobs[1].Accept(func(_ levels.Rank, _ uint8, c net.Conn) { came <- c })
	c, err := jobs[2].Dial(t.Context(), 1, 7)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	defer (<-came).Close()
	if _, ok := c.(*seal.Conn); !ok {
		t.Errorf("dialled a %T", c)
	}
}

// Handshakes that either side gave up for a faster attempt are no failed ones; nonsense is.
func TestHandshakesGivenUp(t *testing.T) {
	t.Parallel()
	jobs := mustJoin(t, certifiedConfigs(t, 2))
	g, before := jobs[1].guard, jobs[1].guard.failed.Load()
	mine, its := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // until the hello is there, and then it never answers
		its.Read(make([]byte, 1))
		cancel()
		io.Copy(io.Discard, its)
	}()
	if _, err := (target{address: "a peer"}).greetOn(ctx, mine, credentials{guard: g}, greeting{}); err == nil {
		t.Error("an attempt that was given up has a connection")
	}
	its.Close()
	receive := func(text string) {
		t.Helper()
		mine, its := net.Pipe()
		go func() {
			its.Write([]byte(text))
			its.Close()
		}()
		if _, _, err := g.receive(mine, 1, func() {}); err == nil {
			t.Errorf("%q is a handshake", text)
		}
		mine.Close()
	}
	receive("\x16\x03\x01") // a dialer that leaves
	if n := g.failed.Load(); n != before {
		t.Errorf("%d handshakes have failed, want %d", n, before)
	}
	receive("nonsense that is no record")
	if n := g.failed.Load(); n != before+1 {
		t.Errorf("%d handshakes have failed, want %d", n, before+1)
	}
}

// TestTLSFilesWithoutSecret: certificates let in by themselves.
func TestTLSFilesWithoutSecret(t *testing.T) {
	t.Parallel()
	cs := certifiedConfigs(t, 2)
	cs[0].Secret, cs[1].Secret = NoSecret, NoSecret
	mustJoin(t, cs)
}

// TestTLSRefusedCertificates: a rank with a wrong certificate is named on both sides at once,
// with what is wrong.
func TestTLSRefusedCertificates(t *testing.T) {
	t.Parallel()
	good := sealtest.Leaf{Name: "ranks.train"}
	past, future := time.Now().Add(-time.Minute), time.Now().Add(time.Minute)
	for _, c := range []struct {
		name           string
		leaf           sealtest.Leaf // of rank 1
		foreign        bool          // of another CA
		id             string        // whom the bad one lets in
		zero           string        // of rank 0's errors
		one            string        // and rank 1's, that dials
		listens, dials string        // the same where the bad one is rank 0
	}{
		{
			"expired",
			sealtest.Leaf{Name: "ranks.train", To: past},
			false, "",
			"has expired: the time here is", "it has expired by the listener's clock",
			"rank 1 refuses this rank's certificate", "has expired: the time here is",
		},
		{
			"early",
			sealtest.Leaf{Name: "ranks.train", From: future},
			false, "",
			"is not valid yet: the time here is", "it is not valid yet by the listener's clock",
			"rank 1 refuses this rank's certificate", "is not valid yet: the time here is",
		},
		{
			"of another name",
			sealtest.Leaf{Name: "ranks.serve"},
			false, ",id=ranks.*",
			"has another name; allowed is ranks.train", "it has another name than is allowed there",
			"rank 1 refuses this rank's certificate", "has another name; allowed is ranks.train",
		},
		{
			"foreign", good, true, "",
			"rank 1 refuses this rank's certificate", "is of another CA; allowed is CN=dev-ca",
			"rank 1 refuses this rank's certificate", "is of another CA; allowed is CN=train-ca",
		},
	} {
		for _, bad := range []int{1, 0} {
			t.Run(c.name+" on rank "+string(rune('0'+bad)), func(t *testing.T) {
				t.Parallel()
				ca, cs := authority(t, "train-ca"), tlsConfigs(t, 2)
				zero, one := c.zero, c.one
				if bad == 0 {
					zero, one = c.listens, c.dials
				}
				cs[1-bad].TLS = write(t, ca, t.TempDir(), good)
				if c.foreign {
					ca = authority(t, "dev-ca")
				}
				cs[bad].TLS = write(t, ca, t.TempDir(), c.leaf) + c.id
				disagree(t, cs, zero, one)
			})
		}
	}
}

// TestTLSWrongFiles: what is wrong with a rank's own files is said before anything is opened.
func TestTLSWrongFiles(t *testing.T) {
	dir := t.TempDir()
	ca := authority(t, "train-ca")
	good := write(t, ca, dir, sealtest.Leaf{Name: "ranks.train"})
	other := t.TempDir()
	write(t, ca, other, sealtest.Leaf{Name: "ranks.train"})
	noName := write(t, ca, t.TempDir(), sealtest.Leaf{})
	server := write(t, ca, t.TempDir(), sealtest.Leaf{Name: "a", Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	client := write(t, ca, t.TempDir(), sealtest.Leaf{Name: "a", Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	garbage := filepath.Join(dir, "garbage")
	if err := os.WriteFile(garbage, []byte("not PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, make([]byte, maxPEM+1), 0o600); err != nil {
		t.Fatal(err)
	}
	crt, key := "cert="+dir+"/tls.crt", ",key="+dir+"/tls.key"
	for _, c := range []struct{ tls, want string }{
		{"cert=a,key=b", "ca= is missing; needed are cert=FILE, key=FILE and ca=FILE"},
		{good + ",cert=x", "cert twice; allowed is once"},
		{good + ",name=x", `item "name=x"; allowed are cert=FILE, key=FILE, ca=FILE and id=GLOB`},
		{good + ",id=", `item "id="; allowed`},
		{good + ",id=[", `id "[" is no pattern`},
		{crt + key + ",ca=" + dir + "/none", dir + "/none: no such file or directory"},
		{crt + key + ",ca=" + garbage, garbage + ": no certificate in it; allowed are certificates of authorities, in PEM"},
		{"cert=" + garbage + key + ",ca=" + dir + "/ca.crt", garbage + ": no certificate in it; allowed are certificates in PEM"},
		{crt + ",key=" + other + "/tls.key,ca=" + dir + "/ca.crt", other + "/tls.key: tls: private key does not match public key; allowed is the key of"},
		{crt + ",key=" + large + ",ca=" + dir + "/ca.crt", large + ": 1048577 bytes; allowed are 1048576"},
		{noName, "tls.crt: it has neither a URI nor a DNS name, so id= has to say"},
		{server, "tls.crt: it lacks clientAuth; every rank dials and listens"},
		{client, "tls.crt: it lacks serverAuth; every rank dials and listens"},
	} {
		cfg := Config{Rank: 0, Size: 2, Rendezvous: []string{"127.0.0.1:1"}, TLS: c.tls, Secret: testSecret}
		if _, err := Join(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("TLS=%s: %v, want %q", c.tls, err, c.want)
		}
	}
}

// TestTLSRotation: files that change are read again, and halves of pairs are not used. An
// expired certificate gets no new connection; those that stand stay.
func TestTLSRotation(t *testing.T) {
	t.Parallel()
	ca, cs := authority(t, "train-ca"), tlsConfigs(t, 2)
	log, dirs := &lines{}, []string{t.TempDir(), t.TempDir()}
	for r := range cs {
		cs[r].TLS, cs[r].Log = write(t, ca, dirs[r], sealtest.Leaf{Name: "ranks.train"}), slog.New(log)
	}
	jobs := mustJoin(t, cs)
	came := make(chan net.Conn, 1)
	jobs[1].Accept(func(_ levels.Rank, _ uint8, c net.Conn) { came <- c })
	dial := func() error {
		c, err := jobs[0].Dial(t.Context(), 1, 7)
		if err == nil {
			c.Close()
			(<-came).Close()
		}
		return err
	}
	for range 20 {
		for _, dir := range dirs {
			write(t, ca, dir, sealtest.Leaf{Name: "ranks.train"})
		}
		if err := dial(); err != nil {
			t.Fatal(err)
		}
	}
	before, _ := jobs[1].TLSState()
	if n := log.count(); n > 1 { // that connections are sealed
		t.Errorf("%d lines while files were replaced", n)
	}
	crt := filepath.Join(dirs[1], "tls.crt")
	text, err := os.ReadFile(crt)
	if err != nil {
		t.Fatal(err)
	}
	write(t, ca, dirs[1], sealtest.Leaf{Name: "ranks.train", To: time.Now().Add(3 * time.Hour)})
	if err := os.WriteFile(crt, text, 0o600); err != nil { // half of the pair
		t.Fatal(err)
	}
	if err := dial(); err != nil || log.count() != 2 {
		t.Errorf("with half a pair: %v, and %d lines", err, log.count())
	}
	if now, _ := jobs[1].TLSState(); !now.Expires.Equal(before.Expires) {
		t.Errorf("half a pair is used: %+v", now)
	}
	write(t, ca, dirs[1], sealtest.Leaf{Name: "ranks.train", To: time.Now().Add(-time.Minute)})
	if err := dial(); !errors.Is(err, ErrTLS) || !strings.Contains(err.Error(), "has expired") {
		t.Errorf("with an expired certificate: %v", err)
	}
	onAll(t, jobs, func(j *Job) error { _, err := j.Exchange(t.Context(), nil); return err })
}

// TestTLSKinds: each kind of TLS refuses the others, and says on both sides who differs.
func TestTLSKinds(t *testing.T) {
	t.Parallel()
	ca, dir := authority(t, "train-ca"), t.TempDir()
	files := write(t, ca, dir, sealtest.Leaf{Name: "ranks.train"})
	for _, c := range []struct{ zero, one, theirs, mine string }{
		{tlsOff, files, "rank 1 has TIERFLOW_TLS=cert=…, this rank off", "the listener has TIERFLOW_TLS=off, this rank cert=…"},
		{files, tlsOff, "rank 1 has TIERFLOW_TLS=off, this rank cert=…", "the listener has TIERFLOW_TLS=cert=…, this rank off"},
		{tlsJob, files, "rank 1 has TIERFLOW_TLS=cert=…, this rank job", "what listens there has another kind of TIERFLOW_TLS, this rank cert=…"},
		{files, tlsJob, "rank 1 has TIERFLOW_TLS=job, this rank cert=…", "what listens there has another kind of TIERFLOW_TLS, this rank job"},
	} {
		t.Run(c.theirs, func(t *testing.T) {
			t.Parallel()
			cs := tlsConfigs(t, 2)
			cs[0].TLS, cs[1].TLS = c.zero, c.one
			disagree(t, cs, c.theirs, c.mine)
		})
	}
}

// TestTLSStrangersAtFiles: without a certificate, or with one of another CA and the secret,
// nobody hears anything of a job, and the ranks come together.
func TestTLSStrangersAtFiles(t *testing.T) {
	t.Parallel()
	cs := certifiedConfigs(t, 2)
	known, err := newGuard(&cs[1])
	if err != nil {
		t.Fatal(err)
	}
	other := cs[1]
	other.TLS = write(t, authority(t, "dev-ca"), t.TempDir(), sealtest.Leaf{Name: "ranks.train"})
	foreign, err := newGuard(&other)
	if err != nil {
		t.Fatal(err)
	}
	began := make(chan struct{})
	go func() { // rank 0 listens already
		defer close(began)
		for i := range 20 {
			c, err := net.Dial("tcp", cs[0].Rendezvous[0])
			if err != nil {
				t.Error(err)
				return
			}
			c.SetDeadline(time.Now().Add(10 * time.Second))
			m, err := foreign.files.load()
			if err != nil {
				t.Error(err)
				return
			}
			config := seal.Mutual(protocolFiles, &m.pair, nil)
			config.NextProtos = append(config.NextProtos, known.ticket(1))
			if i%2 == 0 {
				config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &tls.Certificate{}, nil }
			}
			said := []byte(nil)
			if s, err := seal.Client(c, config); err == nil { // it hears later that it is refused
				s.Write(make([]byte, greetingLen))
				said, _ = io.ReadAll(s)
			}
			c.Close()
			if len(said) > 0 && (len(said) != replyLen || !bytes.HasPrefix(said, []byte(magic)) || verdict(said[6]) != foreignCertificate) {
				t.Errorf("a stranger was told %x", said)
			}
		}
	}()
	jobs, errs := make([]*Job, 2), make(chan error, 1)
	go func() {
		var err error
		jobs[0], err = Join(t.Context(), cs[0])
		errs <- err
	}()
	<-began
	jobs[1], err = Join(t.Context(), cs[1])
	if err := errors.Join(err, <-errs); err != nil {
		t.Fatal(err)
	}
	closeAll(t, jobs)
}
