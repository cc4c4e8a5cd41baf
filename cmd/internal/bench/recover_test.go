package bench

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/tasks/tasktest"
)

func TestRecoverMisuse(t *testing.T) {
	tierflow.RefusesAll(t, "bench recover", map[string]string{
		"":                       "start it by tierflow run --max-restarts",
		"--kills 0":              "--kills 0: allowed are numbers from 1 on",
		"--victim all --bytes 7": "--bytes 7: allowed is one size from 8B",
		"--victim me":            "--victim me: allowed are root, leader, leaf and all",
	})
}

func TestVictims(t *testing.T) {
	for _, test := range []struct {
		topo   string
		victim string
		want   string
	}{
		{"4x4", "all", "[root 0] [leader 4] [leaf 1]"},
		{"1x3", "all", "[root 0] [leaf 1]"},
		{"3x1", "all", "[root 0] [leader 1]"},
		{"3x1", "leaf", ""},
		{"1", "all", ""},
	} {
		topo := tasktest.Topology(t, test.topo)
		var got []string
		for _, kind := range (&benchRecover{victim: test.victim}).kinds(topo) {
			got = append(got, fmt.Sprint([]any{kind, victimOf(topo, kind)}))
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s, %s: %v; want %s", test.topo, test.victim, got, test.want)
		}
	}
}

// The 99th of a hundred is p99, and the 50th p50.
func TestRecoveryText(t *testing.T) {
	var all []trial
	for i := range 100 {
		all = append(all, trial{victim: 2, heard: float64(100 - i), full: 7})
	}
	text := string(recoveryText(all))
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != 2 || !slices.Equal(strings.Fields(lines[1])[:6], []string{"leaf", "100", "50.0", "99.0", "100.0", "0.0"}) {
		t.Errorf("the table is\n%s", text)
	}
}

// What a process holds and doesn't let go is counted: of /proc where there is one, goroutines and memory everywhere.
func TestHoldings(t *testing.T) {
	before := countHoldings(t.Context())
	heap := make([]byte, 4<<20)
	file, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	held := make(chan struct{})
	const more = 50 // more than a test beside may end
	for range more {
		go func() { <-held }()
	}
	after := countHoldings(t.Context())
	close(held)
	if after.goroutines < before.goroutines+more/2 {
		t.Errorf("%v, then %d goroutines more: %v", before, more, after)
	}
	if after.heap < before.heap+2<<10 {
		t.Errorf("%v, then 4 MiB more: %v", before, after)
	}
	if before.descriptors > 0 && after.descriptors <= before.descriptors {
		t.Errorf("%v, then a file more: %v", before, after)
	}
	runtime.KeepAlive(heap)
	if got, want := (holdings{3, 40, 7, 512}).String(), "3 descriptors, 40 mappings, 7 goroutines, 512 KiB in use"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
