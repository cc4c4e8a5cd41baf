package join

import (
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/levels/join/seal/sealtest"
)

// Where others could come in, a secret that can be guessed is warned of.
func TestWeakSecrets(t *testing.T) {
	far, near := []string{"10.0.0.1:4000", "127.0.0.1:4000"}, []string{"127.0.0.1:4000", "[::1]:4000", "localhost:4000"}
	for _, test := range []struct {
		c    Config
		want string
	}{
		{Config{Size: 2, Rendezvous: far, Secret: "a"}, "a secret of 1 characters can be guessed"},
		{Config{Size: 2, Rendezvous: far, Secret: "fifteen letters"}, "15 characters"},
		{Config{Size: 2, Rendezvous: far, Secret: NoSecret}, "whoever reaches a port"},
		{Config{Size: 2, Rendezvous: []string{"train-0:4000"}, Secret: "a", TLS: "off"}, "1 characters"},
		{Config{Size: 2, Rendezvous: far, Secret: "sixteen letters!"}, ""},
		{Config{Size: 2, Rendezvous: far, Secret: NoSecret, TLS: "cert=a,key=b,ca=c"}, ""},
		{Config{Size: 2, Rendezvous: near, Secret: "a"}, ""},
		{Config{Size: 1, Rendezvous: far, Secret: "a"}, ""},
	} {
		if got := test.c.secretFault(); got == "" != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%v, %d characters: %q, want %q", test.c, len(test.c.Secret), got, test.want)
		}
	}
	log := &said{}
	cs := configs(t, 2)
	for r := range cs {
		cs[r].Secret, cs[r].Log = "a", slog.New(slog.NewTextHandler(log, nil))
		_, port, _ := net.SplitHostPort(cs[r].Rendezvous[0])
		cs[r].Rendezvous = append(cs[r].Rendezvous, "nowhere.invalid:"+port)
	}
	mustJoin(t, cs)
	if text := log.String(); strings.Count(text, "keeps few out") != 1 || strings.Contains(text, `secret=a`) {
		t.Errorf("log %q, want one warning", text)
	}
}

// Ranks that meet on loopback are on one host: nobody else can come to a port of theirs.
func TestLocalJobsListenOnLoopback(t *testing.T) {
	cs := configs(t, 3)
	for r := range cs {
		cs[r].Interfaces = nil
	}
	for _, j := range mustJoin(t, cs) {
		ports := 0
		for _, l := range j.door.listeners {
			if at, ok := l.Addr().(*net.TCPAddr); ok && !at.IP.IsLoopback() {
				t.Errorf("rank %d listens on %v", j.Rank, at)
			} else if ok {
				ports++
			}
		}
		for _, a := range j.Peers[j.Rank].Addrs {
			if !a.Addr().IsLoopback() {
				t.Errorf("rank %d offers %v", j.Rank, a)
			}
		}
		if ports != 1 {
			t.Errorf("rank %d listens at %d ports", j.Rank, ports)
		}
	}
	elsewhere := Config{Rendezvous: []string{"127.0.0.1:4000", "10.0.0.1:4000"}}
	if elsewhere.isLocal() {
		t.Error("a job with a rendezvous for other hosts is taken for one on one host")
	}
}

// A private key that every user of the host may read is warned of.
func TestOpenKey(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes")
	}
	ca, dir := authority(t, "train-ca"), t.TempDir()
	option := write(t, ca, dir, sealtest.Leaf{Name: "ranks.train"})
	for mode, want := range map[os.FileMode]int{0o600: 0, 0o640: 0, 0o644: 1} {
		if err := os.Chmod(dir+"/tls.key", mode); err != nil {
			t.Fatal(err)
		}
		log := &said{}
		cfg := &Config{Size: 2, TLS: option, Log: slog.New(slog.NewTextHandler(log, nil))}
		if _, err := newGuard(cfg); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(log.String(), "every user of this host may use the private key\" file="+dir+"/tls.key mode=-rw-r--r-- better=\"chmod o= FILE\"\n"); got != want {
			t.Errorf("mode %v: log %q, want %d warnings", mode, log, want)
		}
	}
}
