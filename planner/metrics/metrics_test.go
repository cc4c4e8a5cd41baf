package metrics_test

import (
	"context"
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/metrics"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

var _ expvar.Var = metrics.Var{}

// page returns what the handler serves, as values by name and labels.
func page(t *testing.T) (text string, values map[string]float64) {
	t.Helper()
	w := httptest.NewRecorder()
	metrics.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if got := w.Header().Get("Content-Type"); w.Code != http.StatusOK || got != "text/plain; version=0.0.4; charset=utf-8" {
		t.Fatalf("status %d, content type %q", w.Code, got)
	}
	return w.Body.String(), parse(t, w.Body.String())
}

var sample = regexp.MustCompile(`^([a-z_]+)(\{(?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)+\}) (\S+)$`)

// parse reads the text form strictly: every sample has a family, which comes once, with
// help and type.
func parse(t *testing.T, text string) map[string]float64 {
	t.Helper()
	values, family, kind := map[string]float64{}, "", ""
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "# HELP "); ok {
			family, _, _ = strings.Cut(name, " ")
			if seen[family] {
				t.Errorf("%s comes twice", family)
			}
			seen[family] = true
			continue
		}
		if is, ok := strings.CutPrefix(line, "# TYPE "+family+" "); ok {
			if kind = is; (kind == "counter") != strings.HasSuffix(family, "_total") {
				t.Errorf("%s is a %s", family, kind)
			}
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil || m[1] != family && (kind != "histogram" || !slices.Contains([]string{"_bucket", "_sum", "_count"}, strings.TrimPrefix(m[1], family))) {
			t.Errorf("in family %s: %q", family, line)
			continue
		}
		value, err := strconv.ParseFloat(m[3], 64)
		if _, twice := values[m[1]+m[2]]; err != nil || twice {
			t.Errorf("%q: twice: %v, %v", line, twice, err)
		}
		values[m[1]+m[2]] = value
	}
	return values
}

// rank returns a rank's name of a metric in the only job that is open.
func rank(values map[string]float64, name string, r int, labels string) string {
	for key := range values {
		if strings.HasPrefix(key, name+"{") && strings.Contains(key, fmt.Sprintf(`,rank="%d"`, r)) && strings.Contains(key, labels) {
			return key
		}
	}
	return "no " + name
}

func TestCounts(t *testing.T) {
	const plan = `shape=han,i=adapt/binomial,s=adapt/binomial`
	o := &planner.Options{Plan: plan}
	err := planner.Run(t.Context(), "2x2", o, func(ctx context.Context, c *planner.Comm) error {
		buf := make([]float32, 1<<10)
		bcast, err := planner.PrepareBcast(ctx, c, buf, 0)
		if err != nil {
			return err
		}
		for range 5 {
			err = errors.Join(err, bcast.Run(ctx))
		}
		if err = errors.Join(err, planner.Barrier(ctx, c)); err != nil || c.Rank() != 0 {
			return errors.Join(err, planner.Barrier(ctx, c))
		}
		text, values := page(t)
		// Rank 0 sends to the other node's leader and to its neighbour, 4 KiB each, then barriers of no bytes.
		for name, want := range map[string]float64{
			rank(values, "tierflow_calls_total", 0, `collective="bcast"`):   5,
			rank(values, "tierflow_calls_total", 0, `collective="barrier"`): 1,
			rank(values, "tierflow_sent_bytes_total", 0, `level="network"`): 5 << 12,
			rank(values, "tierflow_sent_bytes_total", 0, `level="node"`):    5 << 12,
			rank(values, "tierflow_sent_bytes_total", 3, `level="node"`):    0,
			rank(values, "tierflow_broken_communicators", 3, ``):            0,
			rank(values, "tierflow_computing", 0, ``):                       0,
			rank(values, "tierflow_stalls_total", 0, ``):                    0,
			rank(values, "tierflow_read_bytes_total", 1, `level="network"`): 0,
		} {
			if got, ok := values[name]; !ok || got != want {
				t.Errorf("%s is %v (there: %v), want %v", name, got, ok, want)
			}
		}
		if !strings.Contains(text, `collective="bcast",plan="shape=han,`) || t.Failed() {
			t.Errorf("with a plan:\n%s", text)
		}
		lint(t, text)
		return planner.Barrier(ctx, c)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, values := page(t); len(values) > 0 {
		t.Errorf("after the job: %v", values)
	}
}

// lint asks Prometheus' own tool.
func lint(t *testing.T, text string) {
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Log("promtool is missing: its opinion of the text is unknown")
		return
	}
	c := exec.CommandContext(t.Context(), tool, "check", "metrics")
	c.Stdin = strings.NewReader(text)
	if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s\n%s", err, out, text)
	}
}

// What ranks read in place counts for the level that they share with the owner.
func TestReadInPlace(t *testing.T) {
	o := &planner.Options{Plan: "shape=flat,s=solo"}
	err := planner.Run(t.Context(), "1x2", o, func(ctx context.Context, c *planner.Comm) error {
		buf := make([]float32, 1<<18)
		if err := planner.Bcast(ctx, c, buf, 0); err != nil {
			return err
		}
		if c.Rank() == 1 {
			u := raw.Usages()[1]
			if u.Read[0] != 1<<20 || u.Sent[0] != 0 {
				t.Errorf("rank 1 read %v and sent %v; want 1 MiB and nothing", u.Read, u.Sent)
			}
		}
		return planner.Barrier(ctx, c)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWaiting(t *testing.T) {
	o := &planner.Options{StallAfter: 150 * time.Millisecond}
	err := planner.Run(t.Context(), "1x2", o, func(ctx context.Context, c *planner.Comm) error {
		if c.Rank() == 0 {
			return planner.Barrier(ctx, c)
		}
		if err := clocktest.Await(ctx, func() bool {
			u := raw.Usages()[0]
			return u.Waiting == 1 && u.Running == 1 && u.Longest > 150*time.Millisecond && u.Stalls > 0
		}); err != nil {
			return err
		}
		return planner.Barrier(ctx, c)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A rank that is in the caller's operation is said to be, and nothing waits for it.
func TestComputing(t *testing.T) {
	inside, on := make(chan struct{}), make(chan struct{})
	op := tasks.UserOp("slow", true, func(a, _ float32) float32 {
		select {
		case <-inside:
		default:
			close(inside)
		}
		<-on
		return a
	})
	over := make(chan error, 1)
	go func() {
		over <- planner.Run(t.Context(), "1x2", nil, func(ctx context.Context, c *planner.Comm) error {
			buf := []float32{1}
			return planner.Reduce(ctx, c, buf, make([]float32, 1), op, 0)
		})
	}()
	<-inside
	if all := raw.Usages(); len(all) != 2 || !slices.ContainsFunc(all, func(u raw.Usage) bool { return u.Computing }) {
		t.Errorf("%+v", all)
	}
	_, values := page(t)
	if got := values[rank(values, "tierflow_computing", 0, "")]; got != 1 {
		t.Errorf("computing is %v", got)
	}
	close(on)
	if err := <-over; err != nil {
		t.Fatal(err)
	}
}

func TestBroken(t *testing.T) {
	comms, err := planner.Local("1x2", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := planner.Barrier(ctx, comms[0]); err == nil {
		t.Fatal("a barrier with a cancelled context")
	}
	if _, err := comms[1].Dup(t.Context()); err == nil {
		t.Fatal("rank 1 has not heard")
	}
	if all := raw.Usages(); len(all) != 2 || all[1].Broken != 1 {
		t.Errorf("%+v", all)
	}
	for _, c := range comms {
		_ = c.Close()
	}
}

func TestVar(t *testing.T) {
	if got := (metrics.Var{}).String(); got != "[]" {
		t.Errorf("without a job: %s", got)
	}
	err := planner.Run(t.Context(), "2x1", nil, func(ctx context.Context, c *planner.Comm) error {
		err := planner.Barrier(ctx, c)
		var all []raw.Usage
		if text := (metrics.Var{}).String(); json.Unmarshal([]byte(text), &all) != nil || len(all) == 0 || all[0].Calls[0].Collective != "barrier" {
			t.Errorf("%s", text)
		}
		return errors.Join(err, planner.Barrier(ctx, c))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestMethods(t *testing.T) {
	w := httptest.NewRecorder()
	metrics.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/metrics", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" || !strings.Contains(w.Body.String(), "POST") {
		t.Errorf("status %d, allow %q: %s", w.Code, w.Header().Get("Allow"), w.Body)
	}
}

// A label holds any text.
func TestEscaping(t *testing.T) {
	u := raw.Usage{Levels: []string{"a\"b\\c\nd"}}
	u.Sent, u.Read = []int64{1 << 60}, []int64{0}
	var b strings.Builder
	if err := metrics.Write(&b, []raw.Usage{u}); err != nil {
		t.Fatal(err)
	}
	if want := `{world="0",rank="0",level="a\"b\\c\nd"} 1.152921504606847e+18` + "\n"; !strings.Contains(b.String(), want) {
		t.Errorf("%s", b.String())
	}
	parse(t, b.String())
	lint(t, b.String())
}

// TestSealed writes what is known of TLS, and nothing where connections are plain.
func TestSealed(t *testing.T) {
	var b strings.Builder
	expires := time.Unix(2_000_000_000, 0)
	all := []raw.Usage{{Rank: 0, TLS: &join.TLSState{Made: 5, Failed: 2, Expires: expires}}, {Rank: 1}, {Rank: 2, TLS: &join.TLSState{Made: 1}}}
	if err := metrics.Write(&b, all); err != nil {
		t.Fatal(err)
	}
	values := parse(t, b.String())
	for name, want := range map[string]float64{
		`tierflow_tls_handshakes_total{world="0",rank="0",result="made"}`:   5,
		`tierflow_tls_handshakes_total{world="0",rank="0",result="failed"}`: 2,
		`tierflow_tls_certificate_expiry_seconds{world="0",rank="0"}`:       2e9,
		`tierflow_tls_handshakes_total{world="0",rank="2",result="made"}`:   1,
	} {
		if got, ok := values[name]; !ok || got != want {
			t.Errorf("%s is %v (there: %v), want %v", name, got, ok, want)
		}
	}
	for name := range values {
		if strings.HasPrefix(name, "tierflow_tls") && (strings.Contains(name, `rank="1"`) || strings.Contains(name, `expiry_seconds{world="0",rank="2"`)) {
			t.Errorf("%s is there", name)
		}
	}
}
