package learn

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules/all"
)

// A decision table with all measurements is replayed as a set of each collective. Of it comes the table
// of what learn asks for: fewer measurements, all entries, choices that are nearly as good.
func TestLearnedTable(t *testing.T) {
	dir := t.TempDir()
	whole, part := filepath.Join(dir, "whole.json"), filepath.Join(dir, "part.json")
	of := readTable(t, "../../../../testdata/tables/recorded.json")
	of.Measured = nil // of each entry all candidates, as if they were all there is
	for i := range of.Entries {
		e := &of.Entries[i]
		for k, c := range e.Candidates {
			e.Candidates[k].From = table.FromMeasured
			of.Measured = append(of.Measured, table.Measurement{Collective: e.Collective, Levels: e.Levels, Place: e.Place, Bytes: e.Bytes, Plan: c.Plan, NS: c.NS, Low: c.NS, High: c.NS, Samples: 5, Spent: 5 * c.NS})
		}
	}
	text, err := of.Encode()
	if err == nil {
		err = os.WriteFile(whole, text, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	if out := lab.Succeeds(t, "learn", "--replay", whole, "--learned", part); !strings.Contains(out, "part.json: ") {
		t.Fatal(out)
	}
	made := readTable(t, part)
	if len(made.Entries) != len(of.Entries) || len(made.Measured) >= len(of.Measured) || len(made.Measured) == 0 || !strings.HasPrefix(made.Provenance.Method, "learn") {
		t.Errorf("%d entries of %d, %d measurements of %d, by %s", len(made.Entries), len(of.Entries), len(made.Measured), len(of.Measured), made.Provenance.Method)
	}
	sum := 0.0
	for i := range made.Entries {
		e, best := &made.Entries[i], of.Entries[i].Candidates[0].NS
		if e.Key() != of.Entries[i].Key() {
			t.Fatalf("entry %d is %s, want %s", i, e.Key(), of.Entries[i].Key())
		}
		for _, c := range of.Entries[i].Candidates {
			if c.Plan == e.Candidates[0].Plan {
				sum += c.NS / best / float64(len(made.Entries))
			}
		}
	}
	if sum < 1 || sum > 1.1 {
		t.Errorf("mean slowdown %.3f", sum)
	}
	lab.Refuses(t, "allowed is one decision table", "learn", "--replay", "../../../../testdata/learned/allgather-1gbit.json", "--learned", part)
}

// readTable reads a decision table.
func readTable(t *testing.T, name string) *table.Table {
	t.Helper()
	read, err := table.Parse(name, []byte(kittest.Contents(t, name)), all.Submodules())
	if err != nil {
		t.Fatal(err)
	}
	return read
}
