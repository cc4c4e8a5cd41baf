package report

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor/flight/verdict"
	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/viz"
)

// hostile is a name that breaks out where it isn't escaped.
const hostile = `</script><script>document.title="taken"</script>"'<b>`

// steps are those of a program of two steps: rank 0 sends to rank 1.
type steps struct{ rank levels.Rank }

func (s steps) Describe(step int32) (task, label, kind string, level byte, bytes int64) {
	if s.rank == 0 {
		return "ib#0", "ib#0 send r0>r1 1KiB", "send", 'i', 1024
	}
	return "ib#0", "ib#0 recv r0>r1 1KiB", "recv", 'i', 1024
}

func (s steps) Link(int32) (peer levels.Rank, edge int32, outgoing bool) {
	return 1 - s.rank, 0, s.rank == 0
}

var _ trace.Linked = steps{}

func (s steps) Next(int32) []int32 { return nil }
func (s steps) Len() int           { return 1 }

// traceOf is a trace of so many calls, the last of which is slow.
func traceOf(calls int) *viz.JobTrace {
	j := &viz.JobTrace{Job: "4f2c91aa", Program: hostile, Date: "2026-11-24T10:00:00Z", Every: 16, Nodes: []string{"a", hostile}}
	for i := range calls {
		at, long := int64(i)*1e6, int64(100_000)
		if i == calls-1 {
			long *= 5
		}
		c := viz.TracedCall{
			Seq: uint32(i), Request: "bcast 256 f32 root 0", Plan: "shape=flat", Bytes: 1024,
			Members: []levels.Rank{0, 1}, Begins: []int64{at, at + 30_000}, Ends: []int64{at + 50_000, at + long},
		}
		if i%3 == 1 {
			c.Request, c.Plan, c.Reasons, c.Bytes = hostile, hostile, []string{hostile, "rule: shape=flat"}, 2048
		}
		c.Events = []trace.Event{
			{Source: steps{0}, Rank: 0, Run: c.Seq, Begin: at, End: at + 50_000},
			{Source: steps{1}, Rank: 1, Run: c.Seq, Begin: at + 30_000, End: at + long},
		}
		j.Calls = append(j.Calls, c)
	}
	return j
}

func pageOf(t *testing.T, j *viz.JobTrace) []byte {
	t.Helper()
	page, err := HTML(j, []verdict.Finding{{Class: verdict.Late, Ranks: []int{1}, Text: hostile}}, "tierflow v1")
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// The page says what the trace has, asks for nothing, and is the same each time.
func TestHTML(t *testing.T) {
	page := pageOf(t, traceOf(10))
	if !bytes.Equal(page, pageOf(t, traceOf(10))) {
		t.Error("two pages of one trace differ")
	}
	for _, want := range []string{"job 4f2c91aa", "default-src &#39;none&#39;", "bcast 256 f32 root 0", "class=\"path\"", "late: ", "ib#0 recv r0&gt;r1 1KiB", ", 2026-11-24T10:00:00Z</h1>", "page of tierflow v1", "rule: shape=flat<br>"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("no %q in the page", want)
		}
	}
	for _, bad := range []string{`<script>document`, `"taken"</script>"`, "<b>"} {
		if strings.Contains(string(page), bad) {
			t.Errorf("%q gets through", bad)
		}
	}
	if m := regexp.MustCompile(`(?:src|href|url\()\s*=?\s*["']?https?:`).Find(page); m != nil {
		t.Errorf("the page asks for %s", m)
	}
	slowest := slices.MaxFunc(traceOf(10).Calls, func(a, b viz.TracedCall) int { return cmp.Compare(a.Length(), b.Length()) })
	if axis := fmt.Sprintf(`text-anchor="end">%v</text></svg>`, slowest.Length()); !strings.Contains(string(page), axis) {
		t.Errorf("the picture of the slowest call doesn't end at %s", axis)
	}
	bare, err := HTML(&viz.JobTrace{}, []verdict.Finding{{Class: verdict.Late, Ranks: []int{1}, Text: "rank 1 has not come"}}, "tierflow v1")
	if err != nil || !strings.Contains(string(bare), "late: rank 1 has not come") || !strings.Contains(string(bare), "no rank has kept a trace") || strings.Contains(string(bare), "<h2>") {
		t.Errorf("without calls: %v\n%s", err, bare)
	}
}

// The chart has the collectives called with several sizes. Without any there is no chart.
func TestChart(t *testing.T) {
	rows := []callRow{{Request: "bcast 4 f32 root 0", Bytes: 16, Half: 3, Most: 4}, {Request: "dup", Bytes: 96, Half: 2, Most: 2}}
	if chart := plotTimes(rows); chart != "" {
		t.Errorf("of one size %.80s", chart)
	}
	rows = append(rows, callRow{Request: "bcast 8 f32 root 0", Bytes: 32, Half: 5, Most: 9})
	chart := plotTimes(rows)
	if text := string(chart); !strings.HasPrefix(text, "<svg") || !strings.Contains(text, ">bcast<") || !strings.Contains(text, ">32<") || strings.Contains(text, ">dup<") || strings.Contains(text, ">96<") {
		t.Errorf("of two sizes %s", chart)
	}
}

// 64 ranks with many calls make a page that a browser likes to open.
func TestSize(t *testing.T) {
	j := traceOf(1000)
	for len(j.Nodes) < 64 {
		j.Nodes = append(j.Nodes, "a")
	}
	if n := len(pageOf(t, j)); n > 2<<20 {
		t.Errorf("%d bytes, want 2 MiB at most", n)
	}
}

// A browser runs the page's script and nothing else, and shows each row.
func TestBrowser(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("SKIPPED: no chromium shows the page")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "report.html")
	own := script
	defer func() { script = own }()
	script += `document.querySelector("#calls th:nth-child(3)").click();
filter.value = "bcast";
filter.dispatchEvent(new Event("input"));`
	page := pageOf(t, traceOf(10))
	if err := os.WriteFile(file, page, 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--disable-background-networking", "--no-first-run", "--user-data-dir="+filepath.Join(dir, "profile"),
		"--enable-logging=stderr", "--virtual-time-budget=2000", "--dump-dom", "file://"+file)
	cmd.Env = append(os.Environ(), "HOME="+dir)
	cmd.WaitDelay = time.Minute
	var said bytes.Buffer
	cmd.Stderr = &said
	text, err := cmd.Output()
	if err != nil {
		t.Skipf("SKIPPED: chromium doesn't run here: %v\n%s", err, said.String())
	}
	dom := string(text)
	for _, want := range []string{`data-ready="yes"`, "<title>job 4f2c91aa: ", `<table class="sorted" id="calls">`} {
		if !strings.Contains(dom, want) {
			t.Errorf("the browser has no %q", want)
		}
	}
	if strings.Contains(said.String(), "CONSOLE") {
		t.Errorf("the browser complains:\n%s", said.String())
	}
	calls := dom[strings.Index(dom, `id="calls"`):strings.Index(dom, `Who comes late`)]
	counts := regexp.MustCompile(`<tr[^>]*><td>[^\n]*?</td><td class="n">(?:1024|2048)</td><td class="n">(\d+)</td>`).FindAllStringSubmatch(calls, -1)
	if len(counts) != 2 || counts[0][1] != "7" || counts[1][1] != "3" || strings.Count(calls, `<tr hidden="">`) != 1 {
		t.Errorf("rows of calls %q, want 7 and 3 of them, sorted, and one hidden in\n%s", counts, calls)
	}
	if n := strings.Count(dom, `class="path"`); n < 1 {
		t.Error("no critical path is drawn")
	}
}
