package peers

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/cmd/internal/tune"
	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/submodules/all"
)

// A fake tierflow: tuned it takes 5 µs, else 10.
const fakeTierflow = `
case "$*" in
*" tune "*) echo "$@" >>"$0.tuned"; %s;;
*" --table "*) p50=5;;
*) p50=10;;
esac
echo "{\"results\": [{\"collective\": \"bcast\", \"bytes\": 8, \"p50_us\": $p50, \"plan\": \"shape=flat,fs=all\"}]}"`

// compare needs tierflow alone: no other library is found.
func TestPeersTune(t *testing.T) {
	const summary = `echo '{"method": "tasks+heuristics", "measurements": 7, "planned": 8}'; exit`
	for _, test := range []struct {
		name     string
		sweep    time.Duration
		tunes    string             // what tuning does
		variants map[string]float64 // with their ratios
		failure  string
		notes    string
	}{
		{
			"tuned", 200 * time.Millisecond, summary,
			map[string]float64{tuned: 1, asItIs: 2, asGoroutine: 2},
			"",
			"# tuned: bcast 8B shape=flat,fs=all\n",
		},
		{
			"fails", 200 * time.Millisecond, "echo lost contact >&2; exit 3",
			map[string]float64{asItIs: 1, asGoroutine: 1},
			"tierflow tuning failed: exit status 3: lost contact", "# tierflow tuning failed: exit status 3: lost contact\n",
		},
		{
			"says nothing", 200 * time.Millisecond, "exit 0",
			map[string]float64{asItIs: 1, asGoroutine: 1},
			"tierflow tuning failed: summary: EOF", "",
		},
		{"no sweep", 0, summary, map[string]float64{asItIs: 1, asGoroutine: 1}, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			tools := t.TempDir()
			script(t, filepath.Join(tools, "env"), `while case "$1" in *=*) ;; *) false;; esac; do export "$1"; shift; done
exec "$@"
`)
			t.Setenv("PATH", tools)
			p := &place{site: site{nodes: 1, perNode: 2, bind: bindNone, tierflow: filepath.Join(tools, "tierflow"), lab: filepath.Join(tools, "tierflow-lab"), folder: t.TempDir()}}
			script(t, p.tierflow, fmt.Sprintf(fakeTierflow, test.tunes))
			b := &benchPeers{topo: "1x2", site: site{nodes: 1, perNode: 2}, cells: cells{[]string{"bcast"}, []int64{8}}, time: time.Millisecond, sweep: test.sweep, rounds: 2, json: true}
			var out, notes bytes.Buffer
			if err := b.compare(t.Context(), p, &out, &notes); err != nil {
				t.Fatal(err)
			}
			got := kittest.Decode[peerTable](t, out.String())
			ratios := map[string]float64{}
			for _, r := range got.Results {
				ratios[r.Variant] = r.Ratio
			}
			if !maps.Equal(ratios, test.variants) {
				t.Errorf("ratios %v, want %v", ratios, test.variants)
			}
			if strings.Join(got.Failures, "\n") != test.failure && !strings.Contains(strings.Join(got.Failures, "\n"), test.failure+" in") {
				t.Errorf("failures %q, want %q", got.Failures, test.failure)
			}
			if !strings.Contains(notes.String(), test.notes) {
				t.Errorf("notes\n%swant in them %q", &notes, test.notes)
			}
			if _, err := os.Stat(p.tierflow + ".tuned"); (err == nil) != (test.sweep > 0) {
				t.Errorf("with a sweep of %v: tuned? %v", test.sweep, err)
			}
			if _, ok := test.variants[tuned]; !ok {
				if got.Tuning != nil {
					t.Errorf("not tuned, but %+v", got.Tuning)
				}
				return
			}
			first := got.Results[0]
			if first.Variant != tuned || !strings.HasSuffix(first.Command, "--table DIR/table.json --bytes 8") || first.Plan != "shape=flat,fs=all" {
				t.Errorf("first comes %+v", first)
			}
			if u := got.Tuning; u == nil || u.Measurements != 7 || u.Planned != 8 || u.Seconds <= 0 ||
				!strings.Contains(u.Command, "-- tierflow tune -o DIR/table.json --json --regime back-to-back --ops bcast --bytes 8 --time 20ms") {
				t.Errorf("tuned by %+v", u)
			}
		})
	}
}

// What peers calls tune with, tune takes.
func TestPeersTuneCommand(t *testing.T) {
	p := &place{site: site{nodes: 1, perNode: 2, bind: bindNone, tierflow: "tierflow", lab: "tierflow-lab", folder: t.TempDir()}}
	words := p.tuneCommand(cells{[]string{"bcast", "barrier"}, []int64{64, 8}}, 10*time.Millisecond)
	args := words[slices.Index(words, "--")+2:]
	s := kittest.Decode[tune.Summary](t, tierflow.Succeeds(t, append(args, "--topo", "1x2")...))
	if s.Entries != 3 || s.File != p.tableFile() { // two sizes of one, and a barrier
		t.Errorf("%+v", s)
	}
	if made, err := choose.LoadTable(p.tableFile(), all.Submodules()); err != nil || made.Regime() != costs.BackToBack {
		t.Errorf("%+v, %v", made, err)
	}
	p.single = true
	if words := p.tuneCommand(cells{[]string{"bcast"}, []int64{64}}, time.Millisecond); !strings.Contains(strings.Join(words, " "), " --regime single ") {
		t.Errorf("single calls are compared with tuning by %q", words)
	}
	text := tierflow.Succeeds(t, "bench", "coll", "bcast", "--topo", "1x2", "--bytes", "64", "--iters", "1", "--table", p.tableFile())
	if !strings.Contains(text, "the decision table") && !strings.Contains(text, "bcast") {
		t.Errorf("with the table:\n%s", text)
	}
}
