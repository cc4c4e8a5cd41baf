package bench

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/levels"
)

func TestRecoverMisuse(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"", "start it by tierflow run --max-restarts"},
		{"--kills 0", "--kills 0: allowed are numbers from 1 on"},
		{"--victim all --bytes 7", "--bytes 7: allowed is one size from 8B"},
		{"--victim me", "--victim me: allowed are root, leader, leaf and all"},
	} {
		s := tierflow.Run(t, append([]string{"bench", "recover"}, strings.Fields(test.args)...)...)
		if s.Status != 2 || !strings.Contains(s.Errors, test.want) {
			t.Errorf("%q: status %d, %q; want %q", test.args, s.Status, s.Errors, test.want)
		}
	}
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
		topo, err := levels.Parse(test.topo)
		if err != nil {
			t.Fatal(err)
		}
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
