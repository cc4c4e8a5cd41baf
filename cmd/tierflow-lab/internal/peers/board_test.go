package peers

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Ratios are of the same round, and a cell is behind only if each of its rounds is.
func TestBoardCells(t *testing.T) {
	at := func(bytes int64) boardCell { return boardCell{"2x1", "none", singleCalls, "bcast", bytes} }
	f := &boardFile{}
	add := func(bytes int64, round int, p50 ...float64) { // measured machine, off, Open MPI, MPICH, HAN
		for i, s := range []setting{
			{library: ourselves, variant: asMeasured},
			{library: ourselves, variant: asItIs},
			asItIsOf(openMPI), asItIsOf(mpich),
			{library: openMPI, variant: "han, yield"},
		} {
			if i < len(p50) {
				f.Samples = append(f.Samples, sample{at(bytes), s.String(), round, p50[i], "p"})
			}
		}
	}
	add(64, 0, 12, 10, 10, 8, 24)
	add(64, 1, 30, 30, 20, 30)
	add(128, 0, 10, 10, 10)
	add(128, 1, 11, 11, 10)
	want := []*compared{
		{boardCell: at(64), Rounds: 2, P50: 21, Ratio: 1.35, Least: 1.2, Largest: 1.5, Best: 1.5, HAN: 0.5, Off: 1.1, Plan: "p"},
		{boardCell: at(128), Rounds: 2, P50: 10.5, Ratio: 1.05, Least: 1, Largest: 1.1, Best: 1.05, Off: 1, Plan: "p"},
	}
	got := f.cells()
	if d := cmp.Diff(want, got, cmp.AllowUnexported(compared{})); d != "" {
		t.Error(d)
	}
	if !got[0].isBehind() || got[0].isOpen() || got[1].isBehind() || !got[1].isOpen() {
		t.Error("the first is behind, the second open")
	}
	if text := string(boardSVG(got)); strings.Count(text, "<rect") != 3 || !strings.Contains(text, ">1.35<") {
		t.Errorf("the picture is\n%s", text)
	}
}

// The first round of single calls comes first, and one node has one link.
func TestBoardParts(t *testing.T) {
	b := newBoard()
	b.topos, b.rates, b.ops, b.rounds = "1x2,2x1", "none,1gbit", "bcast,barrier", 2
	all, err := b.parts()
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, p := range all[:7] {
		text = append(text, strings.Join([]string{p.Topology, p.Rate, p.Regime, p.Collective}, " "))
	}
	want := []string{
		"1x2 none single bcast", "1x2 none single barrier", "2x1 none single bcast", "2x1 none single barrier", "2x1 1gbit single bcast", "2x1 1gbit single barrier",
		"1x2 none back-to-back bcast",
	}
	if d := cmp.Diff(want, text); d != "" || len(all) != 2*2*6 {
		t.Errorf("%d parts: %s", len(all), d)
	}
}

// What is in the file isn't measured anew.
func TestBoardResumes(t *testing.T) {
	b := newBoard()
	b.topos, b.rates, b.regimes, b.ops, b.bytes, b.rounds = "1x2", "none", singleCalls, "barrier", "4", 1
	b.record = filepath.Join(t.TempDir(), "board.json")
	f := &boardFile{Samples: []sample{{boardCell{"1x2", "none", singleCalls, "barrier", 0}, byRule.String(), 0, 5, "p"}}}
	if err := f.save(b.record); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	cancel() // nothing is started
	var out, notes bytes.Buffer
	if err := b.measure(ctx, &out, &notes); err != nil || notes.Len() > 0 || !strings.Contains(out.String(), "1x2     none  single  1") {
		t.Errorf("%v\n%s%s", err, &notes, &out)
	}
}
