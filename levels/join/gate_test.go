package join

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
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

// As many silent strangers as the kernel queues delay a rank by what the guide's security.md says at most. Those who say
// hello keep their slots longer, and those who are proven for good.
func TestIdleConnectionsGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{freed: make(chan struct{}, 1)}
		open := func() *visitor {
			_, c := net.Pipe()
			return g.enter(c)
		}
		proven := open()
		g.trust(proven)
		said := open()
		g.hear(said)
		began := time.Now()
		for range 4000 {
			open()
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("4,000 silent connections take %v of the time of the next one", took)
		}
		if !g.leave(proven) || g.leave(said) {
			t.Error("want the proven visitor to keep its slot, and the other one to have given way")
		}
		g.mu.Lock()
		g.waiting = g.waiting[:gateSlots/2-1] // the others have ended
		g.mu.Unlock()
		if open(); g.dropped != 0 {
			t.Errorf("the gate is free, and silent ones keep their slots for %v", yieldAfter(g.dropped))
		}
	})
}

// Whoever has said hello keeps its slot for gateYield, however many silent ones there are.
func TestGiveWay(t *testing.T) {
	now := time.Unix(100, 0)
	silent := func(ago time.Duration) *visitor { return &visitor{since: now.Add(-ago)} }
	heard := func(ago time.Duration) *visitor { return &visitor{since: now.Add(-ago), heard: true} }
	proven := &visitor{since: now.Add(-time.Hour), heard: true, proven: true}
	const ms = time.Millisecond
	for _, test := range []struct {
		waiting []*visitor
		dropped int
		at      int
		wait    time.Duration
	}{
		{[]*visitor{proven}, 0, -1, gateYield},
		{[]*visitor{proven, silent(249 * ms)}, 0, -1, ms},
		{[]*visitor{proven, silent(250 * ms)}, 0, 1, 0},
		{[]*visitor{silent(124 * ms)}, gateSlots, -1, ms},
		{[]*visitor{silent(125 * ms)}, gateSlots, 0, 0},
		{[]*visitor{silent(19 * ms)}, 1 << 20, -1, ms},
		{[]*visitor{heard(249 * ms), silent(20 * ms)}, 1 << 20, 1, 0},
		{[]*visitor{heard(249 * ms), silent(10 * ms)}, 1 << 20, -1, ms},
		{[]*visitor{heard(250 * ms), silent(10 * ms)}, 1 << 20, 0, 0},
	} {
		if at, wait := giveWay(test.waiting, test.dropped, now); at != test.at || wait != test.wait {
			t.Errorf("%d waiting, %d dropped: %d and %v, want %d and %v", len(test.waiting), test.dropped, at, wait, test.at, test.wait)
		}
	}
}

// A source that tries secrets waits longer and longer before it may try another one, at last a second in each
// slot; others don't wait, nor does it once it has stopped for a minute. The log says how many it were.
func TestWrongSecretsAreSlowedDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := refusals{log: slog.New(slog.NewTextHandler(&log, nil))}
		g := &gate{key: jobKey("one", nil), size: 2, freed: make(chan struct{}, 1), log: &c}
		try := func(from string) time.Duration {
			dialer, conn := net.Pipe()
			v := g.enter(sourced{conn, from})
			go greet(dialer, jobKey("other", nil), newGreeting(purposeTree, 1, 0))
			began := time.Now()
			g.receive(v)
			return time.Since(began)
		}
		var all time.Duration
		for n := range 100 {
			took := try("10.0.0.1")
			if want := min(time.Duration(n)*20*time.Millisecond, time.Second); took != want {
				t.Fatalf("attempt %d after %d wrong ones took %v, want %v", n, n, took, want)
			}
			all += took
		}
		if took := try("10.0.0.2"); took != 0 {
			t.Errorf("another source waited for %v", took)
		}
		clocktest.Pass(refusalPause + time.Second)
		if took := try("10.0.0.1"); took != 0 {
			t.Errorf("after a minute it waits for %v", took)
		}
		if text := log.String(); strings.Count(text, "10.0.0.1") != 3 || !strings.Contains(text, `"refused since the last line"=`) {
			t.Errorf("log in %v:\n%s", all, text)
		}
		dialer, conn := net.Pipe()
		defer dialer.Close()
		for range 100 {
			c.add("10.0.0.3", ErrSecret)
		}
		v := g.enter(sourced{conn, "10.0.0.3"})
		began := time.Now()
		g.running.Go(func() { g.receive(v) })
		g.close() // it waits for nobody
		if took := time.Since(began); took != 0 {
			t.Errorf("the gate took %v to close", took)
		}
	})
}

// sourced is a connection from an address.
type sourced struct {
	net.Conn
	from string
}

func (s sourced) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(s.from)} }
