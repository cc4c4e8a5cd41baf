package bench

import (
	"strings"
	"testing"
)

func TestSyncMisuse(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"--bytes 1KiB,2KiB", "allowed is one size"},
		{"--late 0", "--late 0 --times 5 --gbit 0: allowed are numbers from 1 on"},
		{"--gbit -1", "a rate from 0 on"},
		{"", "at least one has the state"}, // one rank alone
	} {
		s := tierflow.Run(t, append([]string{"bench", "sync"}, strings.Fields(test.args)...)...)
		if s.Status != 2 || !strings.Contains(s.Errors, test.want) {
			t.Errorf("%q: status %d, %q; want %q", test.args, s.Status, s.Errors, test.want)
		}
	}
}

func TestState(t *testing.T) {
	state := make([]byte, 3<<20)
	fillState(state, 2)
	if !isState(state, 2) || isState(state, 3) {
		t.Error("a state is not told from another one")
	}
	if state[5<<10]++; isState(state, 2) {
		t.Error("a wrong byte is not found")
	}
}
