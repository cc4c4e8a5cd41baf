package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file without end, or a far too large one, is an error of each command that reads one: it says what is
// allowed.
func TestFilesTooLarge(t *testing.T) {
	const zero = "/dev/zero"
	dir := t.TempDir()
	for _, name := range []string{"r0.trace", "r0.snap", "topo.json", "table.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(dir, name), 1<<40); err != nil { // it takes no room
			t.Skip(err)
		}
	}
	for line, want := range map[string]string{
		"plan bcast --bytes 8 --topo 2 --machine /dev/zero":            zero + ": more than 32768 bytes; allowed are 32768",
		"plan bcast --bytes 8 --topo 2 --table " + dir + "/table.json": "table.json: 1099511627776 bytes; allowed are 268435456",
		"plan bcast --bytes 8 --topo " + dir + "/topo.json":            "topo.json: 1099511627776 bytes; allowed are ",
		"simulate bcast --topo 2 --machine /dev/zero":                  zero + ": more than 32768 bytes",
		"simulate train --topo 2 --layers /dev/zero":                   zero + ": more than ",
		"tune --profile /dev/zero":                                     zero + ": more than ",
		"trace --recorder /dev/zero":                                   zero + ": more than ",
		"trace --merge " + dir + " --format text":                      "r0.trace: 1099511627776 bytes; allowed are ",
		"diagnose " + dir:                                              "r0.snap: 1099511627776 bytes; allowed are ",
		"rules convert --from ompi /dev/zero":                          zero + ": more than ",
		"rules convert /dev/zero":                                      zero + ": more than 262144 bytes",
		"rules fmt /dev/zero":                                          zero + ": more than 262144 bytes",
		"rules explain /dev/zero bcast --bytes 8 --topo 2x2":           zero + ": more than 262144 bytes",
	} {
		s := tierflow.Run(t, strings.Fields(line)...)
		if s.Status == 0 || s.Out != "" || !strings.Contains(s.Errors, want) {
			t.Errorf("tierflow %s: %+v; want %q", line, s, want)
		}
	}
}
