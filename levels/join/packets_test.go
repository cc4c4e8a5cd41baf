package join

import (
	"errors"
	"strings"
	"testing"
)

// A probe of a rank that can be reached says by which addresses, over TLS too; the job's handler isn't asked.
func TestProbe(t *testing.T) {
	for _, tls := range []string{tlsOff, tlsJob} {
		cs := configs(t, 2)
		for r := range cs {
			cs[r].TLS, cs[r].Node = tls, string(rune('a'+r))
		}
		jobs := mustJoin(t, cs)
		at, from, err := jobs[0].Probe(t.Context(), 1)
		if err != nil || at != jobs[0].Peers[1].Addrs[0] || !from.Addr().IsLoopback() {
			t.Errorf("TLS %s: at %v from %v, %v; want %v", tls, at, from, err, jobs[0].Peers[1].Addrs)
		}
		if _, _, err := jobs[0].Probe(t.Context(), 0); err == nil {
			t.Error("a rank probes itself")
		}
	}
}

// Only packets that get lost again and again are news.
func TestStuck(t *testing.T) {
	for _, c := range []struct {
		s    sent
		want bool
	}{
		{sent{}, false},
		{sent{acked: 82, unacked: 11, packet: 1500}, false},
		{sent{acked: 82, unacked: 11, lapses: 1, packet: 1500}, false},
		{sent{acked: 82, unacked: 11, lapses: mostLapses, packet: 1500}, true},
		{sent{acked: 82, lapses: mostLapses, packet: 1500}, false}, // it has arrived since
	} {
		if c.s.isStuck() != c.want {
			t.Errorf("%+v: %v", c.s, c.s.isStuck())
		}
	}
	text := (&PacketError{3, 5, 1500}).Error()
	if !strings.HasPrefix(text, "small packets from rank 3 come to rank 5, those of 1500 bytes don't: a network on the way has a smaller MTU") {
		t.Error(text)
	}
	jobs := mustJoin(t, configs(t, 2))
	c, err := jobs[0].Dial(t.Context(), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if was := errors.New("was"); explainSilence(c, was) != was || explainSilence(c, nil) != nil {
		t.Error("an error is said to come from lost packets on loopback")
	}
}
