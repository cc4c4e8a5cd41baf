package join

import (
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels"
)

// TestQuietGate: who leaves without a wrong word is not worth a line, as the losers
// among a rank's attempts to connect; who says something wrong is.
func TestQuietGate(t *testing.T) {
	key, other := jobKey("one", nil), jobKey("other", nil)
	hello := newGreeting(purposeTree, 1, 0)
	say := func(b []byte) func(net.Conn) { return func(c net.Conn) { c.Write(b) } }
	for _, test := range []struct {
		name  string
		do    func(net.Conn) // then the connection is closed
		lines int
	}{
		{"nothing", func(net.Conn) {}, 0},
		{"a greeting", say(hello.append(nil)), 0},
		{"a greeting, then a reset", func(c net.Conn) {
			c.Write(hello.append(nil))
			c.(*net.TCPConn).SetLinger(0)
		}, 0},
		{"all but the confirmation", func(c net.Conn) { greet(c, key, hello) }, 0},
		{"a wrong proof", func(c net.Conn) { greet(c, other, hello) }, 1},
		{"garbage", say([]byte(strings.Repeat("x", greetingLen))), 1},
		{"half a greeting", say(hello.append(nil)[:20]), 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			log := &lines{}
			g := &gate{key: key, size: 2, freed: make(chan struct{}, 1), log: &refusals{log: slog.New(log)}}
			dialer, c := socketPair(t)
			v := g.enter(c)
			go func() {
				test.do(dialer)
				dialer.Close()
			}()
			g.receive(v)
			if n := log.count(); n != test.lines {
				t.Errorf("%d lines in the log, want %d", n, test.lines)
			}
		})
	}
}

// TestGateKeepsTheProven: when all slots are taken those give way who have not shown
// that they hold the secret, quietly. The others may use their connection already.
func TestGateKeepsTheProven(t *testing.T) {
	cs := configs(t, 2)
	log := &lines{}
	cs[1].Log = slog.New(log)
	jobs := mustJoin(t, cs)
	at := jobs[1].Peers[1].Addrs[0].String()
	came := make(chan net.Conn, gateSlots+1)
	jobs[1].Accept(func(_ levels.Rank, _ uint8, c net.Conn) { came <- c })
	var conns []net.Conn
	for i := range gateSlots {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns = append(conns, c)
		if i == 1 {
			continue // says nothing
		}
		if err := greet(c, jobs[0].key, newGreeting(1, 0, 1)); err != nil {
			t.Fatal(err)
		}
	}
	late, err := jobs[0].Dial(t.Context(), 1, 1) // needs a slot
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	for i, c := range conns {
		if err := confirm(c); i != 1 && err != nil {
			t.Errorf("connection %d: %v", i, err)
		}
	}
	for range gateSlots {
		select {
		case c := <-came:
			c.Close()
		case <-time.After(2 * time.Minute):
			t.Fatal("a connection that was proven did not come")
		}
	}
	if n := log.count(); n > 0 {
		t.Errorf("%d lines in the log", n)
	}
}
