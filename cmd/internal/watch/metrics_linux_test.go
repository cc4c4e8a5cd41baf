package watch

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/door"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner/raw"
)

// Ranks that can be asked are shown to Prometheus, printed and served.
func TestMetrics(t *testing.T) {
	doors(t)
	for rank := range 2 {
		u := raw.Usage{World: 7, Rank: rank, Levels: []string{"node"}}
		u.Calls = []executor.Calls{{Collective: "bcast", Plan: "p", Count: 12}}
		u.Sent, u.Read = []int64{4096}, []int64{0}
		text, err := json.Marshal(u)
		if err != nil {
			t.Fatal(err)
		}
		d, err := door.Open(os.Getenv(env.Door), door.Info{Job: "4f2c91aa", Rank: rank, Ranks: 2, Nodes: []string{"a", "a"}}, func(door.Question) door.Answer {
			return door.Answer{Usage: text}
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
	}
	const want = `tierflow_calls_total{world="0",rank="1",collective="bcast",plan="p"} 12`
	out := tierflow.Succeeds(t, "metrics", "4f")
	if !strings.Contains(out, want) {
		t.Errorf("no %s in\n%s", want, out)
	}
	if tool, err := exec.LookPath("promtool"); err != nil {
		t.Log("promtool is missing: its opinion of the text is unknown")
	} else {
		check := exec.Command(tool, "check", "metrics")
		check.Stdin = strings.NewReader(out)
		if text, err := check.CombinedOutput(); err != nil {
			t.Errorf("promtool check metrics: %v\n%s", err, text)
		}
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serveMetrics(ctx, l, nil) }()
	answer, err := http.Get("http://" + l.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(page), want) || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Errorf("%v, status %d, %s", err, answer.StatusCode, page)
	}
	answer.Body.Close()
	if err := whoServes(t.Context(), l.Addr().String()); err != nil {
		t.Errorf("this user serves there already: %v", err)
	}
	waiting, giveUp := context.WithCancel(t.Context())
	next := make(chan error, 1)
	go func() { next <- ServeMetrics(waiting, l.Addr().String()) }()
	if err := ServeMetrics(t.Context(), "nowhere"); err == nil {
		t.Error("an address without a port is taken")
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the server ends with %v", err)
	}
	for _, args := range [][]string{{"metrics", "x"}, {"metrics", "--listen", "nowhere"}, {"metrics", "a", "b"}} {
		if s := tierflow.Run(t, args...); s.Status != 2 {
			t.Errorf("%q: %+v, want status 2", args, s)
		}
	}
	awaitServer(t, l.Addr().String(), next) // it takes the place of the one that has ended
	giveUp()
	if err := <-next; err != nil {
		t.Errorf("the next server ends with %v", err)
	}
}

// awaitServer returns once metrics are served at an address.
func awaitServer(t *testing.T, address string, ended <-chan error) {
	t.Helper()
	for {
		answer, err := http.Get("http://" + address + "/metrics")
		if err == nil {
			answer.Body.Close()
			return
		}
		select {
		case err := <-ended:
			t.Fatalf("the server has ended: %v", err)
		default:
		}
	}
}

// A server that ends while it is asked who it is, is no other program.
func TestMetricsBesideAnEndingServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, giveUp := context.WithCancel(t.Context())
	next := make(chan error, 1)
	go func() { next <- ServeMetrics(ctx, l.Addr().String()) }()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	c.Close()
	awaitServer(t, l.Addr().String(), next)
	giveUp()
	if err := <-next; err != nil {
		t.Error(err)
	}
}

// A port that others have is said, with who has it.
func TestMetricsPortTaken(t *testing.T) {
	for want, user := range map[string]string{
		"is taken by another program, and no metrics are served":                    "",
		`is taken: tierflow serves metrics there for jobs of user "4711", and none`: "4711",
	} {
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if user != "" {
				w.Header().Set(userHeader, user)
			}
		}))
		err := ServeMetrics(t.Context(), other.Listener.Addr().String())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
		other.Close()
	}
}

// Connections that ask nothing, or nothing more, give way to those that ask.
func TestMetricsAreBounded(t *testing.T) {
	doors(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serveMetrics(ctx, l, nil) }()
	var kept []net.Conn
	for i := range 3 * mostConns {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		kept = append(kept, c)
		if i%2 == 0 {
			continue // it says nothing
		}
		if _, err := io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
	for i, c := range kept[:mostConns] {
		if _, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, syscall.ECONNRESET) { // returns when the server has closed it
			t.Errorf("connection %d: %v", i, err)
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the server ends with %v", err)
	}
}
