package peers

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules/all"
)

// nothing is told nothing.
func nothing(setting, peerRow) error { return nil }

// What all of Open MPI's algorithms took becomes a decision table, rules, and a file for Open MPI
// in which the fastest ones are.
func TestByRules(t *testing.T) {
	at := fourNode
	at.spin, at.folder = false, t.TempDir()
	b := &benchPeers{topo: "4x2", keep: filepath.Join(t.TempDir(), "kept.json"), cells: cells{[]string{"bcast", "allreduce"}, []int64{1 << 10, 1 << 20}}, sweep: time.Millisecond}
	fast := map[string]int64{"tuned binomial, yield": 1 << 10, "tuned pipeline/8KiB, yield": 1 << 20, "tuned ring, yield": 1 << 20, "tuned recursive_doubling, yield": 1 << 10, "tuned nonoverlapping, yield": 8}
	run := func(s setting, c cells, _ time.Duration) (rows []peerRow, err error) {
		for _, n := range c.bytes {
			for _, op := range c.ops {
				row := peerRow{Collective: op, Bytes: n, P50: 10, Min: 9}
				if fast[s.variant] == n {
					row.Min = 5
				}
				if strings.HasPrefix(s.variant, byRules) {
					row.P50 = 5
				}
				rows = append(rows, row)
			}
		}
		return rows, nil
	}
	var notes bytes.Buffer
	settings, err := b.sweepOf(openMPI, &place{site: at}, &peerTable{Rate: "1gbit"}, &notes, run)
	if err != nil {
		t.Fatal(err)
	}
	last := settings[len(settings)-1]
	i := slices.Index(last.mca, "coll_tuned_dynamic_rules_filename")
	if last.variant != byRules+", yield" || i < 0 {
		t.Fatalf("no setting by rules: %+v\n%s", last, &notes)
	}
	text, err := os.ReadFile(last.mca[i+1])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"0 6 0 0 ", " 3 0 8192 ", "0 3 0 0 ", " 4 0 0 ", "# from 8 ranks"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s\nof\n%s", want, text, &notes)
		}
	}
	kept, err := os.ReadFile(b.keep)
	if err != nil {
		t.Fatal(err)
	}
	tab, err := table.Parse("kept", kept, all.Submodules())
	if err != nil || len(tab.Entries) != 4 || tab.Provenance.Links != "1gbit" {
		t.Errorf("%v, %d entries of %+v", err, len(tab.Entries), tab.Provenance)
	}
	b.rules, at.rules = true, true
	alone, err := b.sweepOf(openMPI, &place{site: at}, &peerTable{Rate: "1gbit"}, io.Discard, run)
	if err != nil || len(alone) != 1 || alone[0].variant != byRules+", yield" || strings.Contains(fmt.Sprint(at.candidateSettings("bcast")), "han") {
		t.Errorf("with --rules: %v, %v", alone, err)
	}
	at.rules = false
	// HAN's modules and what has no counterpart are in no table.
	if n, tried := len(tab.Entries[0].Candidates), len(at.candidateSettings("bcast")); n < 20 || n >= tried {
		t.Errorf("%d candidates of %d settings", n, tried)
	}
}

// What MPICH's algorithms took becomes rules too, by the median, and a file for MPICH. A table that is
// there takes the place of the sweep.
func TestByRulesOfMPICH(t *testing.T) {
	at := fourNode
	at.folder = t.TempDir()
	b := &benchPeers{topo: "4x2", site: site{rules: true}, keep: filepath.Join(t.TempDir(), "kept.json"), cells: cells{[]string{"bcast", "allgather", "scan"}, []int64{1 << 10, 1 << 20}}, sweep: time.Millisecond}
	ran := 0
	run := func(s setting, c cells, _ time.Duration) (rows []peerRow, err error) {
		ran++
		for _, n := range c.bytes {
			for _, op := range c.ops {
				row := peerRow{Collective: op, Bytes: n, P50: 10, Min: 1, Mean: 12, Iters: 3}
				if strings.Contains(s.variant, "ring") == (n > 4096) || s.variant == byRules {
					row.P50, row.Min = 5, 4
				}
				rows = append(rows, row)
			}
		}
		return rows, nil
	}
	of := func() string {
		t.Helper()
		var notes bytes.Buffer
		settings, err := b.sweepOf(mpich, &place{site: at}, &peerTable{Rate: "1gbit"}, &notes, run)
		if err != nil || len(settings) != 1 || settings[0].variant != byRules || settings[0].genv[0] != "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE" {
			t.Fatalf("%v, %+v\n%s", err, settings, &notes)
		}
		text, err := os.ReadFile(settings[0].genv[1])
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	swept := of()
	if ran != 6+2*proofTurns {
		t.Errorf("%d jobs; want one for each of six algorithms, and two for each turn of the proof", ran)
	}
	for _, want := range []string{`"comm_size<=8": {"avg_msg_size<=`, "MPIR_Bcast_intra_scatter_ring_allgather", "MPIR_Allgather_intra_ring"} {
		if !strings.Contains(swept, want) {
			t.Errorf("no %q in\n%s", want, swept)
		}
	}
	kept, err := os.ReadFile(b.keep)
	if err != nil {
		t.Fatal(err)
	}
	if b.from, err = table.Parse("kept", kept, all.Submodules()); err != nil {
		t.Fatal(err)
	}
	if m := b.from.Measured; len(m) != 12 || m[0].NS < 5e3 || m[0].Spent != 36e3 || m[0].Samples != 3 {
		t.Errorf("%d measurements, %+v", len(m), m)
	}
	ran = 0
	if again := of(); again != swept || ran != 2*proofTurns {
		t.Errorf("%d jobs; of the table is made\n%s", ran, again)
	}
}

// How long rules take is told by the time without them.
func TestNoteRules(t *testing.T) {
	tab := &peerTable{}
	usual := setting{library: openMPI, variant: "tuned, yield"}
	ruled := setting{library: openMPI, variant: byRules + ", yield"}
	for _, round := range []float64{10, 20} {
		tab.addRows(usual, "", []peerRow{{Collective: "bcast", Bytes: 8, P50: round}, {Collective: "reduce", Bytes: 8, P50: 4}})
		tab.addRows(ruled, "", []peerRow{{Collective: "bcast", Bytes: 8, P50: 5}, {Collective: "reduce", Bytes: 8, P50: 4}})
	}
	if err := tab.print(io.Discard, cells{[]string{"bcast", "reduce"}, []int64{8}}, true); err != nil {
		t.Fatal(err)
	}
	var notes bytes.Buffer
	tab.noteRules(&notes)
	if want := "# Open MPI by rules / as it is: bcast 8B 0.38 (0.25–0.50), reduce 8B 1.00 (1.00–1.00); geometric mean 0.61 (0.50–0.71)\n"; notes.String() != want {
		t.Errorf("%s, want %s", &notes, want)
	}
}
