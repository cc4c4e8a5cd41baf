// Package tabletest makes the tables of tests from text.
package tabletest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules/all"
)

// Parse reads a table.
func Parse[B ~string | ~[]byte](t testing.TB, text B) *table.Table {
	t.Helper()
	made, err := table.Parse("test.json", []byte(text), all.Submodules())
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return made
}

// Of is a table of those entries, which says nothing else.
func Of(t testing.TB, entries ...string) *table.Table {
	t.Helper()
	return Parse(t, `{"tierflow_table":2,"provenance":{},"entries":[`+strings.Join(entries, ",")+`]}`)
}

// RoundTrip writes a table, and returns what is read of it with its text. Written once more it is
// the same text, or the test fails.
func RoundTrip(t testing.TB, made *table.Table) (read *table.Table, text []byte) {
	t.Helper()
	text, err := made.Encode()
	if err != nil {
		t.Fatal(err)
	}
	read = Parse(t, text)
	if again, err := read.Encode(); err != nil || !bytes.Equal(again, text) {
		t.Fatalf("%v; written\n%s\nagain\n%s", err, text, again)
	}
	return read, text
}
