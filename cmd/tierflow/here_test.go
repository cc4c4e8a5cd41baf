package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
)

// Files that jobs have kept are listed, unreadable ones too, and removed on request.
func TestHere(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("TIERFLOW_MACHINE", "")
	if text := tierflow.Succeeds(t, "info", "--here"); !strings.Contains(text, "the first job on several nodes measures one") {
		t.Error(text)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(cache, "tierflow", "machines")
	m := machine.Assumed()
	m.Provenance.Ranks, m.Provenance.Date = "processes 4x1", "2026-01-02T03:04:05Z"
	data, err := m.Format()
	if err == nil {
		err = os.MkdirAll(folder, 0o700)
	}
	tables := filepath.Join(cache, "tierflow", "tables")
	if err == nil {
		err = os.MkdirAll(tables, 0o700)
	}
	for name, data := range map[string][]byte{
		filepath.Join(folder, "a.json"): data, filepath.Join(folder, "b.json"): []byte("{"),
		filepath.Join(tables, "c.json"): []byte(`{"tierflow_table":2,"provenance":{"method":"tasks","machines":["4x1"]},"entries":[]}`),
	} {
		if err == nil {
			err = os.WriteFile(name, data, 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	text := tierflow.Succeeds(t, "info", "--here")
	for _, want := range []string{"a.json: processes 4x1, assumed, ", " ago", "b.json: not read: ", "c.json: 4x1, 0 entries, tasks\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if text := tierflow.Succeeds(t, "info", "--forget"); text != "2 machines and 1 tables removed\n" {
		t.Error(text)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "tierflow", "*", "*")); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}
